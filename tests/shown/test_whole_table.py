"""Nothing of a table is cut, for any width of the terminal and any pipe."""

from __future__ import annotations

import io
import re

import pytest
from rich.box import SIMPLE_HEAD
from rich.console import Console

from blindfit.coordinator.terminal.whole_table import WholeTable

SESSION = "quarterly-training-of-the-north-4f0c81d2"
WHEN = "2026-11-24 03:05"
DATASET = '"people_of_the_regional_hospital_2026_with_follow_up"'


def table() -> WholeTable:
    shown = WholeTable("session", "when (UTC)", "dataset", "what", title="Jobs", box=SIMPLE_HEAD)
    shown.add_row(SESSION, WHEN, DATASET, "a noisy sum of many words that may be broken between them")
    return shown


def printed(width: int, *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    console.print(table(), crop=False)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 130, 300])
def test_a_pipe_has_every_cell_on_one_line(width: int) -> None:
    lines = [line for line in printed(width, terminal=False).splitlines() if SESSION in line]
    assert len(lines) == 1
    assert WHEN in lines[0]
    assert DATASET in lines[0]


@pytest.mark.parametrize("width", [130, 160])
def test_a_terminal_breaks_between_words_while_it_can(width: int) -> None:
    shown = printed(width, terminal=True)
    assert SESSION in shown
    assert DATASET in shown
    assert "2026-11-24" in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_breaks_words_and_loses_none(width: int) -> None:
    shown = printed(width, terminal=True)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    everything = sorted(SESSION + WHEN.replace(" ", "") + DATASET)
    letters = sorted(re.sub(r"[\s─]", "", shown))
    for letter in set(everything):
        assert letters.count(letter) >= everything.count(letter)
