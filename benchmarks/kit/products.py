"""The time of one product modulo a number, by each unit that computes products: in turn with what it measures."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt
from typing import Any

import gmpy2
import numpy as np

from benchmarks.kit.in_turn import Times
from blindfit.algorithms.paillier.vector_unit.unit import VectorUnit, vector_unit

GMP, VECTOR_UNIT = "GMP", "the vector unit"
FACTORS = 64  # factors of each product of the vector unit, about as many as a sum of products has


@dataclass(frozen=True)
class Products:
    """Runs of bare products, one run for each unit that this processor has.

    Attributes:
        name: name of the modulus, for the names of the runs.
        modulus: odd number; the vector unit multiplies modulo a square of the same size.
        groups: number of groups in a run, each with FACTORS - 1 products.
    """

    name: str
    modulus: int
    groups: int = 32

    @property
    def count(self) -> int:
        return self.groups * (FACTORS - 1)

    @cached_property
    def runs(self) -> dict[str, Callable[[], object]]:
        """Runs for `in_turn`, next to the runs that are measured in products."""
        runs: dict[str, Callable[[], object]] = {self._run(GMP): partial(multiply, self.modulus, self.count)}
        unit = vector_unit(isqrt(self.modulus) | 1)
        if unit is not None:
            runs[self._run(VECTOR_UNIT)] = self._by(unit)
        return runs

    def _run(self, unit: str) -> str:
        return f"{self.name} by {unit}"

    def _by(self, unit: VectorUnit) -> Callable[[], object]:
        rows = unit.rows(_numbers_below(unit.modulus, FACTORS))
        return partial(unit.multiply_groups, rows, np.tile(np.arange(FACTORS), (self.groups, 1)))

    def seconds(self, times: Times) -> dict[str, list[float]]:
        """Return the seconds of one product in each round, by unit."""
        runs = {unit: times.seconds.get(self._run(unit)) for unit in (GMP, VECTOR_UNIT)}
        return {unit: [taken / self.count for taken in seconds] for unit, seconds in runs.items() if seconds}


def multiply(modulus: int, count: int) -> None:
    """Compute `count` products by GMP."""
    x, y = _numbers_below(modulus, 2)
    for _ in range(count):
        x = x * y % modulus


def _numbers_below(modulus: int, count: int) -> list[int]:
    draw = random.Random(1)  # a timing needs no secret
    return [gmpy2.mpz(draw.randrange(int(modulus))) for _ in range(count)]


def in_microseconds(seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return the times of one product for a benchmark's JSON; None where the processor has no vector unit."""
    times = {unit: round(taken * 1e6, 3) for unit, taken in seconds.items()}
    return {"product_us": times[GMP], "vector_product_us": times.get(VECTOR_UNIT)}
