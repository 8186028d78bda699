"""View of a data party in a Taylor training, made without ciphertexts: its own gradient of each batch, in integers.

X_P^T w + noise        w = 2a z - b y + n, in steps of the grid

A test of this folder proves that the integers are those of the protocol. Here defences can be switched off that the
protocol always has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.protocols.taylor import TaylorParameters, gradient_noise
from blindfit.algorithms.statistics.quality.metrics import auc
from blindfit.algorithms.statistics.vertical.gradient_leaks import shorten_rows
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, Rows
from blindfit.parties.taylor.parameters import label_noise_std, row_bound, row_bound_steps
from blindfit.parties.taylor.settings import TaylorJob, TaylorSettings
from blindfit.parties.vertical.prepared import FEATURE_BOUND, clip_rows

Floats = NDArray[np.float64]

JOB = TaylorSettings()


@dataclass(frozen=True)
class Setting:
    """A job's defaults; `without_defences` has none of the defences."""

    epsilon: float | None = None  # label DP in place of jitter
    jitter: float = JOB.jitter
    gradient_noise: float = JOB.gradient_noise
    kept_batches: bool = True
    shorten: bool = True  # for rows that stand out in their batch
    secret_start: float = 0.0  # standard deviation of every party's first weights
    batch_rows: int | None = None  # by default chosen for the number of rows
    epochs: int = JOB.epochs
    optimiser: OptimiserSettings = field(default_factory=JOB.optimiser_settings)
    seed: int = 0

    @property
    def label_jitter(self) -> float:
        return self.jitter if self.epsilon is None else 0.0

    @property
    def noise_key(self) -> bytes:
        """The key node's secret: other seeds draw other noise."""
        return b"noise %d" % self.seed

    @property
    def job(self) -> TaylorJob:
        privacy = None if self.epsilon is None else {"epsilon": self.epsilon}
        return TaylorJob.model_validate({"privacy": privacy, "taylor": {"gradient_noise": self.gradient_noise}})


DEFAULTS = Setting()
SMALL_BATCHES = replace(
    DEFAULTS, batch_rows=128
)  # the least that a job takes by default; lattices weaken in larger ones


def without_defences(**changes: Any) -> Setting:
    return replace(Setting(jitter=0.0, gradient_noise=0.0, shorten=False), **changes)


@dataclass(frozen=True)
class View:
    """One step as its party sees it. `weights`: its own, before the step."""

    epoch: int
    number: int
    batch: Rows
    gradient: Rows
    weights: Floats


@dataclass(frozen=True)
class Seen:
    """All that one party has at the end: its rows, its steps, its model."""

    grid: Grid
    features: Rows
    views: list[View]
    weights: Floats
    kept_noise_std: float  # label DP's kept noise

    @property
    def columns(self) -> int:
        return self.features.shape[1]

    def own_auc(self, rows: Rows, y: Floats) -> float:
        return auc(y[rows] > 0, self.scores(rows))

    def scores(self, rows: Rows) -> Floats:
        """Return its own part of the final scores: the baseline that every attack must beat."""
        return self.grid.scores(self.features[rows], self.weights)

    def others(self, view: View) -> Floats:
        """Return the gradient without the effect of the party's own scores, in real numbers: X^T (others' 2a z - b y +
        n).
        """
        own = self.features[view.batch]
        gradient = view.gradient - own.T @ self.grid.score_terms(self.grid.scores(own, view.weights))
        return np.ldexp(gradient.astype(float), -self.grid.gradient_bits)

    def reals(self, rows: Rows) -> Floats:
        return self.grid.reals(self.features[rows])

    def of_batch(self, number: int) -> list[View]:
        return [view for view in self.views if view.number == number]


@dataclass(frozen=True)
class Data:
    """Columns of each data party, the active one first with its intercept, not yet scaled; labels -1 and 1."""

    parts: tuple[Floats, ...]
    y: Floats

    def scaled(self, train: Rows) -> tuple[Floats, ...]:
        """Standardise each party's columns on the training rows; columns without a deviation stay as they are."""
        scaled = []
        for part in self.parts:
            std = part[train].std(axis=0)
            moves = std > 0
            scaled.append((part - part[train].mean(axis=0) * moves) / np.where(moves, std, 1.0))
        return tuple(np.clip(part, -FEATURE_BOUND, FEATURE_BOUND) for part in scaled)


@dataclass(frozen=True)
class Training:
    """A run of the protocol: its parties' views, on which batches."""

    plan: RowPlan
    seen: tuple[Seen, ...]
    y: Floats
    columns: tuple[Floats, ...]  # each party's columns as it trained on them
    label_terms: Rows


def plan_of(n_rows: int, setting: Setting) -> RowPlan:
    """Return all rows, in the batches of the setting's seed."""
    order = np.random.default_rng([setting.seed, 1]).permutation(n_rows)
    return RowPlan.of(order, test_fraction=0.0, validation_fraction=0.0, batch_rows=setting.batch_rows)


