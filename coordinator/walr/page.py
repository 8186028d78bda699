"""The page of a WALR job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import fitted_rows, label_privacy, page
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.plots import Plot, objective_plot, weights_plot
from blindfit.coordinator.terminal.wording import count, duration, figure, percent
from blindfit.coordinator.walr.cautions import cautions_of
from blindfit.coordinator.walr.figures import Figures, figures_of


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    model, models = report["models"].get(facts.active), report["models"]
    return page.render(
        "walr/page.html.j2",
        report,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        weights=weights_plot(_weights(models), model["intercept"]) if model else None,
        model_weights=page.all_weights(models),
        convergence=_convergence(report["party_reports"].get(facts.active, {})),
        releases=measured.releases(facts),
        steps=page.steps(
            report,
            {
                "read and prepare rows": facts.timing.prepare_s,
                "send rows, get the noisy sum": facts.timing.aggregate_s,
                "fit": facts.timing.fit_s,
            },
        ),
        parties=measured.party_rows(facts, report, facts.rows.sent, facts.sent_by_holders),
        facts=facts,
        dropped_columns=fitted_rows.list_dropped(facts.rows),
    )


def _weights(models: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights of all parts that are here. With several parts, a column's name includes its party."""
    if len(models) == 1:
        (model,) = models.values()
        return dict(model["weights"])
    return {f"{party}: {name}": weight for party, model in models.items() for name, weight in model["weights"].items()}


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    privacy, fit = facts.privacy, facts.fit
    yield from fitted_rows.cards(facts.rows)
    yield from label_privacy.cards(privacy)
    yield Card("Noise", figure(privacy.noise_std_of_mean), "standard deviation of a mean")
    ended = "converged" if fit.converged else "did not converge"
    yield Card("Iterations", count(fit.iterations), f"{fit.solver}, {ended}")
    yield Card("Time", duration(page.total_seconds(report, facts.timing)), "from start to end")
    mean = report["party_reports"].get(facts.active, {}).get("fit", {}).get("mean_prediction")
    if isinstance(mean, float):
        yield Card("Mean prediction", percent(mean), "on the held-out rows")
    else:
        yield Card("Regulariser", figure(fit.l2), "l2")


def _convergence(own_report: Mapping[str, Any]) -> Plot | None:
    history = own_report.get("fit", {}).get("objective_history", [])
    return objective_plot([float(value) for value in history])
