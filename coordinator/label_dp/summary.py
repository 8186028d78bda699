"""The lines of the terminal after a label-dp job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.label_dp.figures import Figures, figures_of
from blindfit.coordinator.report import fitted_rows, label_privacy, page
from blindfit.coordinator.terminal.wording import count, duration, figure


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    rows, privacy, fit = facts.rows, facts.privacy, facts.fit
    yield "job", f"{report['name']} ({report['session']})"
    yield fitted_rows.summary(rows)
    yield "features", count(rows.features)
    yield label_privacy.summary(privacy)
    yield "mechanism", f"{privacy.mechanism}, standard deviation {figure(privacy.noise_std)} on each label"
    yield "fit", f"{fit.regressor}, {facts.bias}"
    yield from _evaluation(facts)
    yield label_privacy.budget_summary(privacy)
    yield "time", duration(page.total_seconds(report, facts.timing))


def _evaluation(facts: Figures) -> Iterator[tuple[str, str]]:
    if facts.on_true is not None:
        yield "error", f"mean squared {figure(facts.on_true.mse)}, on {count(facts.on_true.rows)} true labels"
    released = facts.on_released
    if released is None:
        return
    if released.gain is None or released.gain_error is None:
        yield "error", f"mean squared {figure(released.mse_released)} against noisy labels, with their bias and noise"
        return
    yield (
        "gain",
        f"mean squared error {figure(released.gain)} +- {figure(released.gain_error)} below the error of a constant, "
        f"estimated from {count(released.rows)} noisy labels",
    )
