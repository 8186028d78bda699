"""Common parts of the plots of plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blindfit.coordinator.report.plots import LINE, MUTED, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_INCHES = 3.2
MOST_LABELS = 10  # on the axis of epsilons: more would collide


def _labels(epsilons: Sequence[float]) -> list[str]:
    """Return a text for each epsilon, in ascending order; an empty text if it would cover its neighbour's."""
    least = math.log(epsilons[-1] / epsilons[0]) / MOST_LABELS
    labels, last = list[str](), 0.0
    for epsilon in epsilons:
        has_room = not last or math.log(epsilon / last) >= least
        labels.append(f"{epsilon:g}" if has_room else "")
        last = epsilon if has_room else last
    return labels


def figure_by_epsilon(epsilons: Sequence[float], loss: str) -> tuple[Figure, Axes]:
    """Return a figure and its axes.

    Args:
        loss: name of the quantity that the figure shows for each epsilon.
    """
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.set_xscale("log")
    axes.set_xticks(epsilons, _labels(epsilons))
    axes.minorticks_off()
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("epsilon", color=MUTED)
    axes.set_ylabel(loss, color=MUTED)
    return figure, axes
