"""Plots of a vertical training."""

from __future__ import annotations

from collections.abc import Sequence

from blindfit.coordinator.report.plots import (
    LINE,
    MOST_MARKED_POINTS,
    MUTED,
    POSITIVE,
    Plot,
    figure_of,
    svg_of,
)
from blindfit.coordinator.terminal.wording import count


def loss_plot(losses: Sequence[float], held_out: int, *, relative: bool = False) -> Plot | None:
    """Return a plot of the losses; None if there is too little to draw.

    Args:
        relative: True if losses are shares of the first loss.
    """
    if len(losses) < 2:
        return None
    from matplotlib.ticker import MaxNLocator

    figure, axes = figure_of(height_inches=2.7)
    epochs = range(1, len(losses) + 1)
    marker = "o" if len(losses) <= MOST_MARKED_POINTS else None
    axes.plot(epochs, losses, color=POSITIVE, linewidth=1.6, marker=marker, markersize=4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, 1.08 * max(losses))  # from 0, so that a loss that hardly changes looks flat
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("epoch", color=MUTED)
    rows = f"the {count(held_out)} hold-out rows"
    note = f"The mean Taylor loss of {rows} after each epoch, as the key node saw it."
    if relative:
        note = f"The Taylor loss of the matches among {rows}, after each epoch, as a share of the loss after the first."
    return Plot("Hold-out loss", note, svg_of(figure))
