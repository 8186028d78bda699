"""Mechanisms in benchmarks.label_dp: each with its options, and the release of one training set's labels.

A prior has a cost. The rp mechanisms with published options estimate it as published, from Laplace noise on each label
for the published part of epsilon. The mechanism rp-with-prior "auto" and both rivals with a prior spend a tenth of
epsilon on noisy counts of 20 cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.label_dp.data import Dataset
from blindfit.algorithms.privacy.label_mechanisms import (
    FittedMechanism,
    MechanismSettings,
    Prior,
    fit,
    prior_from_counts,
)
from blindfit.algorithms.privacy.label_mechanisms.rp_banded import RPBanded
from blindfit.algorithms.privacy.label_mechanisms.rp_with_prior import RPWithPrior
from blindfit.algorithms.randomness import UniformInt, keyed_uniform

DELTA = 1e-4
"""Delta of the Gaussian mechanism, as in the published code."""

PRIOR_SHARE, PRIOR_CELLS = 0.1, 20
NOISE_KEY = b"noise of the benchmark"  # a release needs the system's generator; a benchmark may be repeated

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arm:
    """Args:
    title: title in tables and pictures.
    options: kind of `_options` that apply.
    published: the paper's column for this arm.
    rival: True if rp-with-prior should do no worse.
    """

    title: str
    mechanism: str
    options: Literal["none", "published", "counts"] = "none"
    debias: bool = False
    published: str | None = None
    rival: bool = False


ARMS = {
    "laplace": Arm("Laplace", "laplace", published="laplace", rival=True),
    "gaussian": Arm("Gaussian", "gaussian", published="gaussian"),
    "staircase": Arm("Staircase", "staircase", published="staircase", rival=True),
    "rr-on-bins": Arm("RR-on-Bins", "rr-on-bins", "counts", published="rr-on-bins", rival=True),
    "unbiased": Arm("Unbiased", "unbiased", "counts", published="unbiased", rival=True),
    "rp": Arm("RPWithPrior, published h", "rp-with-prior", "published", published="rp-with-prior"),
    "rp debiased": Arm("the same, debiased", "rp-with-prior", "published", debias=True),
    "rp auto": Arm("RPWithPrior, auto h", "rp-with-prior", "counts"),
    "rp auto debiased": Arm("the same, debiased", "rp-with-prior", "counts", debias=True),
    "rp-banded": Arm("RP-banded", "rp-banded", "published"),
}
OURS = ("rp", "rp debiased", "rp auto", "rp auto debiased")
NO_NOISE, CONSTANT = "no noise", "constant"  # true labels; their mean, for every row


@dataclass(frozen=True)
class Case:
    """One mechanism at one epsilon, with one of its published options changed or not."""

    arm: str
    epsilon: float
    varied: Literal["", "half_width", "epsilon_prior", "true prior"] = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Released:
    """Args:
    labels: labels on which the active party trains.
    steps: the mechanism's outputs, on the grid.
    """

    fitted: FittedMechanism
    labels: Floats
    steps: NDArray[np.int64]


def release(case: Case, dataset: Dataset, labels: Floats, seed: int) -> Released:
    arm = ARMS[case.arm]
    fitted = fit(settings_of(case, dataset, labels), labels, _uniform(case, dataset, seed, "prior"))
    steps = fitted.mechanism.draw(dataset.grid.steps(labels), _uniform(case, dataset, seed, "labels"))
    outputs = dataset.grid.reals(steps)
    return Released(fitted, fitted.mechanism.debias(outputs) if arm.debias else outputs, steps)


def _uniform(case: Case, dataset: Dataset, seed: int, purpose: str) -> UniformInt:
    """Return the source of randomness of a case; debiasing uses the very same outputs, and is not part of the name."""
    arm = ARMS[case.arm]
    parts = (dataset.name, arm.mechanism, arm.options, case.epsilon, case.varied, case.factor, seed, purpose)
    return keyed_uniform(NOISE_KEY, "/".join(map(str, parts)))


def settings_of(case: Case, dataset: Dataset, labels: Floats) -> MechanismSettings:
    arm, epsilon = ARMS[case.arm], case.epsilon
    options = _options(case, arm, dataset)
    if arm.mechanism == "gaussian":
        options["delta"] = DELTA
    if arm.mechanism == "rr-on-bins":
        options["rounding"] = dataset.rounding
    if case.varied == "true prior":
        epsilon -= options.pop("epsilon_prior")
        options["prior"] = _true_prior(dataset, labels)
    return MechanismSettings(arm.mechanism, dataset.grid, epsilon, **options)


def _options(case: Case, arm: Arm, dataset: Dataset) -> dict[str, Any]:
    factors = {"half_width": 1.0, "epsilon_prior": 1.0} | {case.varied: case.factor}
    if arm.options == "published":
        return {
            "half_width": dataset.half_widths[case.epsilon] * factors["half_width"],
            "epsilon_prior": dataset.epsilon_priors[case.epsilon] * factors["epsilon_prior"],
        }
    if arm.options == "counts":
        return {
            "epsilon_prior": PRIOR_SHARE * case.epsilon,
            "prior_mechanism": "histogram",
            "cell_width": dataset.grid.width / PRIOR_CELLS,
        }
    return {}


def _true_prior(dataset: Dataset, labels: Floats) -> Prior:
    """Return a prior that is not private, as in the published code, except for its last batch of labels."""
    grid = dataset.grid
    edges = np.linspace(grid.lo, grid.hi, PRIOR_CELLS + 1)
    return prior_from_counts(edges, np.histogram(np.clip(labels, grid.lo, grid.hi), bins=edges)[0])


# --- how often an output is near its label --------------------------------------------------------------


@dataclass(frozen=True)
class Nearness:
    """Counts of labels within [A1, A2]: all of them, outputs within h, and outputs that should be within h."""

    labels: int
    near: int
    expected: float


def nearness(released: Released, dataset: Dataset, labels: Floats) -> Nearness | None:
    mechanism = released.fitted.mechanism
    if not isinstance(mechanism, RPWithPrior | RPBanded):
        return None
    steps = dataset.grid.steps(labels)
    inside = (steps >= mechanism.low) & (steps <= mechanism.high)
    near = np.abs(released.steps - steps)[inside] <= mechanism.half_steps
    return Nearness(len(near), int(near.sum()), len(near) * formula(mechanism))


def formula(mechanism: RPWithPrior | RPBanded) -> float:
    """P(|output - label| <= h): e^eps w / (e^eps w + L), and in bands e^eps / (e^eps + floor(L / w))."""
    favoured, window, length = np.exp(mechanism.epsilon), mechanism.window, mechanism.length
    others = length // window if isinstance(mechanism, RPBanded) else length / window
    return float(favoured / (favoured + others))
