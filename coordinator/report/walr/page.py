"""The page of a WALR job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.report import label_dp, page
from blindfit.coordinator.report.page import Card, PartyRow
from blindfit.coordinator.report.plots import Plot, objective_plot, weights_plot
from blindfit.coordinator.report.reading import process_of
from blindfit.coordinator.report.walr.cautions import cautions_of
from blindfit.coordinator.report.walr.figures import Figures, figures_of
from blindfit.coordinator.report.wording import count, counted, duration, figure, percent


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    model = report["models"].get(facts.active)
    return page.render(
        "walr/page.html.j2",
        report,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        weights=weights_plot(model["weights"], model["intercept"]) if model else None,
        model_weights=_weights(facts.active, model["weights"]) if model else [],
        convergence=_convergence(report["party_reports"].get(facts.active, {})),
        releases=f"{counted(facts.privacy.releases, 'release')}, this one included.",
        steps=page.bars(_steps(facts, report["seconds"])),
        parties=[_party_row(facts, report, name) for name in report["parties"]],
        facts=facts,
        dropped_columns=_dropped(facts),
    )


def _weights(owner: str, weights: Mapping[str, float]) -> list[tuple[str, str, float]]:
    return [(owner, name, weight) for name, weight in sorted(weights.items(), key=lambda item: -abs(item[1]))]


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    rows, privacy, fit = facts.rows, facts.privacy, facts.fit
    yield Card("Rows trained on", count(rows.trained), f"{count(rows.held_out)} held out")
    dropped = len(rows.dropped_columns)
    yield Card("Features", count(rows.features), f"{count(dropped)} constant dropped" if dropped else "none dropped")
    yield from label_dp.cards(privacy)
    yield Card("Noise", figure(privacy.noise_std_of_mean), "standard deviation of a mean")
    ended = "converged" if fit.converged else "did not converge"
    yield Card("Iterations", count(fit.iterations), f"{fit.solver}, {ended}")
    yield Card("Time", duration(total_seconds(facts, report)), "from start to end")
    mean = report["party_reports"].get(facts.active, {}).get("fit", {}).get("mean_prediction")
    if isinstance(mean, float):
        yield Card("Mean prediction", percent(mean), "on the held-out rows")
    else:
        yield Card("Regulariser", figure(fit.l2), "l2")


def _convergence(own_report: Mapping[str, Any]) -> Plot | None:
    history = own_report.get("fit", {}).get("objective_history", [])
    return objective_plot([float(value) for value in history])


def _steps(facts: Figures, seconds: Mapping[str, float]) -> dict[str, float | None]:
    timing = facts.timing
    return {
        "start the processes": seconds.get("launch"),
        "connect and agree": seconds.get("set_up"),
        "read and prepare rows": timing.prepare_s,
        "send rows, get the noisy sum": timing.aggregate_s,
        "fit": timing.fit_s,
    }


def total_seconds(facts: Figures, report: Mapping[str, Any]) -> float:
    return page.total_seconds(report, vars(facts.timing))


def _party_row(facts: Figures, report: Mapping[str, Any], name: str) -> PartyRow:
    is_active = name == facts.active
    rows = facts.rows.sent if is_active else process_of(report, name).dataset_rows
    return page.party_row(report, name, rows=rows, has_model=is_active)


def _dropped(facts: Figures) -> list[tuple[str, str]]:
    dropped = facts.rows.dropped_columns
    return [("constant columns, dropped", ", ".join(dropped))] if dropped else []
