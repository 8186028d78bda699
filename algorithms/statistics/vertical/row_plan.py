"""The plan of the common rows: training rows in batches, rows of the hold-out loss, test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError

Rows = npt.NDArray[np.int64]
BATCH_SIZES, LEAST_BATCHES = (512, 256, 128), 4  # take the first size with at least so many batches in an epoch
LARGE_BATCH_SIZES = (2048, *BATCH_SIZES)  # for a descent that goes far in few steps


def suitable_batch_rows(n_train: int, sizes: Sequence[int] = BATCH_SIZES) -> int:
    """Return the largest suitable batch size; it follows from public facts.

    The larger a batch, the less it reveals of each row, for every score of a party's own; but an epoch of too few steps
    learns little.
    """
    return next(size for size in sizes if n_train >= LEAST_BATCHES * size or size == sizes[-1])


def count_held_out(n_rows: int, test_fraction: float, validation_fraction: float) -> tuple[int, int]:
    """Return the numbers of test rows and validation rows."""
    return round(n_rows * test_fraction), round(n_rows * validation_fraction)


@dataclass(frozen=True, slots=True, repr=False)
class RowPlan:
    """Positions of the common rows for training (in batches), for the hold-out loss and for the test; public."""

    batches: tuple[Rows, ...]
    validation: Rows
    test: Rows

    @classmethod
    def of(
        cls,
        order: Rows,
        *,
        test_fraction: float,
        validation_fraction: float,
        batch_rows: int | None,
        batch_sizes: Sequence[int] = BATCH_SIZES,
        table: str = "taylor",
    ) -> RowPlan:
        """Return the parts of rows that stand in a random order.

        The order is drawn once and kept, because batches that are shuffled again reveal labels. The size of each part
        depends only on the number of rows. Without `batch_rows`, the batches have `suitable_batch_rows` of
        `batch_sizes`.

        Args:
            table: the job's table that has `validation_fraction`.

        Raises:
            DataError: a part would be empty.
        """
        n_rows = len(order)
        n_test, n_validation = count_held_out(n_rows, test_fraction, validation_fraction)
        train = order[n_test + n_validation :]
        validation = f"{table}.validation_fraction"
        if not len(train):
            raise DataError(
                f"no row of {n_rows} common rows is left to train on", hint=f"lower split.test_fraction or {validation}"
            )
        if validation_fraction > 0 and not n_validation:
            raise DataError(
                f"{n_rows} common rows are too few to hold out a share of {validation_fraction:g}",
                hint=f"set {validation} = 0, or raise it",
            )
        batch_rows = batch_rows or suitable_batch_rows(len(train), batch_sizes)
        ends = np.cumsum(rows_of_batches(len(train), batch_rows))
        batches = np.split(train, ends[:-1])
        return cls(tuple(batches), order[n_test : n_test + n_validation], order[:n_test])

    @property
    def train(self) -> Rows:
        return np.concatenate(self.batches)


def rows_of_batches(n_train: int, batch_rows: int) -> list[int]:
    """Return the rows of each batch, when a job asks for batches of `batch_rows` and trains on `n_train` rows.

    A small batch reveals more about each row. So the rows that are left over join the last batch. If they are half a
    batch or more, they make one more batch, and all batches get nearly equal sizes.
    """
    whole, left = divmod(n_train, batch_rows)
    if whole and left < batch_rows / 2:
        return [batch_rows] * (whole - 1) + [batch_rows + left]
    each, larger = divmod(n_train, whole + 1)
    return [each + 1] * larger + [each] * (whole + 1 - larger)
