"""Releases with only an epsilon: an exact oracle, dp_accounting, and the ledger's text."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import UnsupportedEvent
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import MOST_MULTIPLIER, ReleaseEvent
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian
from blindfit.algorithms.protocols.label_dp.release import step_1_open
from blindfit.algorithms.protocols.label_dp.request import step_2_event
from tests.release_labels.house import LAPLACE, NAMES

N = "one label changes"
EPSILONS = st.floats(math.log(1e-4), math.log(30)).map(math.exp)


def delta_of_pure(epsilon: float, count: int, at: float) -> float:
    """Return the delta of `count` epsilon-DP releases at worst: Kairouz, Oh, Viswanath 2015, Theorem 3.3."""
    losses = [(count - 2 * lied) * epsilon for lied in range(count + 1)]
    chances = [
        math.comb(count, lied) * math.exp((count - lied) * epsilon - count * math.log1p(math.exp(epsilon)))
        for lied in range(count + 1)
    ]
    return math.fsum(p * -math.expm1(at - loss) for p, loss in zip(chances, losses, strict=True) if loss > at)


@given(EPSILONS)
def test_an_epsilon_survives_the_ledger(epsilon: float) -> None:
    event = ReleaseEvent.pure(epsilon, N)
    assert ReleaseEvent.from_canonical(event.canonical()) == event
    assert event.canonical().startswith("pure/0x")
    assert epsilon <= event.epsilon <= epsilon * (1 + 1e-15)


@given(st.lists(EPSILONS, min_size=1, max_size=4), st.floats(1e-9, 0.1))
def test_no_more_than_the_sum_and_for_one_exactly_it(epsilons: list[float], delta: float) -> None:
    events = [ReleaseEvent.pure(epsilon, N) for epsilon in epsilons]
    spent = composed_epsilon(events, delta)
    assert spent <= math.fsum(epsilons) * (1 + 1e-12)
    assert spent >= 0 if len(epsilons) > 1 else spent == events[0].epsilon


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 200), (0.3, 40), (1.0, 12), (4.0, 3), (0.9, 2)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_never_below_the_exact_composition(epsilon: float, count: int, delta: float) -> None:
    ours = composed_epsilon([ReleaseEvent.pure(epsilon, N)] * count, delta)
    assert delta_of_pure(epsilon, count, ours) <= delta * (1 + 1e-9)
    rounded = count * (count * epsilon / 50_000)  # rounding by less than a cell of the grid for each
    assert delta_of_pure(epsilon, count, ours - 1.01 * rounded - 1e-6) > delta
    if count >= 40 and delta >= 1e-6:
        assert ours < 0.8 * count * epsilon


def library_epsilon(events: list[ReleaseEvent], delta: float, *, pessimistic: bool) -> float:
    """Compute dp_accounting's bound on a coarse grid, above or below the truth; pure releases as
    randomised response.
    """
    options = {"pessimistic_estimate": pessimistic, "value_discretization_interval": 1e-3}

    def distribution(event: ReleaseEvent) -> Any:
        if event.mechanism == "pure":
            return pld.from_randomized_response(2 / (1 + math.exp(event.epsilon)), 2, **options)
        makers = {"gaussian": pld.from_gaussian_mechanism, "laplace": pld.from_laplace_mechanism}
        return makers[event.mechanism](event.noise_multiplier, **options)

    total = reduce(lambda one, other: one.compose(other), map(distribution, events))
    return float(total.get_epsilon_for_delta(delta))


def test_mixed_with_others_never_below_the_library() -> None:
    rng = random.Random(3)
    for _ in range(6):
        events = [ReleaseEvent.pure(rng.uniform(0.05, 2.0), N) for _ in range(rng.randint(1, 4))]
        events += [
            ReleaseEvent("gaussian", rng.uniform(0.8, 8.0), N),
            ReleaseEvent("laplace", rng.uniform(0.5, 8.0), N),
        ]
        delta = 10 ** rng.uniform(-9, -3)
        ours, least = composed_epsilon(events, delta), library_epsilon(events, delta, pessimistic=False)
        assert least <= ours
        assert ours <= library_epsilon(events, delta, pessimistic=True) * (1 + 1e-3)
        assert composed_epsilon(events[1:], delta) < least


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 2e6, 0.5 / MOST_MULTIPLIER])
def test_an_epsilon_that_is_none(epsilon: float) -> None:
    with pytest.raises(UnsupportedEvent):
        ReleaseEvent.pure(epsilon, N)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_gaussians_charge_covers_what_is_drawn(epsilon: float) -> None:
    """Two releases on the coarsest allowed grid, composed exactly on the integers, have at most the charged delta."""
    delta = 1e-5
    cells = next(c for c in (2**k for k in range(8, 21)) if _steps(epsilon, delta, c) >= 2**10)
    mechanism = Gaussian(LabelGrid(0.0, 1.0, cells), epsilon, delta)
    std = mechanism.noise_std_steps
    settings = MechanismSettings("gaussian", LabelGrid(0.0, 1.0, cells), epsilon, delta)
    request = step_1_open(NAMES, settings, dataset="d", snapshot="v")
    event = step_2_event(request, neighbours=N)
    charged = composed_epsilon([event, event], delta)
    k = np.arange(-math.ceil(13 * std), math.ceil(13 * std) + 1)
    law = np.exp(-0.5 * (k / std) ** 2)
    law /= law.sum()
    both = np.convolve(law, law) if len(k) < 2**15 else _fft_convolve(law)
    total = np.arange(len(both)) + 2 * k[0]
    # The loss of two releases is linear in the sum of their noises.
    loss = (2 * total * cells + 2 * cells**2) / (2 * std**2)
    spent = float((both * -np.expm1(np.minimum(charged - loss, 0.0))).sum())
    assert 0.5 * delta < spent <= delta


def _steps(epsilon: float, delta: float, cells: int) -> float:
    return Gaussian(LabelGrid(0.0, 1.0, cells), epsilon, delta).noise_std_steps


def _fft_convolve(law: np.ndarray) -> np.ndarray:
    size = 2 * len(law) - 1
    return np.maximum(np.fft.irfft(np.fft.rfft(law, size) ** 2, size), 0.0)


def test_rows_of_a_person_compose_one_after_the_other() -> None:
    request = replace(step_1_open(NAMES, LAPLACE, dataset="d", snapshot="v"), max_rows_per_person=7)
    assert step_2_event(request, neighbours=N).epsilon == 7.0
