"""Consecutive rows of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False, eq=False)
class RowBatch:
    """Consecutive rows. A batch is empty only if `missing = "drop"` removed all of its rows.

    Attributes:
        rows: int64 (n,), the 1-based data row of each.
        ids: `pyarrow.StringArray` of n, in one spelling.
        persons: `pyarrow.StringArray` of n, in one spelling.
        labels: uint8 (n,) in {0, 1}, or float64 (n,), or uint64 (n,), shares modulo 2^61 - 1.
        features: float64 (n, k), C-contiguous.
    """

    rows: NDArray[np.int64]
    ids: Any
    persons: Any | None
    labels: NDArray[Any] | None
    features: NDArray[np.float64]

    @property
    def first_row(self) -> int:
        return int(self.rows[0])

    def __len__(self) -> int:
        return len(self.rows)


def take(batch: RowBatch, kept: NDArray[np.int64]) -> RowBatch:
    """Return some of the rows, by their places in the batch."""
    return RowBatch(
        rows=batch.rows[kept],
        ids=batch.ids.take(pa.array(kept)),
        persons=None if batch.persons is None else batch.persons.take(pa.array(kept)),
        labels=None if batch.labels is None else batch.labels[kept],
        features=batch.features[kept],
    )


def in_equal_batches(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Yield the same rows, `size` at a time, so that every kind of source gives the same batches."""
    held: list[Any] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        while n_held >= size:
            table = pa.Table.from_batches(held)
            yield _one_batch(table.slice(0, size))
            held = table.slice(size).to_batches()
            n_held -= size
    if n_held:
        yield _one_batch(pa.Table.from_batches(held))


def _one_batch(table: Any) -> Any:
    return table.combine_chunks().to_batches()[0]
