"""Size of what benchmarks.gradients measures, and the form in which its modules print it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tests.attacks.lattices import BLOCKS

Found = TypeVar("Found")


@dataclass(frozen=True)
class Effort:
    """
    Attributes:
        data_sets: number of data sets of each attack.
        many: number of data sets for a mean of small gains, or for the worst of several.
        attacked: number of lone rows; a data set has a few.
        draws: number of draws of the noise and of the rows' order, for the joint model.
        rows: rows of a batch in an attack by lattices, more than MANY_CANDIDATES.
        blocks: block sizes of the lattice reductions, after LLL.
        epochs: epochs of the training from which a column is read.
        batch_rows: batch sizes in an attack by least squares.
        again: number of trainings on the same labels.
        epsilons: epsilons of label DP.
    """

    data_sets: int
    many: int
    attacked: int
    draws: int
    rows: int
    blocks: tuple[int, ...]
    epochs: int
    batch_rows: tuple[int, ...]
    again: int
    epsilons: tuple[float, ...]


FULL = Effort(5, 20, 100, 61, 96, BLOCKS, 50, (128, 256, 512), 10, (0.5, 1.0, 8.0))
QUICK = Effort(1, 1, 1, 1, 64, (), 1, (256,), 2, (1.0,))


def timed(run: Callable[..., Found], *arguments: Any, **options: Any) -> tuple[Found, float]:
    """Return the result of a call, and the processor time that it took on one core."""
    started = time.process_time()
    return run(*arguments, **options), time.process_time() - started


def mean(figures: Iterable[float]) -> float:
    return round(float(np.mean(list(figures))), 4)


def in_full(found: dict[str, Any]) -> str:
    """Return a text like "128 of 128 in 5 of 5, 0.2 to 1.4 s"."""
    rows, right, seconds = found["rows"], found["right"], found["seconds"]
    complete = sum(some == all_ for some, all_ in zip(right, rows, strict=True))
    least, of = min(zip(right, rows, strict=True), key=lambda pair: pair[0] / pair[1])
    said = f"{of} of {of} in {complete} of {len(rows)}, {min(seconds):.1f} to {max(seconds):.1f} s"
    return said if complete == len(rows) else f"{said}, at least {least}"
