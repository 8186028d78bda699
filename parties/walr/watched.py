"""Rows of a fit that is to end with its session: whoever reads them is asked each time whether anybody still waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.linear.logistic import Floats, Rows, RowsElsewhere, Sums
from blindfit.parties.work.long_work import StillWanted


class WatchedRows:
    """Not by an iteration's end: a solver may read the rows often before it says how far it is."""

    def __init__(self, rows: Rows, still_wanted: StillWanted) -> None:
        self._rows, self._still_wanted = rows, still_wanted
        self.n_rows, self.n_features = rows.n_rows, rows.n_features

    def blocks(self) -> Iterator[Floats]:
        for block in self._rows.blocks():
            self._still_wanted()
            yield block

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        self._still_wanted()
        return self._rows.take(which)


class WatchedElsewhere(WatchedRows, RowsElsewhere):
    """Rows that are not in this process stay where they are."""

    def __init__(self, rows: Rows, elsewhere: RowsElsewhere, still_wanted: StillWanted) -> None:
        super().__init__(rows, still_wanted)
        self._elsewhere = elsewhere

    def sum_rows(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        self._still_wanted()
        return self._elsewhere.sum_rows(function, *arguments)


def watched(rows: Rows, still_wanted: StillWanted) -> Rows:
    if isinstance(rows, RowsElsewhere):
        return WatchedElsewhere(rows, rows, still_wanted)
    return WatchedRows(rows, still_wanted)
