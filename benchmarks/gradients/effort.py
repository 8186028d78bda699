"""How much benchmarks.gradients measures, and how its modules put it."""

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
        data_sets: of each attack.
        many: of what is a mean of small gains, or the worst of several.
        attacked: of lone rows, of which a data set has a few.
        draws: of the noise and of the rows' order, for the joint model.
        rows: of a batch that lattices are tried on, more than MANY_CANDIDATES.
        blocks: of the lattice reductions, after LLL.
        epochs: of the training that a column is read from.
        batch_rows: that least squares is tried on.
        again: trainings on the same labels.
        epsilons: of label DP.
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
    """What it found, and the processor time that it took: of one core."""
    started = time.process_time()
    return run(*arguments, **options), time.process_time() - started


def mean(figures: Iterable[float]) -> float:
    return round(float(np.mean(list(figures))), 4)


def in_full(found: dict[str, Any]) -> str:
    """Such as: 128 of 128 in 5 of 5, 0.2 to 1.4 s."""
    rows, right, seconds = found["rows"], found["right"], found["seconds"]
    complete = sum(some == all_ for some, all_ in zip(right, rows, strict=True))
    least, of = min(zip(right, rows, strict=True), key=lambda pair: pair[0] / pair[1])
    said = f"{of} of {of} in {complete} of {len(rows)}, {min(seconds):.1f} to {max(seconds):.1f} s"
    return said if complete == len(rows) else f"{said}, at least {least}"
