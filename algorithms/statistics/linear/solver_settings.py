"""Settings and result of a fit of the WALR objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.logistic import Floats

SolverName = Literal["auto", "newton", "lbfgs", "gradient-descent", "hybrid-minibatch"]


@dataclass(frozen=True)
class SolverSettings:
    """Settings of the minimisation; None means the solver's own default.

    Args:
        l2: regulariser, see `defaults.default_l2`.
        unpenalised: column that l2 does not touch, by default the last, which is the constant feature; None: no column.
        tolerance: largest gradient norm, for features of size 1; for hybrid-minibatch the largest relative change
            of the running mean of the weights over one pass through the rows.
        warm_start_rows: newton starts on that many evenly spaced rows; 0 starts on all.
        memory: past gradients that lbfgs keeps.
        rate, decay: step t has the rate `rate / (1 + decay t)`; the default rate is 1 / (largest curvature).
        batch_rows: rows of one hybrid gradient.
        averaging: return the running mean of the weights, not the last ones.
        centred: take a batch's mean of (p - c) x in place of p x and add c mean(x), which is known exactly; c is the
            noisy rate of labels. False is the paper's own gradient, whose noise grows with the rate: from a rate of 1/2
            on it exceeds that of ordinary minibatch descent (benchmarks/walr/hybrid_gradient.py).
    """

    l2: float
    solver: SolverName = "auto"
    unpenalised: int | None = -1
    tolerance: float | None = None
    max_iterations: int | None = None
    warm_start_rows: int | None = None
    memory: int | None = None
    rate: float | None = None
    decay: float | None = None
    batch_rows: int | None = None
    averaging: bool | None = None
    centred: bool | None = None

    def __post_init__(self) -> None:
        if self.solver not in get_args(SolverName):
            raise ConfigError(f"solver: {self.solver!r} is not one of {', '.join(get_args(SolverName))}")
        for name in _OPTIONS:
            if getattr(self, name) is not None and self.solver not in _OPTIONS[name]:
                raise ConfigError(f"{name}: solver {self.solver} has no such option ({' and '.join(_OPTIONS[name])})")
        _require("l2", self.l2, 0 <= self.l2 < np.inf, "finite and at least 0")
        _require(
            "tolerance", self.tolerance, self.tolerance is None or 1e-12 <= self.tolerance <= 1, "between 1e-12 and 1"
        )
        for name, least in (("max_iterations", 1), ("warm_start_rows", 0), ("memory", 1), ("batch_rows", 1)):
            count = getattr(self, name)
            _require(name, count, count is None or count >= least, f"at least {least}")
        _require("rate", self.rate, self.rate is None or 0 < self.rate < np.inf, "finite and above 0")
        _require("decay", self.decay, 0 <= (self.decay or 0) < np.inf, "finite and at least 0")


# Which solvers read an option; the others refuse it, so that none is set in vain.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "warm_start_rows": ("newton",),
    "memory": ("lbfgs",),
    "rate": ("gradient-descent", "hybrid-minibatch"),
    "decay": ("gradient-descent", "hybrid-minibatch"),
    "batch_rows": ("hybrid-minibatch",),
    "averaging": ("hybrid-minibatch",),
    "centred": ("hybrid-minibatch",),
}


@dataclass(frozen=True)
class FitResult:
    """Result of a solver.

    Args:
        gradient_norm: Euclidean norm of the full gradient at `weights`, with the penalty's part.
        objective_history: the objective after each iteration; for hybrid-minibatch on the batch, after each pass.
        rows_read: rows that all gradients and Hessians together read.
        reason: text for a person: why the solver stopped.
    """

    solver: str
    weights: Floats
    iterations: int
    converged: bool
    gradient_norm: float
    objective_history: tuple[float, ...]
    rows_read: int
    reason: str


def _require(name: str, value: object, holds: bool, rule: str) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {rule}, not {value}")
