"""A whole job goes on for any learning rate that its proposer chose, and for any values in the rows.

A training that ended when scores grew past a bound was once refused by the party with the largest row. Then 8 of 10
jobs ended at the bank if a shop's row had a 1, and no job if it had a 3, and no budget counted this.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.statistics.vertical import optimiser
from blindfit.algorithms.statistics.vertical.grid import Grid
from tests.interference.neighbours import Probe, a_name, dated
from tests.interference.systems import SYSTEMS
from tests.interference.world import Case, run

ONE_ROW = "p009"
RATES = (30.0, 300.0, 1000.0)


@pytest.fixture(scope="module")
def case() -> Case:
    """The labels follow the shop's column, so that weights grow in its direction; nobody reads anything
    of the model.
    """
    case = SYSTEMS["taylor"]()
    for name, row in case.data["bank"].items():
        row["label"] = int(case.data["shop-a"][name]["x0"] > 0)
    for row in case.data["shop-a"].values():
        row["x0"] = 1.0 if row["x0"] > 0 else -1.0
    trained = {"epochs": 2, "batch_rows": 64, "validation_fraction": 0.0}
    return replace(case, job={**case.job, "split": {"test_fraction": 0.0}, "taylor": trained})


def ends(case: Case, probe: Probe, value: float, rate: float, **options: Any) -> bool:
    """Return True if the job of a world in which the row has this value is done."""
    data = copy.deepcopy(case.data)
    data["shop-a"][ONE_ROW]["x0"] = value
    return run(case.with_data(data).with_job(taylor__learning_rate=rate, **options), probe.authority).errors == ("",)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("value", [1.0, 3.0, 1e6])
def test_a_diverging_training_is_done(case: Case, probe: Probe, value: float, rate: float) -> None:
    assert ends(case, probe, value, rate)


@pytest.mark.parametrize(("rate", "settled"), [(1000.0, False), (0.1, True)])
def test_a_party_reports_to_its_operator_only_that_its_training_has_not_settled(
    case: Case, probe: Probe, rate: float, settled: bool
) -> None:
    with capture_logs() as logged:
        ran = run(case.with_job(taylor__learning_rate=rate, taylor__epochs=6), probe.authority)
    assert ran.errors == ("",)
    warned = any(line["event"].startswith("training has not settled") for line in logged)
    reports = [json.loads(text) for path, text in ran.kept.items() if path.endswith("report.json")]
    assert len(reports) == 3
    assert warned != settled
    assert all(report["fit"]["settled"] for report in reports) == settled


@pytest.mark.parametrize(
    "options",
    [
        {"taylor__validation_fraction": 0.2, "taylor__epochs": 6},
        {"split__test_fraction": 0.2},
        {"taylor__optimiser": "momentum", "taylor__l2": 1000.0},
        {"taylor__optimiser": "sag", "taylor__l1": 1000.0},
    ],
    ids=["with a hold-out loss", "with test rows", "momentum", "sag"],
)
def test_whatever_else_is_asked_for(case: Case, probe: Probe, options: dict[str, Any]) -> None:
    assert ends(case, probe, 3.0, 1000.0, **options)


def test_a_linkage_goes_on_where_a_value_is_no_date(probe: Probe) -> None:
    """The job's proposer decides which column holds dates. Only their owner's log has the number of invalid dates."""
    _, one_is_none = dated(a_name("shop-a", "1990011"))(SYSTEMS["taylor-linkage"](), probe)
    with capture_logs() as logged:
        assert run(one_is_none.case, probe.authority).errors == ("",)
    (line,) = [line for line in logged if line["event"].startswith("dates that are not written")]
    assert (line["field"], line["rows"], line["log_level"]) == ("name", 1, "warning")


def test_one_that_ends_at_a_bound_ends_by_what_rows_hold(
    case: Case, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = Grid.score_terms

    def refused(grid: Grid, scores: np.ndarray) -> np.ndarray:
        if np.abs(scores).max() > grid.largest_score:
            raise RangeError("the training diverges")
        return cut(grid, scores)

    monkeypatch.setattr(Grid, "score_terms", refused)
    monkeypatch.setattr(optimiser, "MOST_MOVED", 1e9)
    assert not ends(case, probe, 3.0, 1000.0)
