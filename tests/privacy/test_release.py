"""A release gives little away: neighbours look alike, broken mechanisms are caught, and no low bit reveals anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from blindfit.algorithms.fixed_point import enforce_norm_bound
from blindfit.algorithms.privacy.gaussian import GaussianMechanism, gaussian_delta
from tests.privacy.noise_checks import empirical_epsilon, seeded

FRAC_BITS = 16
BATCH = 10_000  # releases
SENSITIVITY = 2**FRAC_BITS  # one, in grid steps: the norm to which rows are clipped
MECHANISM = GaussianMechanism(noise_multiplier=1.0, sensitivity_squared=SENSITIVITY**2)
EPSILON = 1.0
DELTA = gaussian_delta(MECHANISM.noise_multiplier, EPSILON)

ROWS = np.array([SENSITIVITY // 3, -SENSITIVITY // 2, 2 * SENSITIVITY])  # the last one is too long
LABELS = np.array([1, 1, 0])
NEIGHBOUR = np.array([1, 1, 1])  # differs in the label of the longest row

Release = Callable[[np.ndarray, int, int], np.ndarray]
"""Function of labels, number of releases and seed; it returns released sums in units of the sensitivity."""


def clipped(rows: np.ndarray) -> np.ndarray:
    """Clip the rows as the server does."""
    return enforce_norm_bound(rows[:, None].astype(np.int32), SENSITIVITY)[0][:, 0].astype(np.int64)


def release(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    exact = int(clipped(ROWS) @ labels)
    return np.array(MECHANISM.release([exact] * n, seeded(seed))) / SENSITIVITY


def without_clipping(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    exact = int(ROWS @ labels)
    return np.array(MECHANISM.release([exact] * n, seeded(seed))) / SENSITIVITY


def for_a_smaller_sensitivity(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Release with a true sensitivity of 1.175 times that for which the noise was made."""
    exact = round(1.175 * int(clipped(ROWS) @ labels))
    return np.array(MECHANISM.release([exact] * n, seeded(seed))) / SENSITIVITY


def with_float_noise(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Release with the right law, added as one float to another."""
    # Sums of zero and one show it best.
    return float(labels[2]) + np.random.default_rng(seed).normal(size=n)


@cache
def drawn(mechanism: Release, of_neighbour: bool, seed: int) -> np.ndarray:
    """Return a batch of releases, in which every attack searches."""
    return mechanism(NEIGHBOUR if of_neighbour else LABELS, BATCH, 2 * seed + of_neighbour)


@dataclass(frozen=True)
class Attack:
    """An event that should be likelier under one data set than under the other."""

    event: Callable[[np.ndarray], np.ndarray]
    under_neighbour: bool

    def empirical_epsilon(self, mechanism: Release, seeds: Sequence[int]) -> float:
        hits, other_hits = (
            sum(int(self.event(drawn(mechanism, of_neighbour, seed)).sum()) for seed in seeds)
            for of_neighbour in (self.under_neighbour, not self.under_neighbour)
        )
        return empirical_epsilon(hits, other_hits, BATCH * len(seeds), DELTA)


def centre_of(mechanism: Release) -> float:
    """Return the centre of the releases of LABELS; the noise is symmetric, so an attacker knows it."""
    return 0.0 if mechanism is with_float_noise else float(clipped(ROWS) @ LABELS / SENSITIVITY)


def attacks_on(mechanism: Release) -> list[Attack]:
    # The best event against Gaussian noise: where the privacy loss passes epsilon.
    threshold = centre_of(mechanism) + EPSILON * MECHANISM.noise_multiplier**2 + 0.5
    return [
        Attack(lambda out: out > threshold, under_neighbour=True),
        Attack(betrays_a_zero, under_neighbour=False),
    ]


def betrays_a_zero(out: np.ndarray) -> np.ndarray:
    """Find small floats with bits below 2^-53: adding something to one cannot produce them."""
    return (np.abs(out) < 0.5) & (out * 2.0**53 % 1 != 0)


def worst_epsilon(mechanism: Release, *seeds: int) -> float:
    return max(attack.empirical_epsilon(mechanism, seeds) for attack in attacks_on(mechanism))


BATCHES = [
    pytest.param(5, id="short"),
    pytest.param(50, id="full", marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
]


@pytest.mark.parametrize("batches", BATCHES)
def test_the_claimed_epsilon_holds(batches: int) -> None:
    assert all(worst_epsilon(release, seed) <= EPSILON for seed in range(batches))


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("mutant", [without_clipping, for_a_smaller_sensitivity, with_float_noise])
def test_a_broken_mechanism_is_caught(mutant: Release, batches: int) -> None:
    caught = [worst_epsilon(mutant, seed) > EPSILON for seed in range(batches)]
    assert sum(caught) > batches // 2
    assert worst_epsilon(mutant, *range(batches)) > EPSILON  # all the samples together leave no doubt


def test_every_output_lies_on_the_public_grid() -> None:
    out = drawn(release, of_neighbour=True, seed=1)
    assert np.array_equal(out * 2**FRAC_BITS % 1, np.zeros(len(out)))
    assert not betrays_a_zero(out).any()


def test_float_laplace_noise_would_betray_its_neighbour() -> None:
    noise = np.random.default_rng(1).laplace(size=100_000)
    assert betrays_a_zero(noise).mean() > 0.2
    assert not betrays_a_zero(1 + noise).any()


def test_the_order_of_the_rows_leaves_no_trace() -> None:
    rng = np.random.default_rng(2)
    real = rng.normal(size=(500, 4))
    on_grid = np.trunc(real * 2**FRAC_BITS).astype(np.int64)
    orders = [rng.permutation(500) for _ in range(1000)]
    assert len({on_grid[order].sum(axis=0).tobytes() for order in orders}) == 1
    assert len({real[order].sum(axis=0).tobytes() for order in orders}) > 1
