"""Clipped rows that every arm of benchmarks.walr.utility has before a label is touched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.walr.data import FRAC_BITS
from benchmarks.walr.utility.data import PARTS, DataSet
from blindfit.algorithms import fixed_point
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.randomness import public_generator
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, Rows, sigmoid
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, row_norms
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.walr import defaults

DELTA = 1e-5

Floats = NDArray[np.float64]
Option = Mapping[str, Any]
Predict = Callable[[str], Floats]
"""Function from a part's name to a probability for each of its rows."""
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """
    Args:
        groups: columns of each feature.
        columns: columns of each part, standardised by the training rows; not clipped.
        rows: rows of each part, with the constant feature, clipped to the norm bound and on WALR's grid.
        integers: training rows in grid steps.
        bound: largest norm of a row, in grid steps.
    """

    name: str
    groups: tuple[tuple[int, ...], ...]
    columns: dict[str, Floats] = field(repr=False)
    rows: dict[str, Floats] = field(repr=False)
    labels: dict[str, Floats] = field(repr=False)
    integers: IntegerRows = field(repr=False)
    bound: int
    _public: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: DataSet) -> Task:
        parts = data.parts()
        features = {part: data.features[which] for part, which in parts.items()}
        return cls.of_parts(
            data.name, data.groups, features, {part: data.labels[which] for part, which in parts.items()}
        )

    @classmethod
    def of_parts(
        cls, name: str, groups: tuple[tuple[int, ...], ...], features: dict[str, Floats], labels: dict[str, Floats]
    ) -> Task:
        standardiser = Standardiser.fit([features["train"]])
        columns = {part: standardiser.transform(features[part]) for part in PARTS}
        norms = row_norms(append_constant(columns["train"]))
        bound = fixed_point.norm_bound_steps(defaults.default_norm_bound(norms), FRAC_BITS)
        integers = {part: fixed_point.quantise_rows(append_constant(columns[part]), bound, FRAC_BITS) for part in PARTS}
        rows = {part: np.ldexp(values.astype(np.float64), -FRAC_BITS) for part, values in integers.items()}
        place = {column: number for number, column in enumerate(standardiser.kept)}
        kept = [tuple(place[column] for column in group if column in place) for group in groups]
        return cls(name, tuple(group for group in kept if group), columns, rows, labels, integers["train"], bound)

    @property
    def n_rows(self) -> int:
        return len(self.integers)

    @property
    def norm_bound(self) -> float:
        return self.bound * 2.0**-FRAC_BITS

    @property
    def quantised(self) -> QuantisedRows:
        return QuantisedRows(self.integers, FRAC_BITS)

    @property
    def trained_on(self) -> Floats:
        return self.labels["train"]

    def once(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return a value that depends only on features and released sums; it is made at its first use."""
        if key not in self._public:
            self._public[key] = build()
        found: T = self._public[key]
        return found


class Arm(ABC):
    """One way to a logistic model from public features and private labels.

    Attributes:
        grid: options from which validation rows choose; with a single entry nothing is chosen.
    """

    title: str
    grid: tuple[Option, ...] = ({},)

    def options(self, _task: Task) -> tuple[Option, ...]:
        """Return the options to choose from; an empty tuple means that the rows are too many for this arm."""
        return self.grid

    @abstractmethod
    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        """Release again and fit; the same seed has the same noise, and infinite epsilon has no noise.

        Raises:
            RangeError: the release has no model.
        """


def noise_of(task: Task, arm: str, epsilon: float, seed: int) -> np.random.Generator:
    return public_generator(seed, f"walr utility/{task.name}/{arm}/{epsilon:g}")


def fit_mean(rows: Rows, mu: Floats, l2: float) -> Floats:
    """Minimise WALR's objective for any rows and noisy mean, clipped to what some labels could give."""
    clipped = defaults.clip_mu(rows, mu)
    return fit(rows, clipped, SolverSettings(l2=max(l2, 1e-12))).weights


def linear(task: Task, weights: Floats) -> Predict:
    return lambda part: sigmoid(task.rows[part] @ weights)
