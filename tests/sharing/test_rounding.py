"""Clipping and rounding down in shares: exact, and so the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import field, rounding
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.shares import Share
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

STEP = 2**7


def integers(number: int = 400) -> np.ndarray:
    """Return integers around whole steps, of both signs, and anywhere."""
    rng = np.random.default_rng(2)
    near = np.concatenate([STEP * np.arange(-4, 5) + off for off in (-1, 0, 1)])
    return np.concatenate([near, rng.integers(-(2**50), 2**50, number), [2**57, -(2**57)]])


@pytest.mark.parametrize("n_parties", [2, 3])
def test_rounding_down_is_exact(n_parties: int) -> None:
    x = integers()
    dealer, parties = dealt_to(n_parties)
    secrets = shared(x, dealer, parties)

    async def floored(party: Party, place: int) -> Share:
        return await rounding.floor(party, "parts", secrets[place], 7)

    found, table = compute(dealer, parties, floored)
    assert np.array_equal(field.integers(reconstructed(found, dealer)), x >> 7)
    assert len(table.rounds) == 1 + 5  # a division, and a comparison of a number of eight bits


def test_each_is_clipped_to_its_own_limit() -> None:
    x = integers()
    limits = np.where(np.arange(len(x)) % 2, 300, 2**40)
    dealer, parties = dealt_to(2)
    secrets = shared(x, dealer, parties)

    async def clipped(party: Party, place: int) -> Share:
        return await rounding.clip(party, "parts", secrets[place], field.elements(limits))

    found, table = compute(dealer, parties, clipped)
    assert np.array_equal(field.integers(reconstructed(found, dealer)), np.clip(x, -limits, limits))
    assert len(table.rounds) == 8
