"""The loss of a WALR release at each epsilon, simulated before anything is spent: no label is read.

From the features and an assumption about the labels,

    Theta    the assumed weights; or a direction drawn among the features, so that x . theta has the assumed deviation.
    Y        drawn with probability p = sigmoid(x . theta), the constant such that the mean of p is the base rate.
    Mu~      X^T y / N and Gaussian noise of the release's deviation, fitted as a release is fitted.

The loss is the one expected for new labels of the same rows, mean softplus(z) - p z. If there are many rows, the fitted
rows are a sample. It has p of the sample in place of p of all, and the noise of all rows' labels, drawn whole:

    mu~      X_s^T p_s / n_s + X^T (y - p) / N + noise

So the sample's own error is only in the fitted features, and cancels in the first order. All cases of one draw have the
same labels, and the same noise except for its size: differences between them come from the cases.

Source: MATH section 1. The excess without l2, sigma^2/2 tr(H^-1), needs p as well and is wrong with l2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import (
    Floats,
    QuantisedRows,
    scores,
    sigmoid,
    softplus,
    weighted_aggregate,
)
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr.defaults import default_l2
from blindfit.algorithms.statistics.walr.fit import MuTreatment, treat, treatment_of

MOST_FITTED_ROWS = 20_000
MOST_STRENGTH = 10.0  # of the scores: with more, the features nearly determine the labels


@dataclass(frozen=True)
class Assumed:
    """Assumptions about labels that nobody has read.

    Attributes:
        base_rate: rate of positive labels.
        strength: standard deviation of x . theta over the rows; None: it is that of `theta`.
        theta: (columns,); its constant is moved to the base rate. None: another direction in each draw.
    """

    base_rate: float
    strength: float | None = None
    theta: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.base_rate < 1:
            raise ConfigError(f"the base rate must lie between 0 and 1, not {self.base_rate:g}")
        if self.strength is None and self.theta is None:
            raise ConfigError("neither weights nor the strength of the signal are assumed")
        if self.strength is not None and not 0 < self.strength <= MOST_STRENGTH:
            raise ConfigError(
                f"the strength of the signal must be above 0 and at most {MOST_STRENGTH:g}, not {self.strength:g}"
            )


@dataclass(frozen=True)
class Fitting:
    """Arguments of the fit of a release, as `fit.fit_released` takes them."""

    norm_bound: float
    settings: SolverSettings
    l2: float | Literal["auto"] = "auto"
    treatment: MuTreatment = "auto"
    init: Floats | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Case:
    """One release and its fit. `noise_std` is the deviation of each coordinate of mu; 0 for an infinite epsilon."""

    epsilon: float
    noise_std: float
    fitting: Fitting


@dataclass(frozen=True)
class Forecast:
    """The simulated losses of one case.

    Attributes:
        losses: one for each draw of labels and noise, over the entropy of the base rate: a constant has 1.
    """

    case: Case
    losses: Floats

    @property
    def mean(self) -> float:
        return float(self.losses.mean())

    def spread(self, exact: Forecast) -> tuple[float, float]:
        """Return a range of the loss over labels and noise: nine draws in ten lie in it, other weights being equal.

        Args:
            exact: forecast without noise, from the same draws.
        """
        low, high = np.quantile(self.losses - exact.losses, [0.05, 0.95]) + exact.mean
        return float(low), float(high)


def forecast(
    rows: QuantisedRows,
    assumed: Assumed,
    cases: Sequence[Case],
    *,
    draws: int,
    generator: np.random.Generator,
    on_draw: Callable[[int], None] = lambda _done: None,
) -> list[Forecast]:
    """Simulate each case.

    Args:
        rows: all rows that would be summed, with the constant last, if there is one.
        on_draw: function that is called with the number of finished draws.
    """
    losses = np.empty((len(cases), draws))
    for draw in range(draws):
        world = _World.draw(rows, assumed, cases[0].fitting.settings.unpenalised is not None, generator)
        losses[:, draw] = [world.loss(case) for case in cases]
        on_draw(draw + 1)
    return [Forecast(case, of_case) for case, of_case in zip(cases, losses, strict=True)]


@dataclass(frozen=True, repr=False)
class _World:
    """The fitted rows, the probabilities of their labels, and the mean of all rows' drawn labels."""

    fitted: QuantisedRows
    probabilities: Floats
    mu: Floats
    noise: Floats  # of deviation 1
    seed: int  # of a solver that draws batches
    entropy: float

    @classmethod
    def draw(cls, rows: QuantisedRows, assumed: Assumed, intercept: bool, generator: np.random.Generator) -> _World:
        p = _probabilities(rows, assumed, intercept, generator)
        fitted, of_fitted = rows, p
        if rows.n_rows > MOST_FITTED_ROWS:
            which = np.sort(generator.choice(rows.n_rows, MOST_FITTED_ROWS, replace=False))
            fitted, of_fitted = rows.subset(which), p[which]
        error = weighted_aggregate(rows, (generator.random(rows.n_rows) < p) - p)
        noise = np.asarray(generator.standard_normal(rows.n_features))
        mu = weighted_aggregate(fitted, of_fitted) + error
        return cls(fitted, of_fitted, mu, noise, int(generator.integers(2**63)), entropy(of_fitted.mean()))

    def loss(self, case: Case) -> float:
        """Return the loss over the entropy of the base rate; infinite if the fit is."""
        fitting, l2 = case.fitting, l2_of(case, self.fitted.n_features)
        treatment = treatment_of(fitting.treatment, self.fitted.n_rows * self.fitted.n_features)
        mu = treat(self.fitted, self.mu + case.noise_std * self.noise, treatment)
        try:
            found = solvers.fit(
                self.fitted,
                mu,
                replace(fitting.settings, l2=l2),
                anchor=fitting.init if l2 else None,
                generator=np.random.default_rng(self.seed),
            )
        except RangeError:  # noise without treatment may have no finite fit
            return np.inf
        z = scores(self.fitted, found.weights)
        return float((softplus(z) - self.probabilities * z).mean()) / self.entropy


