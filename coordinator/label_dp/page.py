"""The page of a label-dp job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.label_dp.cautions import cautions_of
from blindfit.coordinator.label_dp.figures import Figures, ReleasedEvaluation, figures_of
from blindfit.coordinator.label_dp.plots import laws_plot, plot_fit
from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import fitted_rows, label_privacy, page
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.plots import Plot, weights_plot
from blindfit.coordinator.terminal.wording import duration, figure, percent, quantity


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    model = report["models"].get(facts.active)
    drawn = report["party_reports"].get(facts.active, {}).get("plots")
    return page.render(
        "label_dp/page.html.j2",
        report,
        cautions=cautions_of(facts),
        cards=list(_cards(facts, report)),
        fitted=plot_fit(drawn["held_out"], unbiased=facts.bias.capitalize() if facts.fit.debiased else "")
        if drawn
        else None,
        laws=laws_plot(drawn["laws"]) if drawn else None,
        weights=_weights_plot(model),
        has_model=model is not None,
        evaluation=list(evaluation_lines(facts)),
        releases=measured.releases(facts),
        steps=page.steps(
            report,
            {
                "read rows": facts.timing.prepare_s,
                "send ids, get noisy labels": facts.timing.release_s,
                "fit and evaluate": facts.timing.fit_s,
            },
        ),
        parties=measured.party_rows(facts, report, facts.rows.sent),
        facts=facts,
        dropped_columns=fitted_rows.list_dropped(facts.rows),
    )


def _weights_plot(model: Mapping[str, Any] | None) -> Plot | None:
    if model is None or "weights" not in model:
        return None
    return weights_plot(model["weights"], model["intercept"], changes="the prediction by this much")


def _cards(facts: Figures, report: Mapping[str, Any]) -> Iterator[Card]:
    privacy, fit = facts.privacy, facts.fit
    yield from fitted_rows.cards(facts.rows)
    yield from label_privacy.cards(privacy)
    yield Card("Noise", figure(privacy.noise_std), f"std of a label in [{privacy.label_lo:g}, {privacy.label_hi:g}]")
    yield Card("Fit", fit.regressor, facts.bias)
    yield from _error_card(facts)
    yield Card("Time", duration(page.total_seconds(report, facts.timing)), "from start to end")


def _error_card(facts: Figures) -> Iterator[Card]:
    released = facts.on_released
    if facts.on_true is not None:
        yield Card("Mean squared error", figure(facts.on_true.mse), "on true labels")
    elif released is not None and released.gain is not None and released.gain_error is not None:
        yield Card("Gain", figure(released.gain), f"+- {figure(released.gain_error)}, in mean squared error")


def evaluation_lines(facts: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of each figure."""
    true, released = facts.on_true, facts.on_released
    if true is not None:
        rows = f"on {quantity(true.rows, 'row')} of {facts.active} with true labels, which are not in the training"
        yield "mean squared error", figure(true.mse), rows
        if true.mae is not None:
            yield "mean absolute error", figure(true.mae), "the same rows"
        yield "variance explained", percent(true.r2), "the same rows"
    if released is not None:
        yield (
            "mean squared error, noisy",
            figure(released.mse_released),
            f"against the released labels of {quantity(released.rows, 'held-out row')}, with the noise of the labels",
        )
        yield from _list_corrections(released)


def _list_corrections(released: ReleasedEvaluation) -> Iterator[tuple[str, str, str]]:
    known = (released.mse, released.mse_error, released.noise_variance, released.gain, released.gain_error)
    shown = [figure(number) for number in known if number is not None]
    if len(shown) < len(known):
        yield "mean squared error, true", "unknown", "the mechanism's bias was not removed"
        return
    mse, mse_error, noise_variance, gain, gain_error = shown
    yield "noise of a label", noise_variance, "its variance, known from the mechanism"
    yield (
        "mean squared error, true",
        f"{mse} +- {mse_error}",
        "an estimate, the first minus the second, with its standard error; no true label was used",
    )
    yield (
        "gain over a constant",
        f"{gain} +- {gain_error}",
        "an estimate of how far the model's true mean squared error is below the error of the training labels' mean: "
        "far more precise, because the noise cancels",
    )
