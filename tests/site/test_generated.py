"""The generated pages are current."""

from __future__ import annotations

from pathlib import Path

from blindfit.coordinator.terminal.exit_codes import ExitCode
from tests.site.scripts import script

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_command_line_is_current() -> None:
    made = script("commands_page")
    assert made.PAGE.read_text() == made.page(), "run `make commands-page`"


def test_every_exit_status_has_a_meaning() -> None:
    assert set(script("commands_page").MEANINGS) == set(ExitCode)