def without_noise(fitting: Fitting, n_rows: int) -> Case:
    """Return the fit with true labels, with next to no l2 (scikit-learn's).

    Some l2 is needed, as all labels of a rare column may be one, and its weight would be infinite.
    """
    return Case(np.inf, 0.0, replace(fitting, l2=1 / n_rows))


def l2_of(case: Case, n_features: int) -> float:
    """Return the l2 that the fit would take."""
    if case.fitting.l2 != "auto":
        return case.fitting.l2
    return default_l2(case.noise_std, case.fitting.norm_bound, n_features, min(case.epsilon, np.finfo(float).max))


def entropy(rate: float) -> float:
    """Return the entropy, in nats, of a label that is positive at this rate: the loss of a constant prediction."""
    return float(-rate * np.log(rate) - (1 - rate) * np.log1p(-rate))


def _probabilities(rows: QuantisedRows, assumed: Assumed, intercept: bool, generator: np.random.Generator) -> Floats:
    direction = np.asarray(generator.standard_normal(rows.n_features))
    weights: Floats = direction if assumed.theta is None else assumed.theta.copy()
    if intercept:
        weights[-1] = 0.0
    z = scores(rows, weights)
    if assumed.strength is not None:
        z *= assumed.strength / max(float(z.std()), np.finfo(float).tiny)
    return sigmoid(z + _shift(z, assumed.base_rate))


def _shift(z: Floats, base_rate: float) -> float:
    """Return the shift of all scores for which their mean probability is the base rate, to 2^-50 of the range."""
    centre = float(np.log(base_rate / (1 - base_rate)))
    low, high = centre - float(z.max()), centre - float(z.min())
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(z + middle).mean() < base_rate else (low, middle)
    return (low + high) / 2


def min_epsilon(forecasts: Sequence[Forecast], wanted: float) -> float | None:
    """Return the smallest epsilon that is expected to reach a loss, between two forecasts on a logarithmic scale.

    Args:
        forecasts: forecasts by epsilon, ascending.

    Returns:
        An epsilon; None if even the largest is not expected to reach it; the smallest one if that is enough.
    """
    before: Forecast | None = None
    for found in forecasts:
        if found.mean <= wanted:
            if before is None:
                return found.case.epsilon
            share = (before.mean - wanted) / (before.mean - found.mean)
            ratio = found.case.epsilon / before.case.epsilon
            return float(before.case.epsilon * ratio**share)
        before = found
    return None
