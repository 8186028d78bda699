"""Plots of a dp-lr report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blindfit.coordinator.dp_lr.figures import Figures
from blindfit.coordinator.report.plots import LINE, LOG_ODDS, MUTED, POSITIVE, Plot, figure_of, svg_of, weights_plot
from blindfit.coordinator.terminal.wording import figure, quantity

STEPS = {"none": "one", "bounds": "half its declared range", "public": "one standard deviation of the public rows"}


def model_plot(model: Mapping[str, Any] | None, facts: Figures) -> Plot | None:
    if model is None:
        return None
    plot = weights_plot(model["weights"], model["intercept"])
    note = (
        f"A step of {STEPS[facts.fit.scale]} in a feature changes {LOG_ODDS}. Intercept {figure(model['intercept'])}."
    )
    return replace(plot, note=note)


def loss_plot(facts: Figures) -> Plot | None:
    """Return a plot of the losses; None if no loss may be known."""
    if len(facts.losses) < 2:
        return None
    drawn, axes = figure_of(height_inches=2.7)
    axes.plot(range(len(facts.losses)), facts.losses, color=POSITIVE, linewidth=1.6)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("iterations done", color=MUTED)
    note = (
        f"The mean loss of the rows trained on, with noise that a share of {facts.settings.loss_share:g} of the budget "
        "paid for."
        if facts.settings.loss_share
        else f"The mean loss of {quantity(facts.rows.public, 'public row')}; that of the private rows is not released."
    )
    return Plot("Loss", note, svg_of(drawn))
