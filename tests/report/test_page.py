"""report.html: one file, nothing to load, nothing to run, and the privacy statement last."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.jobs.party_page import render_party
from blindfit.coordinator.report.plots import objective_plot, weights_plot
from tests.each_case import each_case
from tests.report.conftest import MadeUp
from tests.report.pages import (
    HOSTILE,
    Elements,
    check_it_ends_with_the_privacy_statement,
    check_nothing_is_loaded_or_run,
)
from tests.reports import write_report


def test_the_page_shows_the_key_figures(page) -> None:
    text = Elements(page()).text
    for shown in ("14,130", "6,056 held out", "at delta 1e-05", "0.002323", "182 MiB", "96 MiB", "1.18 MiB", "31.2%"):
        assert shown in text
    for heading in ("Weights", "Convergence", "Privacy budget", "Time", "Parties", "The job, with every default"):
        assert heading in text
    assert "walr.frac_bits" in text


def test_nothing_is_loaded_or_run(page) -> None:
    check_nothing_is_loaded_or_run(page(), plots=2)


def test_it_ends_with_the_privacy_statement(page) -> None:
    check_it_ends_with_the_privacy_statement(page())


def test_names_are_escaped(made_up: MadeUp) -> None:
    made_up.name = HOSTILE
    made_up.weights = {HOSTILE: 0.5, "a]]>-->": 0.1, "price $x^2$": -0.25}
    made_up.write_party()
    session = made_up.session(
        rows__dropped_columns=(HOSTILE,), fit__feasible=False, fit__feasibility=HOSTILE, privacy__population=HOSTILE
    )
    session.job.parties["insurer"] = session.job.parties["insurer"].model_copy(update={"dataset": HOSTILE})
    written = write_report(session, made_up.out, ["insurer"]).html_path.read_text("utf-8")
    elements = Elements(written)
    assert "script" not in elements.tags
    assert elements.text.count(HOSTILE) >= 7  # title, heading, plot, table, caution, job, statement
    assert "price $x^2$" in html.unescape(written)  # read as a name, not as a formula


def test_hostile_text_in_a_plot() -> None:
    svg = str(weights_plot({"</svg><script>": 1.0, "a & b": 2.0}, None).svg)
    elements = Elements(svg)
    assert "script" not in elements.tags
    assert "</svg><script>" in elements.text
    assert "a & b" in elements.text


def test_a_submitted_jobs_page_says_where_the_model_is(made_up: MadeUp) -> None:
    written = write_report(made_up.session(), made_up.out, []).html_path.read_text("utf-8")
    elements = Elements(written)
    assert "svg" not in elements.tags
    assert "This page holds no weight" in elements.text
    assert f"models/{made_up.report['session']}" in elements.text
    assert "All weights" not in elements.text


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({"fit__feasible": False, "fit__feasibility": "column 2 is outside"}, "column 2 is outside"),
        ({"fit__converged": False, "fit__reason": "out of iterations"}, "did not converge in 4 iterations: out of it"),
        ({"rows__not_counted": 3}, "3 rows of 14,133 did not count"),
        ({"rows__not_counted": 3, "privacy__max_rows_per_person": 2}, "their person already had 2 rows"),
        ({"rows__clipped": 1413}, "1,413 rows (10%) were longer than the norm bound 8.8"),
        ({"privacy__delta": 1e-4}, "delta = 0.0001 is not below one in the number of rows"),
    ],
)
def test_cautions(page, changes, caution: str) -> None:
    text = Elements(page(**changes)).text
    assert "Read this first" in text
    assert caution in text


def test_no_caution_where_all_is_well(page) -> None:
    assert "Read this first" not in page()
    assert "Read this first" not in page(rows__clipped=706)  # 5% of 14,130 is 706.5


def test_the_budgets_bar(page) -> None:
    written = page(privacy__spent_epsilon=3.0, privacy__releases=5)
    assert 'style="width: 75.00%"' in written
    assert "5 releases" in Elements(written).text
    assert 'style="width: 100.00%"' in page(privacy__spent_epsilon=9.0)  # a budget that was lowered since


# --- plots -----------------------------------------------------------------------------------------------


def test_the_largest_weights_are_on_top() -> None:
    weights = {f"f{i}": (-1) ** i * float(i) for i in range(40)}
    plot = weights_plot(weights, -0.5)
    labels = re.findall(r">(f\d+)<", plot.svg)
    assert labels == [f"f{i}" for i in range(39, 9, -1)]
    assert "The 30 largest of 40" in plot.note
    assert "Intercept -0.5" in plot.note
    assert "var(--accent)" in plot.svg
    assert "var(--accent-2)" in plot.svg
    assert not re.search(r"#0[1-5]0[1-5]0[1-5]", plot.svg)


@each_case("history", [[], [0.7], [0.7, 0.6], [0.6, 0.6, 0.6], [0.6, 0.5, 0.5]])
def test_no_convergence_plot_of_nothing(history: list[float]) -> None:
    assert objective_plot(history) is None


def test_a_long_history_is_drawn() -> None:
    plot = objective_plot([0.5 + 0.9**i for i in range(2000)])
    assert plot is not None
    assert len(plot.svg) < 60_000


# --- a party's own page ------------------------------------------------------------------------------------


def test_a_partys_own_page(made_up: MadeUp, tmp_path: Path) -> None:
    directory = made_up.write_party(tmp_path / "own")
    render_party(directory)
    elements = Elements((directory / "report.html").read_text("utf-8"))
    assert elements.tags.count("svg") == 2
    for shown in ("age", "privacy.epsilon", "What clinic (measurement server) learnt", "model.json"):
        assert shown in elements.text


def test_a_partys_own_page_without_its_model(made_up: MadeUp, tmp_path: Path) -> None:
    directory = made_up.write_party(tmp_path / "own")
    (directory / "model.json").unlink()
    render_party(directory)
    assert "Convergence" in (directory / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("report.json", None, "cannot be read"),
        ("report.json", "{", "is not JSON"),
        ("report.json", "[]", "is not a table"),
        ("report.json", "{}", "is not the report of an active or a passive party"),
        ("report.json", '{"parties": {}}', "is a whole job's report"),
        ("model.json", "{}", "format: not"),
    ],
)
def test_a_partys_broken_files(made_up: MadeUp, tmp_path: Path, name: str, content: str | None, message: str) -> None:
    directory = made_up.write_party(tmp_path / "own")
    if content is None:
        (directory / name).unlink()
    else:
        (directory / name).write_text(content)
    with pytest.raises(DataError, match=message) as raised:
        render_party(directory)
    assert str(directory / name) in str(raised.value)
    assert not (directory / "report.html").exists()
