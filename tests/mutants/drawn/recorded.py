"""A pytest plugin that records which test runs which line, and how long each test takes.

pytest-cov gives each line the test of its process. Two more kinds of process are recorded here, each with the test that
started it: parties that are forked, and commands that start as a new interpreter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests import command, fork_server

ROOT = Path(__file__).parents[3]
SETTINGS = Path(__file__).with_name("coverage.ini")
LINES = ROOT / ".mutants" / "lines.coverage"
TIMES = ROOT / ".mutants" / "times.json"
ARGUMENTS = ["--cov", f"--cov-config={SETTINGS}", "--cov-context=test", "--cov-report=", "-p", __name__]

_times: dict[str, float] = {}


def pytest_configure(config: pytest.Config) -> None:
    fork_server.PRELOADED.append(__name__)
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        os.environ["COVERAGE_PROCESS_START"] = str(SETTINGS)  # a new interpreter of a test starts its own record


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _times[report.nodeid] = round(_times.get(report.nodeid, 0.0) + report.duration, 3)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        TIMES.parent.mkdir(exist_ok=True)
        TIMES.write_text(json.dumps(_times))


def _recorded(run: Callable[..., None]) -> Callable[..., None]:
    """Return what a forked party runs, with a record of its own."""

    def recorded(words: list[str], directory: str, logs: Any, environment: dict[str, str], stdin: Any) -> None:
        test = environment.get("PYTEST_CURRENT_TEST", "")
        record = coverage.Coverage(config_file=str(SETTINGS), data_suffix=True, context=test)
        record.start()
        try:
            run(words, directory, logs, environment, stdin)
        finally:
            record.stop()
            record.save()

    return recorded


def _is_parent_of_forked_parties() -> bool:
    return "pytest" not in vars(command) and "PYTEST_XDIST_WORKER" not in os.environ
