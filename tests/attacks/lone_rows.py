"""What tells of a row that stands out in its party's columns: one combination of columns is nearly that row alone.

x_i^T (X^T X)^+ g / h_i = r_i + what the other rows add, nothing where the leverage h_i is 1

The residual r_i has the label in it; how it moves from epoch to epoch is how the others' score of the row moves,
label DP or not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.taylor import leverages
from tests.attacks.views import Rows, Seen

Floats = NDArray[np.float64]


def guesses(seen: Seen) -> tuple[Rows, Floats]:
    """Of each batch the row with the largest leverage, and a guess at its label from all epochs."""
    rows, labels = [], []
    for number in sorted({view.number for view in seen.views}):
        views = seen.of_batch(number)
        columns = seen.reals(views[0].batch)
        worst = int(leverages(columns).argmax())
        alone = columns[worst] @ np.linalg.pinv(columns.T @ columns)
        rows.append(int(views[0].batch[worst]))
        labels.append(-2 * float(alone @ np.mean([seen.others(view) for view in views], axis=0)))
    return np.array(rows), np.array(labels)


def moves(seen: Seen, number: int) -> tuple[int, Floats]:
    """Of one batch the row with the largest leverage, and how 2a z of the others moves there, (epochs - 1,)."""
    views = seen.of_batch(number)
    columns = seen.reals(views[0].batch)
    found = leverages(columns)
    worst = int(found.argmax())
    alone = columns[worst] @ np.linalg.pinv(columns.T @ columns) / found[worst]
    return int(views[0].batch[worst]), np.diff([float(alone @ seen.others(view)) for view in views])
