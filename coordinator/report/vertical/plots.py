"""Plots of a vertical training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blindfit.coordinator.report.plots import (
    LINE,
    LOG_ODDS,
    MOST_MARKED_POINTS,
    MUTED,
    POSITIVE,
    Plot,
    figure_of,
    svg_of,
    weights_plot,
)
from blindfit.coordinator.report.wording import count


def weight_plots(models: Mapping[str, Mapping[str, Any]]) -> list[Plot]:
    """One of each party's own columns, on one scale."""
    reach = max((abs(weight) for model in models.values() for weight in model["weights"].values()), default=0.0) or 1.0
    return [
        weights_plot(model["weights"], model.get("intercept"), f"Weights of {party}", _changes(model["model"]), reach)
        for party, model in models.items()
        if model["weights"]
    ]


def _changes(model: str) -> str:
    return LOG_ODDS if model == "logistic" else "the value by so many of its standard deviations"


def loss_plot(losses: Sequence[float], held_out: int) -> Plot | None:
    """None where there is too little to draw."""
    if len(losses) < 2:
        return None
    from matplotlib.ticker import MaxNLocator

    figure, axes = figure_of(height_inches=2.7)
    epochs = range(1, len(losses) + 1)
    marker = "o" if len(losses) <= MOST_MARKED_POINTS else None
    axes.plot(epochs, losses, color=POSITIVE, linewidth=1.6, marker=marker, markersize=4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("epoch", color=MUTED)
    note = f"The mean Taylor loss of the {count(held_out)} hold-out rows after each epoch, as the key node saw it."
    return Plot("Hold-out loss", note, svg_of(figure))
