from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from algorithms.randomness import public_generator, system_uniform


def test_system_uniform_is_uniform() -> None:
    counts = Counter(system_uniform(7) for _ in range(20_000))
    assert set(counts) == set(range(7))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_system_uniform_of_one_and_of_nothing() -> None:
    assert system_uniform(1) == 0
    with pytest.raises(ValueError, match="positive"):
        system_uniform(0)


def test_a_public_seed_repeats() -> None:
    first, second = (public_generator(7, "split").integers(2**63, size=100) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(("seed", "purpose"), [(8, "split"), (7, "batches"), (71, "/split")])
def test_purposes_and_seeds_are_apart(seed: int, purpose: str) -> None:
    first = public_generator(7, "split").integers(2**63, size=100)
    assert not np.intersect1d(first, public_generator(seed, purpose).integers(2**63, size=100)).size


def test_parties_on_different_versions_draw_the_same_plan() -> None:
    assert public_generator(1, "split").integers(1000, size=3).tolist() == PLAN_OF_SEED_1


PLAN_OF_SEED_1 = [669, 68, 520]
