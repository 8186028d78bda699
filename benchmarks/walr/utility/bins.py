"""Features cut into bins in benchmarks.walr.utility, only from the public features of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.walr.utility.data import PARTS
from benchmarks.walr.utility.means import DEFAULT_WALR
from benchmarks.walr.utility.task import Arm, Floats, Option, Predict, Task

MOST_ROWS = 300_000  # with more, the indicators in floats are too much for a small machine

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Binned:
    """Bins of each feature, only from the training rows' features.

    Args:
        codes: bin of each row for each part, (features, rows).
        sizes: number of bins of each feature.
        means: training rows' mean of a feature's columns in each bin, (bins, columns) for each feature.
    """

    codes: dict[str, Codes]
    sizes: tuple[int, ...]
    means: tuple[Floats, ...]

    @classmethod
    def of(cls, task: Task, bins: int) -> Binned:
        coded = [codes_of(task, group, bins) for group in task.groups]
        sizes = tuple(max(int(codes[part].max()) for part in PARTS) + 1 for codes in coded)
        means = [
            bin_means(codes["train"], task.columns["train"][:, list(group)], size)
            for codes, group, size in zip(coded, task.groups, sizes, strict=True)
        ]
        return cls({part: np.stack([codes[part] for codes in coded]) for part in PARTS}, sizes, tuple(means))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The features that have one column."""
        return tuple(number for number, mean in enumerate(self.means) if mean.shape[1] == 1)

    def flattened(self, part: str) -> Floats:
        """Return (rows, columns), with every feature replaced by its bin's mean."""
        return np.hstack([mean[codes] for mean, codes in zip(self.means, self.codes[part], strict=True)])


def codes_of(task: Task, group: tuple[int, ...], bins: int) -> dict[str, Codes]:
    """Return the bin of each row, for each part."""
    if len(group) > 1:  # indicators: the category's number, 0 where none is set
        lows = [task.columns["train"][:, column].min() for column in group]
        return {
            part: sum(
                (columns[:, column] > low) * rank for rank, (column, low) in enumerate(zip(group, lows, strict=True), 1)
            )
            for part, columns in task.columns.items()
        }
    values = task.columns["train"][:, group[0]]
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="higher"))
    edges = edges[edges > values.min()]
    return {part: np.searchsorted(edges, columns[:, group[0]], "right") for part, columns in task.columns.items()}


def bin_means(codes: Codes, columns: Floats, size: int) -> Floats:
    rows = np.maximum(np.bincount(codes, minlength=size), 1)
    return np.column_stack([np.bincount(codes, column, size) / rows for column in columns.T])


def with_constant(columns: NDArray[Any]) -> NDArray[Any]:
    return np.hstack([columns, np.ones((len(columns), 1), columns.dtype)])


def bin_indicators(binned: Binned, part: str) -> NDArray[np.uint8]:
    return np.hstack(
        [
            (codes[:, None] == np.arange(size)).astype(np.uint8)
            for codes, size in zip(binned.codes[part], binned.sizes, strict=True)
        ]
    )


# --- WALR on bins ---------------------------------------------------------------------------------------


class BinnedWalr(Arm):
    """WALR with its defaults, on indicators of the bins in place of features; so rows have another norm, and noise."""

    title = "WALR, 8 bins"

    def options(self, task: Task) -> tuple[Option, ...]:
        return self.grid if task.n_rows <= MOST_ROWS else ()

    def fit(self, task: Task, epsilon: float, _option: Option, seed: int) -> Predict:
        return DEFAULT_WALR.fit(task.once("indicators", lambda: of_indicators(task, 8)), epsilon, {}, seed)


def of_indicators(task: Task, bins: int) -> Task:
    binned = Binned.of(task, bins)
    features = {part: bin_indicators(binned, part).astype(np.float64) for part in PARTS}
    return Task.of_parts(f"{task.name}, {bins} bins", (), features, task.labels)
