"""The noise of each Gaussian mechanism suffices at every epsilon and delta, and 2% less would not.

Runs of samples have the same test in test_privacy_losses.py. The oracle is the analytic Gaussian with 100 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import gmpy2
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.algorithms.estimators.label_noise import epsilon_of_row, event_of_unit
from blindfit.algorithms.privacy.accountant import composed_epsilon, fits, spent_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, gaussian_delta, gaussian_epsilon
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings, fine_enough, make_mechanism
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.training.budget import event_of
from tests.each_case import each_case

EPSILONS = [1e-3, 0.1, 1.0, 8.0, 50.0]
DELTAS = [0.3, 1e-2, 1e-5, 1e-9, 1e-12, 1e-15, 1e-18, 1e-30]
ROWS = 7


def of_labels(epsilon: float, delta: float) -> float:
    grid = fine_enough(LabelGrid(-3.0, 5.0), epsilon, delta)
    mechanism = make_mechanism(MechanismSettings("gaussian", grid, epsilon, delta), epsilon, None)
    assert isinstance(mechanism, Gaussian)
    return mechanism.noise_std_steps / grid.cells


def of_a_persons_rows(epsilon: float, delta: float) -> float:
    return analytic_noise_multiplier(epsilon_of_row("gaussian", epsilon, delta, ROWS), delta) / math.sqrt(ROWS)


def of_a_run(epsilon: float, delta: float) -> float:
    return RunPrivacy(epsilon, delta, 40, neighbours="add-or-remove").noise_multiplier() / math.sqrt(40)


MECHANISMS: dict[str, Callable[[float, float], float]] = {
    "aggregates and evaluations": analytic_noise_multiplier,
    "runs of all rows": of_a_run,
    "labels": of_labels,
    "labels of a person": of_a_persons_rows,
    "label DP of vertical trainings": lambda e, d: event_of(PrivacySettings(epsilon=e, delta=d)).noise_multiplier,
    "label DP of a unit": lambda e, d: event_of_unit("gaussian", e, d, "one label").noise_multiplier,
}


def exact_delta(multiplier: float, epsilon: float) -> gmpy2.mpfr:
    with gmpy2.context(gmpy2.get_context(), precision=340):
        middle, half_width = gmpy2.mpfr(epsilon) * multiplier, 1 / (2 * gmpy2.mpfr(multiplier))
        above, below = (gmpy2.erfc(end / gmpy2.sqrt(2)) / 2 for end in (middle - half_width, middle + half_width))
        return above - gmpy2.exp(gmpy2.mpfr(epsilon)) * below


@pytest.mark.parametrize("mechanism", MECHANISMS)
@each_case("epsilon", EPSILONS)
def test_the_noise_suffices_and_less_would_not(mechanism: str, epsilon: float) -> None:
    checked = 0
    for delta in DELTAS:
        try:
            multiplier = MECHANISMS[mechanism](epsilon, delta)
        except BlindfitError:
            continue
        checked += 1
        assert exact_delta(multiplier, epsilon) <= delta
        assert exact_delta(0.98 * multiplier, epsilon) > delta
    assert checked >= (5 if "label" in mechanism else len(DELTAS))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_a_sampled_run_needs_hardly_more_noise_at_a_smaller_delta(neighbours: str) -> None:
    """The noise grows about as sqrt(ln 1/delta). A loss of accuracy at 1e-15 once asked for 10 to 60 times as much."""
    noise = [RunPrivacy(1.0, delta, 1000, 0.01, neighbours).noise_multiplier() for delta in DELTAS[2:]]  # type: ignore[arg-type]
    for (before, after), (larger, smaller) in zip(pairwise(noise), pairwise(DELTAS[2:]), strict=True):
        assert before < after < before * (math.log(smaller) / math.log(larger)) ** 0.75


@each_case(
    ("epsilon", "delta"), [(1e-300, 1e-5), (1e-12, 1e-12), (1e6, 1e-5), (1e11, 0.5), (1.0, 1 - 1e-15), (5e-324, 0.9)]
)
def test_extreme_promises_have_a_noise_that_keeps_them(epsilon: float, delta: float) -> None:
    multiplier = analytic_noise_multiplier(epsilon, delta)
    assert 0 < multiplier < math.inf
    assert gaussian_delta(multiplier, epsilon) <= delta * (1 + 1e-14)
    assert gaussian_epsilon(multiplier, delta) <= epsilon * (1 + 1e-9)


@each_case(
    ("epsilon", "delta"), [(1e12, 1e-5), (math.inf, 1e-5), (0.0, 1e-5), (1.0, 1e-301), (1.0, 5e-324), (1.0, 1.0)]
)
def test_what_is_more_extreme_is_refused_in_words(epsilon: float, delta: float) -> None:
    for ask in (analytic_noise_multiplier, lambda e, d: RunPrivacy(e, d, 3, 0.1), Budget):
        with pytest.raises(ConfigError, match=r"privacy\.(epsilon|delta) must be"):
            ask(epsilon, delta)


@each_case("delta", DELTAS)
def test_a_budget_admits_runs_and_labels_at_every_delta(delta: float) -> None:
    """A charge counted as a Gaussian is not below the true cost, and not far above it."""
    privacy = RunPrivacy(1.0, delta, 100, 0.1)
    run = privacy.event()
    label = ReleaseEvent.pure(0.1, run.neighbours)
    assert fits([], run, 1.0, delta)
    for events in ([run, run], [run, label], [label, label], [run, label, run]):
        assert composed_epsilon(events, delta) <= spent_epsilon(events, delta) * (1 + 1e-3) + 1e-9
    assert spent_epsilon([run, run], delta) <= 1.1 * composed_epsilon([run, run], delta) + 0.01
