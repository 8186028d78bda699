"""A grid of three points for a training in shares."""

from __future__ import annotations

from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.selection import Point, Selection, SelectionFigure


def grid(by: SelectionFigure = "log_loss", folds: int = 3, rate: float = 0.5, epochs: int = 4) -> Selection:
    points = [
        Point((("l2", l2),), OptimiserSettings(learning_rate=rate, l2=l2, l1=l1), epochs)
        for l2, l1 in ((1.5, 0.0), (0.02, 0.0), (0.02, 0.05))
    ]
    return Selection(folds, by, tuple(points))
