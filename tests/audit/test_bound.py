"""The bound on epsilon, on laws whose epsilon is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.audit import Event, bound_epsilon, event_epsilon, greatest_bound
from tests.each_case import each_case

FALSE_ALARM = 1e-3


def randomised_response(bit: int, epsilon: float, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    kept = rng.random(n) < 1 / (1 + math.exp(-epsilon))
    return {"answer": np.where(kept, bit, 1 - bit).astype(np.float64)}


def bound_of_response(epsilon: float, n: int, rng: np.random.Generator, *, delta: float = 0.0) -> float:
    sides = (randomised_response(bit, epsilon, n, rng) for bit in (0, 1))
    return bound_epsilon(*sides, delta=delta, false_alarm=FALSE_ALARM).epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_never_above_the_truth(epsilon):
    rng = np.random.default_rng(int(10 * epsilon))
    assert all(bound_of_response(epsilon, 2000, rng) <= epsilon for _ in range(200))


@pytest.mark.parametrize(("epsilon", "n"), [(0.2, 400_000), (1.0, 40_000), (3.0, 40_000)])
def test_near_the_truth_with_enough_samples(epsilon, n):
    rng = np.random.default_rng(7)
    assert all(bound_of_response(epsilon, n, rng) > 0.8 * epsilon for _ in range(10))


def test_of_a_false_alarm_rate_that_large_some_bounds_do_pass():
    """The confidence is used up, and the bounds are not far more cautious than requested."""
    rng = np.random.default_rng(1)
    n, hits = 2000, rng.binomial(2000, 0.5, 4000)
    others = rng.binomial(2000, 0.5, 4000)
    passed = (event_epsilon(hits, others, n, 0.0, 0.5) > 0).mean()
    assert 0.05 < passed < 0.5


def test_delta_is_taken_off():
    """An event of probability delta that only one neighbour has proves nothing; one of twice delta does."""
    rng = np.random.default_rng(3)
    n, delta = 200_000, 0.01
    other = {"x": np.zeros(n)}
    allowed = {"x": (rng.random(n) < delta).astype(np.float64)}
    leaking = {"x": (rng.random(n) < 2 * delta).astype(np.float64)}
    assert bound_epsilon(allowed, other, delta=delta, false_alarm=FALSE_ALARM).epsilon == 0
    assert bound_epsilon(leaking, other, delta=delta, false_alarm=FALSE_ALARM).epsilon > 3


@pytest.mark.parametrize("swapped", [False, True])
def test_a_narrow_event_of_either_neighbour_is_found(swapped):
    rng = np.random.default_rng(4)
    n = 100_000
    flat = {"noise": rng.random(n), "x": rng.random(n)}
    with_gap = {"noise": rng.random(n), "x": rng.random(n)}
    with_gap["x"] = np.where((with_gap["x"] > 0.3) & (with_gap["x"] < 0.35), 0.9, with_gap["x"])
    sides = (with_gap, flat) if swapped else (flat, with_gap)
    found = bound_epsilon(*sides, delta=0.0, false_alarm=FALSE_ALARM)
    assert found.epsilon > 3
    assert found.event.statistic == "x"


def test_the_event_is_counted_on_samples_that_did_not_choose_it():
    """The first half can be distinguished perfectly, the second not at all."""
    rng = np.random.default_rng(5)
    second_half = [rng.random(5000) for _ in range(2)]
    first, second = (
        {"x": np.append(np.full(5000, value), rest)} for value, rest in zip((0.0, 1.0), second_half, strict=True)
    )
    found = bound_epsilon(first, second, delta=0.0, false_alarm=FALSE_ALARM)
    assert found.n == 5000
    assert found.epsilon < 0.1


def test_what_samples_can_show_at_most():
    n = 1000
    apart = bound_epsilon({"x": np.zeros(2 * n)}, {"x": np.ones(2 * n)}, delta=0.0, false_alarm=FALSE_ALARM)
    assert apart.epsilon == pytest.approx(greatest_bound(n, delta=0.0, false_alarm=FALSE_ALARM))
    assert (apart.hits, apart.neighbour_hits) == (n, 0)
    assert apart.epsilon == pytest.approx(math.log((0.0005 ** (1 / n)) / (1 - 0.0005 ** (1 / n))), rel=1e-9)


def test_an_event_says_what_it_is():
    event = Event("output", ((-math.inf, 0.25), (0.5, 0.75), (2.0, math.inf), (1.0, 1.1)))
    assert str(event) == "output < 0.25 or >= 2 or 2 more"
    assert event.count(np.array([0.0, 0.25, 0.5, 0.7, 0.75, 3.0])) == 4


@each_case(
    ("first", "second", "options", "error"),
    [
        ([0.0] * 10, [1.0] * 10, {}, DataError),
        ([0.0] * 100, [1.0] * 99, {}, DataError),
        ([0.0] * 99 + [math.nan], [1.0] * 100, {}, DataError),
        ([0.0] * 100, [1.0] * 100, {"false_alarm": 0.0}, ConfigError),
        ([0.0] * 100, [1.0] * 100, {"delta": 1.0}, ConfigError),
    ],
)
def test_samples_that_no_bound_comes_from(first, second, options, error):
    settings = {"delta": 0.0, "false_alarm": FALSE_ALARM, **options}
    with pytest.raises(error):
        bound_epsilon({"x": np.array(first)}, {"x": np.array(second)}, **settings)
