"""The rules by which gradients move the weights, and a descent stops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.statistics.vertical.loss import Floats


@dataclass(frozen=True, slots=True)
class OptimiserSettings:
    """Settings of the optimiser.

    Attributes:
        schedule: rate in epoch t (from 0): constant; inverse, rate / (1 + decay t); exponential, rate e^(-decay t).
        optimiser: sgd; momentum (heavy ball: a part of the last move is repeated); sag, the mean of the newest
            gradient of every batch (Schmidt, Le Roux, Bach 2017), which the paper uses.
    """

    learning_rate: float = 0.15
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    decay: float = 0.1
    optimiser: Literal["sgd", "momentum", "sag"] = "sgd"
    momentum: float = 0.9
    l2: float = 0.01
    l1: float = 0.0

    @property
    def momentum_of(self) -> float:
        """The part of the last move that is repeated."""
        return self.momentum if self.optimiser == "momentum" else 0.0

    def rate(self, epoch: int) -> float:
        if self.schedule == "inverse":
            return self.learning_rate / (1 + self.decay * epoch)
        return self.learning_rate * (math.exp(-self.decay * epoch) if self.schedule == "exponential" else 1.0)


@dataclass(slots=True, repr=False)
class Optimiser:
    """One party's weights and the memory of its optimiser.

    Attributes:
        weights: (k,); with `intercept`, the last one is the intercept, which no penalty pulls.
        rows: (n, k), the party's own training rows.
        shortened: number of this epoch's steps that were shortened.
    """

    settings: OptimiserSettings
    weights: Floats
    intercept: bool
    n_batches: int
    rows: Floats
    shortened: int = field(init=False, default=0)
    velocity: Floats = field(init=False)  # the last move, for momentum
    kept: Floats = field(init=False)  # (batches, k), for sag
    seen: npt.NDArray[np.bool_] = field(init=False)
    _epoch: int = field(init=False, default=-1)
    _began: Floats = field(init=False)  # the weights at the epoch's begin

    def __post_init__(self) -> None:
        self.velocity = np.zeros_like(self.weights)
        self.kept = np.zeros((self.n_batches if self.settings.optimiser == "sag" else 0, len(self.weights)))
        self.seen = np.zeros(len(self.kept), np.bool_)

    def step(self, gradient: Floats, epoch: int, batch: int) -> None:
        """theta <- theta - rate (gradient + l2 theta), then the soft threshold of l1; limited by `_limit`."""
        if epoch != self._epoch:
            self._epoch, self._began, self.shortened = epoch, self.weights, 0
        rate = self.settings.rate(epoch)
        penalised = np.ones(len(self.weights))
        if self.intercept:
            penalised[-1] = 0.0
        direction = self._direction(gradient, batch) + self.settings.l2 * penalised * self.weights
        moved = self.weights - rate * direction + self.settings.momentum_of * self.velocity
        threshold = rate * self.settings.l1 * penalised
        moved = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
        before, self.weights = self.weights, self._limit(moved)
        self.velocity = self.weights - before

    def _limit(self, moved: Floats) -> Floats:
        """Limit the distance from the epoch's begin, so that no row's score moves farther than MOST_MOVED allows.

        The difference between two gradients of a batch shows the party's columns to the others. Without a limit, the
        party that chooses the options would choose how much: if training swings, the others get a whole column instead
        of less than a fifth. MOST_WEIGHT is for columns that are 0 in every row.
        """
        moved = moved * (MOST_WEIGHT / max(float(np.abs(moved).sum()), MOST_WEIGHT))
        away, most = moved - self._began, MOST_MOVED / (1 + self._epoch)
        largest = float(np.abs(self.rows @ away).max(initial=0.0))
        if largest <= most:
            return moved
        self.shortened += 1
        return np.asarray(self._began + away * (most / largest))

    def _direction(self, gradient: Floats, batch: int) -> Floats:
        if self.settings.optimiser == "sag":
            self.kept[batch], self.seen[batch] = gradient, True
            return np.asarray(self.kept[self.seen].mean(axis=0))
        return gradient

    def state(self) -> dict[str, Floats]:
        """Return the state that a checkpoint keeps."""
        return {
            "weights": self.weights,
            "velocity": self.velocity,
            "kept": self.kept.copy(),  # the next step changes it in place
            "seen": self.seen.astype(np.float64),
        }

    def restore(self, state: dict[str, Floats]) -> None:
        self.weights, self.velocity, self.kept = state["weights"], state["velocity"], state["kept"]
        self.seen = state["seen"] > 0


class Patience:
    """A rule that stops a training: the loss has not fallen by `tolerance` below its best for `patience` epochs.

    Args:
        relative: True if losses are taken as shares of the first loss. Under a mask, a mean over all rows would reveal
            how many of them count, because at weights near 0 each of these has the same loss.
    """

    def __init__(self, patience: int, tolerance: float, *, relative: bool = False) -> None:
        self.patience, self.tolerance, self.relative = patience, tolerance, relative
        self.losses: list[float] = []
        self.first = 0.0

    def goes_on(self, loss: float) -> bool:
        """Take the loss of one more epoch."""
        if not self.losses:
            self.first = loss
        if self.relative:
            loss = loss / self.first if self.first else 1.0  # no row counts, which nobody may see
        self.losses.append(loss)
        best = math.inf
        since = 0
        for value in self.losses:
            since = 0 if value < best - self.tolerance else since + 1
            best = min(best, value)
        return self.patience == 0 or since < self.patience

    def state(self) -> dict[str, Any]:
        """Return the state that a checkpoint keeps."""
        return {"losses": self.losses, "first": self.first}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.losses, self.first = [float(loss) for loss in state["losses"]], float(state["first"])


MOST_WEIGHT = 2000.0  # all weights of a party together, by size: a training that gets so far has long diverged


MOST_MOVED = 2.0  # of a row's score within the first epoch; in the t-th epoch after it, 1 / (1 + t) of that
