"""The time of a first answer does not depend on a label: until the charge the same modules are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interference.neighbours import Probe

ROOT = Path(__file__).parents[2]
CHARGED = [("walr", "meter"), ("label-dp", "meter"), ("dp-lr", "clinic"), ("taylor-label-dp", "bank")]


@pytest.fixture(scope="module")
def asked(probe: Probe) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "tests.interference.imports", str(probe.authority)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def imported(asked: subprocess.Popen[str], *arguments: str) -> tuple[set[str], set[str]]:
    """Return the modules that each of two worlds imports; the worlds differ in one label."""
    assert asked.stdin is not None
    assert asked.stdout is not None
    asked.stdin.write(" ".join(arguments) + "\n")
    asked.stdin.flush()
    one, other = (json.loads(asked.stdout.readline()) for _ in range(2))  # null: a world failed, see its stderr
    return set(one), set(other)


@pytest.mark.parametrize(("system", "party"), CHARGED)
def test_no_import_hangs_on_a_label_before_the_charge(system: str, party: str, asked: subprocess.Popen[str]) -> None:
    one, other = imported(asked, system, party)
    assert one == other
    assert {name for name in one if name.startswith("blindfit.parties.")}  # fails if nothing was heard


def test_an_import_that_hangs_on_a_label_is_noticed(asked: subprocess.Popen[str]) -> None:
    one, other = imported(asked, "walr", "meter", "planted")
    assert one ^ other == {"wave"}
