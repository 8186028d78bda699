"""The parent of all forked parties imports this module while lines are recorded: each party then records its own."""

from __future__ import annotations

from typing import Any

import coverage

from tests import command
from tests.mutants.drawn.recorder import SETTINGS

_run = command._run
_of_this_process = coverage.Coverage.current()  # an interpreter starts it where COVERAGE_PROCESS_START is set
if _of_this_process is not None:
    _of_this_process.stop()


def _recorded(words: list[str], directory: str, environment: dict[str, str], files: Any) -> None:
    test = environment.get("PYTEST_CURRENT_TEST", "")
    record = coverage.Coverage(config_file=str(SETTINGS), data_suffix=True, context=test)
    record.start()
    try:
        _run(words, directory, environment, files)
    finally:
        record.stop()
        record.save()


command._run = _recorded
