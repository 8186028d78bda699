"""Find an id that occurs twice, in rows that come in batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.id_hash import HashKeys, hash_texts
from blindfit.parties.data.row_batch import RowBatch
from blindfit.parties.data.source import Source


class DuplicateSearch:
    """Search for ids that occur twice, during another pass over the rows. It needs 24 bytes of memory for each row."""

    def __init__(self) -> None:
        self._keys = HashKeys.random()
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]] = []

    def add(self, batch: RowBatch) -> None:
        self._parts.append((batch.rows, *hash_texts(batch.ids, self._keys)))

    def first(self) -> tuple[int, int] | None:
        """Return the first row whose id an earlier row has: (the earlier row, this row), or None."""
        rows, high, low = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        in_order = np.sort(high)
        if not (in_order[1:] == in_order[:-1]).any():
            return None
        order = np.lexsort((rows, low, high))
        high, low, rows = high[order], low[order], rows[order]
        again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
        if not again.size:
            return None
        first = again[np.argmin(rows[again + 1])]
        return int(rows[first]), int(rows[first + 1])

    def refuse_duplicates(self, source: Source) -> None:
        """Raise the DataError that names both rows of the first duplicate."""
        if found := self.first():
            raise duplicate_error(source, *found)


def duplicate_error(source: Source, earlier: int, later: int) -> DataError:
    return source.origin.error(
        f"the id is that of {source.origin.locate(earlier)} again",
        row=later,
        column=source.settings.id,
        hint="remove one of the rows: an id names one row, and white space around an id does not count",
    )
