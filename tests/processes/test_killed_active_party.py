"""WALR, and the active party is killed: the job says so, the server is charged once, and the same job ends well.

(The server's own deaths are in test_parties_that_are_up.py and tests/measurement/test_crashes_and_races.py.)
"""

from __future__ import annotations

import json
import signal

import pytest

from tests.processes.reading import error_line
from tests.vertical.victim import OBEYED, ORDER, Order
from tests.world import World


def start_victim(project: World, order: Order) -> None:
    order.give(project.path("orders"))
    project.start("shop", module=("tests.vertical.victim", "orders"))


@pytest.mark.parametrize(("label", "charged"), [("receive Hello", False), ("write model.json", True)])
def test_the_active_party_is_killed_and_the_same_job_is_charged_once(project: World, label: str, charged: bool) -> None:
    project.start("meter")
    start_victim(project, Order(label))
    lost = project.blindfit("submit", "job.toml", "--out", "out")
    assert error_line(lost).startswith("error: cannot reach shop at localhost:")
    assert (project.path("orders") / OBEYED).exists()
    assert project.processes.pop("shop").wait(60) == -signal.SIGKILL
    assert not list(project.path("state/shop").glob("models/*/model.json"))
    assert ("shop" in project.blindfit("ledger", "meter.toml").stdout) == charged

    (project.path("orders") / ORDER).unlink()
    project.start("shop")
    done = project.blindfit("submit", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    report = json.loads(project.path("out/report.json").read_text())
    assert report["parties"]["meter"]["summary"]["releases"] == 1
