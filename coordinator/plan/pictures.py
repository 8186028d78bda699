"""What the plots of plans share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blindfit.coordinator.report.plots import LINE, MUTED, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_INCHES = 3.2


def figure_by_epsilon(epsilons: Sequence[float], loss: str) -> tuple[Figure, Axes]:
    """
    Args:
        loss: what is drawn against them.
    """
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("epsilon", color=MUTED)
    axes.set_ylabel(loss, color=MUTED)
    return figure, axes