def simulate(data: Data, setting: Setting) -> Training:
    """Train on all rows; every party's start is 0 unless the setting says otherwise."""
    rng = np.random.default_rng(setting.seed)
    plan = plan_of(len(data.y), setting)
    grid = Grid("logistic", len(data.parts))
    columns = tuple(trained_on(part, plan, setting) for part in data.scaled(plan.train))
    features = [grid.features(part) for part in columns]
    if setting.epsilon is not None:
        features = [clip_integer_rows(part, row_bound_steps(setting.job, part.shape[1])) for part in features]
    label_terms = grid.label_terms(data.y, setting.label_jitter * rng.standard_normal(len(data.y)))
    optimisers = [
        Optimiser(
            setting.optimiser,
            setting.secret_start * rng.standard_normal(part.shape[1]),
            intercept=place == 0,
            n_batches=len(plan.batches),
            rows=grid.reals(part[plan.train]),
        )
        for place, part in enumerate(features)
    ]
    parameters = parameters_of(features, grid, setting)
    views: list[list[View]] = [[] for _ in features]
    for epoch in range(setting.epochs):
        for number, batch in enumerate(_batches(plan, epoch, setting)):
            terms = [
                grid.score_terms(grid.scores(part[batch], optimiser.weights))
                for part, optimiser in zip(features, optimisers, strict=True)
            ]
            residuals = np.sum(terms, axis=0) + label_terms[batch]
            for place, (part, optimiser) in enumerate(zip(features, optimisers, strict=True)):
                gradient = part[batch].T @ residuals + noise_of(parameters, setting, place, (epoch, number))
                views[place].append(View(epoch, number, batch, gradient, optimiser.weights.copy()))
                scale = (1 << grid.gradient_bits) * len(batch)
                optimiser.step(gradient / scale, epoch, number)
    seen = tuple(
        Seen(grid, part, view, optimiser.weights, parameters.kept_noise_std)
        for part, view, optimiser in zip(features, views, optimisers, strict=True)
    )
    return Training(plan, seen, data.y, columns, label_terms)


def trained_on(columns: Floats, plan: RowPlan, setting: Setting) -> Floats:
    if setting.epsilon is not None:
        columns = clip_rows(columns, row_bound(setting.job, columns.shape[1]))
    return shorten_rows(columns, plan.batches)[0] if setting.shorten else columns


def parameters_of(features: Sequence[Rows], grid: Grid, setting: Setting) -> TaylorParameters:
    columns = tuple(part.shape[1] for part in features)
    return TaylorParameters(
        data_parties=tuple(f"party-{place}" for place in range(len(features))),
        key_node="key-node",
        columns=columns,
        grid=grid,
        epochs=setting.epochs,
        noise_std=setting.gradient_noise,
        kept_noise_std=0.0 if setting.epsilon is None else label_noise_std(setting.job, sum(columns)),
        hold_out_loss=False,
    )


def noise_of(parameters: TaylorParameters, setting: Setting, place: int, step: tuple[int, int]) -> Rows:
    """Return the key node's noise for a party's gradient in this epoch and batch."""
    epoch, number = step
    party, columns, grid = parameters.data_parties[place], parameters.columns[place], parameters.grid
    fresh = _drawn(setting.noise_key, grid, (party, epoch, number), parameters.noise_std, 0.0, columns)
    return fresh + _drawn(setting.noise_key, grid, (party, 0, number), 0.0, parameters.kept_noise_std, columns)


@lru_cache(maxsize=2**15)
def _drawn(
    key: bytes, grid: Grid, where: tuple[str, int, int], noise_std: float, kept_std: float, columns: int
) -> Rows:
    """Draw noise that depends only on these arguments, in many trainings; kept noise does not depend on the epoch."""
    parameters = TaylorParameters(
        data_parties=(where[0],),
        key_node="key-node",
        columns=(columns,),
        grid=grid,
        epochs=1,
        noise_std=noise_std,
        kept_noise_std=kept_std,
        hold_out_loss=False,
    )
    return np.array(gradient_noise(key, parameters, where, columns), dtype=np.int64)


def _batches(plan: RowPlan, epoch: int, setting: Setting) -> Sequence[Rows]:
    if setting.kept_batches:
        return plan.batches
    order = np.random.default_rng([setting.seed, epoch]).permutation(plan.train)
    return np.split(order, np.cumsum([len(batch) for batch in plan.batches])[:-1])


def most_right_within(epsilon: float, guesses: int) -> float:
    """Bound the share of random labels that epsilon lets anyone guess right, plus four standard deviations."""
    allowed = 1 / (1 + math.exp(-epsilon))
    return allowed + 4 * math.sqrt(allowed * (1 - allowed) / guesses)


# --- data ---------------------------------------------------------------------------------------------------


def with_intercept(columns: Floats) -> Floats:
    return np.hstack([columns, np.ones((len(columns), 1))])


def coins(rng: np.random.Generator, data: Data) -> Data:
    """Return the same columns with labels that only the gradients reveal."""
    return replace(data, y=np.where(rng.random(len(data.y)) < 0.5, 1.0, -1.0))


@cache
def _tumours() -> tuple[Floats, Floats]:
    """Read the data once; nobody writes into them."""
    columns, labels = load_breast_cancer(return_X_y=True)
    columns.setflags(write=False)
    return columns, labels


def breast(*, active: slice = slice(0, 10), passives: Sequence[slice] = (slice(10, 30),)) -> Data:
    """Return Wisconsin breast cancer: 569 rows; by default 10 columns at the active party and 20 at the passive one."""
    columns, labels = _tumours()
    parts = (with_intercept(columns[:, active]), *(columns[:, passive] for passive in passives))
    return Data(parts, np.where(labels > 0, 1.0, -1.0))


def planted(rng: np.random.Generator, n: int, columns: Sequence[int], *, signal: Sequence[float]) -> Data:
    """Return normal columns and labels; `signal` has the norm of each party's weights in the true score."""
    parts = [rng.standard_normal((n, k)) for k in columns]
    score = sum(s * part @ _direction(rng, part.shape[1]) for s, part in zip(signal, parts, strict=True))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-np.asarray(score))), 1.0, -1.0)
    return Data((with_intercept(parts[0]), *parts[1:]), y)


def _direction(rng: np.random.Generator, k: int) -> Floats:
    drawn = rng.standard_normal(k)
    return drawn / np.linalg.norm(drawn)
