"""report.json is strict and complete, and has nothing that the coordinator may not know."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import DataError, MalformedMessage
from blindfit.algorithms.statistics.linear.solver_settings import FitResult
from blindfit.algorithms.statistics.walr.defaults import Feasibility
from blindfit.algorithms.statistics.walr.fit import WalrFit
from blindfit.coordinator.report.content import nest
from blindfit.coordinator.walr.figures import figures_of
from blindfit.parties.measurement.servers import Released
from blindfit.parties.walr import report as active
from tests.report.conftest import PARTY_REPORT, SESSION, MadeUp
from tests.report.pages import check_nothing_is_kept_of_models
from tests.reports import write_report


def test_a_run_here_holds_everything(made_up: MadeUp) -> None:
    made_up.write_party()
    written = write_report(made_up.session(), made_up.out, ["insurer", "clinic"])
    assert written.json_path == made_up.out / "report.json"
    content = json.loads(written.json_path.read_text())
    assert content["session"] == SESSION
    assert (content["name"], content["protocol"], content["state"]) == ("walr", "walr", "DONE")
    assert content["seconds"] == {"launch": 1.2, "set_up": 0.3, "job": 2.5}
    assert content["job"]["walr"]["frac_bits"] == "auto"  # a default
    assert "coordinator" not in content["job"]  # options without a value are not there either
    assert content["parties"]["clinic"]["role"] == "measurement"
    assert content["parties"]["clinic"]["dataset"] == "visits"
    assert content["parties"]["insurer"]["summary"]["rows"] == PARTY_REPORT["rows"]
    assert content["models"] == {"insurer": made_up.model()}
    assert content["party_reports"] == {"insurer": made_up.report}
    assert {section["topic"] for section in content["privacy_statement"]} >= {"unit", "epsilon", "collusion"}


def test_a_submitted_job_holds_no_model_even_where_one_lies(made_up: MadeUp) -> None:
    made_up.write_party()
    written = write_report(made_up.session(), made_up.out, [])
    secrets = ("0.713211", "0.71321", "0.931745", "0.9317", "objective_history", "0.312")
    check_nothing_is_kept_of_models(written, secrets)


def test_without_a_model_the_report_is_written_all_the_same(made_up: MadeUp) -> None:
    written = write_report(made_up.session(), made_up.out, ["insurer", "clinic"])
    assert written.content["models"] == {}
    assert "No model of this session was found" in written.html_path.read_text("utf-8")


def test_files_of_an_earlier_run_are_not_this_ones(made_up: MadeUp) -> None:
    made_up.report["session"] = "walr-earlier"
    made_up.write_party()
    content = write_report(made_up.session(), made_up.out, ["insurer"]).content
    assert content["models"] == content["party_reports"] == {}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_does_not_have(made_up: MadeUp, number: float) -> None:
    with pytest.raises(DataError, match=r"the report: parties\.insurer\.summary\.fit\.gradient_norm is not a finite"):
        write_report(made_up.session(fit__gradient_norm=number), made_up.out, [])
    assert not made_up.out.exists()  # nothing half-written


def test_no_such_number_from_a_partys_own_file(made_up: MadeUp) -> None:
    made_up.write_party()
    made_up.report["fit"]["objective_history"][1] = math.nan
    (made_up.out / "insurer" / "report.json").write_text(json.dumps(made_up.report))
    with pytest.raises(DataError, match=r"party_reports\.insurer\.fit\.objective_history\.1 is not a finite"):
        write_report(made_up.session(), made_up.out, ["insurer"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy__epsilon": "much"}, "the report of insurer: privacy.epsilon is not a finite number"),
        ({"rows__trained": 1.5}, "the report of insurer: rows.trained is not an integer"),
        ({"fit__converged": 1}, "the report of insurer: fit.converged is not true or false"),
        ({"peak_memory_mib": "big"}, "the report of insurer: peak_memory_mib is not a finite number"),
        ({"privacy__epsilon": 1e308}, "the report of insurer: privacy.epsilon is not from 0 to 700"),
        ({"privacy__budget_epsilon": 0.0}, "the report of insurer: privacy.budget_epsilon is not at least 1e-300"),
    ],
)
def test_a_summary_of_another_type_names_party_and_figure(made_up: MadeUp, changes, message: str) -> None:
    with pytest.raises(DataError) as raised:
        write_report(made_up.session(**changes), made_up.out, [])
    assert str(raised.value) == message
    assert not made_up.out.exists()


def test_no_promise_without_its_figures(made_up: MadeUp) -> None:
    session = made_up.session()
    del session.summaries["insurer"]["privacy.sensitivity"]
    with pytest.raises(DataError, match=r"the report of insurer: privacy\.sensitivity is missing"):
        write_report(session, made_up.out, [])


@pytest.mark.parametrize("flat", [{"a": 1, "a.b": 2}, {"a.b": 1, "a": 2}])
def test_a_name_is_a_value_or_a_table(flat) -> None:
    with pytest.raises(MalformedMessage) as raised:
        nest(flat, "insurer")
    assert raised.value.culprit == "insurer"


def test_text_of_a_peer_does_not_steer_a_terminal(made_up: MadeUp) -> None:
    content = write_report(made_up.session(fit__reason="\x1b[2J" + "x" * 1000), made_up.out, []).content
    reason = figures_of(content).fit.reason
    assert reason.isprintable()
    assert len(reason) == 300


def test_what_the_active_party_reports_is_understood(made_up: MadeUp) -> None:
    """The test compares PARTY_REPORT, its stand-in in these tests, with the shape of the real report."""
    made, report = _report_of_the_active_party()
    for table in ("rows", "privacy", "fit"):
        assert report[table].keys() == PARTY_REPORT[table].keys()
    assert report.keys() == PARTY_REPORT.keys()
    session = made_up.session()
    session.summaries["insurer"] = made.fields_for_coordinator()
    facts = figures_of(write_report(session, made_up.out, []).content)
    assert (facts.rows.trained, facts.rows.not_counted, facts.rows.sent) == (90, 10, 100)
    assert (report["rows"]["dropped_columns"], report["rows"]["clipped"]) == (["same"], 1)
    assert (facts.rows.features, facts.rows.dropped_columns, facts.rows.clipped) == (3, None, None)
    assert facts.privacy.sensitivity == 2.0
    assert facts.fit.feasible is None


def _report_of_the_active_party() -> tuple[active.WalrReport, dict[str, Any]]:
    answer = SimpleNamespace(
        rows_kept=90,
        rows_unknown=0,
        unit="the label of one row",
        neighbours="one row's label changes",
        sensitivity=2.0 * 2**16,
        noise_std=4.0 * 2**16,
        receipt=b"{}",
    )
    request = SimpleNamespace(
        key="",
        n_rows=100,
        frac_bits=16,
        epsilon=1.0,
        delta=1e-5,
        mechanism="analytic",
        norm_bound=2 * 2**16,
        max_rows_per_person=0,
        request_id="id",
        snapshot="1",
    )
    budget = SimpleNamespace(population="people", epsilon=4.0, delta=1e-5, spent_epsilon=1.0, releases=1)
    result = FitResult("newton", np.zeros(2), 3, True, 1e-9, (0.7, 0.6), 300, "the tolerance was reached")
    fitted = SimpleNamespace(
        fit=WalrFit(result, 0.1, "project", Feasibility(None, "nothing was proved")),
        noise_std=0.04,
    )
    session = SimpleNamespace(
        id=SESSION,
        me=SimpleNamespace(name="insurer", role="active"),
        parameters={"protocol": "walr"},
        job=SimpleNamespace(walr=SimpleNamespace(mu="as-released")),
    )
    prepared = SimpleNamespace(
        test_ids=[],
        rows_clipped=1,
        standardiser=SimpleNamespace(columns=("a", "b", "same"), dropped=("same",)),
    )
    server, aggregate = SimpleNamespace(), SimpleNamespace(answer=answer, bytes_sent=10, messages_sent=2)
    released = Released([server], aggregate, [request], [aggregate], [budget])  # type: ignore[list-item, arg-type]
    laps = {"prepare_s": 0.1, "aggregate_s": 0.2, "fit_s": 0.3}
    made = active.report_of(prepared, released, fitted, np.zeros(0), laps)  # type: ignore[arg-type]
    return made, made.content(session)  # type: ignore[arg-type]
