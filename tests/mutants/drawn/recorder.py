"""A plugin of pytest that records the time of each test that passes, and which lines run in processes that it starts.

pytest-cov gives each line of pytest's own processes its test. This plugin does so for forked parties, and for commands
that start as a new interpreter. Processes of a pool have no test that they belong to, and are not recorded.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import fork_server

ROOT = Path(__file__).parents[3]
STATE = ROOT / ".mutants"
SETTINGS = STATE / "coverage.ini"
LINES = STATE / "lines.coverage"
TIMES = STATE / "times.json"

_times: dict[str, float] = {}
_failed: set[str] = set()  # tests that give no evidence about mutants


def write_settings(folders: tuple[str, ...]) -> None:
    """Write the settings of coverage. A process that a test starts reads them too, in any directory."""
    sources = "".join(f"\n    {ROOT / folder}" for folder in folders)
    STATE.mkdir(exist_ok=True)
    SETTINGS.write_text(
        f"[run]\nsource ={sources}\nparallel = true\ndata_file = {LINES}\n"
        "core = ctrace\n"  # sys.monitoring does not distinguish tests
        "context = ${PYTEST_CURRENT_TEST-}\nsigterm = true\ndisable_warnings = no-data-collected\n"
    )


def pytest_configure(config: pytest.Config) -> None:
    fork_server.PRELOADED.append("tests.mutants.drawn.recorded_children")
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ["COVERAGE_PROCESS_START"] = str(SETTINGS)  # an interpreter that a test starts records its lines


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)
    _times[report.nodeid] = round(_times.get(report.nodeid, 0.0) + report.duration, 3)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        TIMES.write_text(json.dumps({test: seconds for test, seconds in _times.items() if test not in _failed}))
