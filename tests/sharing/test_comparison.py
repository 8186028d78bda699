from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import comparison, computing
from blindfit.algorithms.sharing.truncation import MOST
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

EXTREMES = [0, 1, -1, 2, -2, MOST - 1, 1 - MOST, 2**30, -(2**30), 2**58, -(2**58)]


@pytest.mark.parametrize("n_parties", [2, 3, 8])
def test_signs_at_the_ends_and_between(n_parties: int) -> None:
    dealer, parties = dealt_to(n_parties)
    x = np.concatenate([EXTREMES * 8, np.random.default_rng(5).integers(1 - MOST, MOST, 100)])
    secrets = shared(x, dealer, parties)
    found, table = compute(dealer, parties, lambda party, place: comparison.not_negative(party, "1", secrets[place]))
    assert reconstructed(found, dealer).tolist() == (x >= 0).tolist()
    assert len(table.rounds) == 7
    assert any(int(c) < 2**60 for c in table.rounds[0][0])  # either case occurred
    assert any(int(c) >= 2**60 for c in table.rounds[0][0])


def test_numbers_that_differ_in_their_last_place() -> None:
    """Scores are compared with such thresholds: a wrong bit anywhere in the tree shows."""
    dealer, parties = dealt_to(2)
    near = np.array([2**place + off for place in range(59) for off in (-1, 0, 1) if 2**place + off < MOST])
    thresholds = np.array([2**place for place in range(59) for off in (-1, 0, 1) if 2**place + off < MOST])
    secrets = shared(near - thresholds, dealer, parties)
    found, _ = compute(dealer, parties, lambda party, place: comparison.not_negative(party, "1", secrets[place]))
    assert reconstructed(found, dealer).tolist() == (near >= thresholds).tolist()


@pytest.mark.parametrize(("below", "rounds"), [(1, 2), (3, 3), (4, 4), (7, 4), (15, 5), (31, 6), (58, 7)])
def test_small_numbers_take_fewer_rounds(below: int, rounds: int) -> None:
    dealer, parties = dealt_to(3)
    ends = [0, 1, -1, 2**below - 1, 1 - 2**below]
    x = np.concatenate([ends * 8, np.random.default_rng(below).integers(1 - 2**below, 2**below, 100)])
    secrets = shared(x, dealer, parties)
    found, table = compute(
        dealer, parties, lambda party, place: comparison.not_negative(party, "1", secrets[place], below)
    )
    assert reconstructed(found, dealer).tolist() == (x >= 0).tolist()
    assert len(table.rounds) == rounds
    opened = [int(c) for c in table.rounds[0][0]]
    assert min(opened) < 2**60 <= max(opened)  # both cases occurred, and small numbers are hidden like large ones


def test_products_and_quotients_take_a_round_each() -> None:
    dealer, parties = dealt_to(3)
    x = np.array([3 << 16, -5 << 16, 1 << 15])
    secrets = shared(x, dealer, parties)

    async def squared(party: computing.Party, place: int) -> computing.Share:
        product = await computing.multiply(party, "square", secrets[place], secrets[place])
        return await computing.divide(party, "square", product, 16)

    found, table = compute(dealer, parties, squared)
    assert len(table.rounds) == 2
    assert np.abs(reconstructed(found, dealer).astype(np.int64) - np.array([9 << 16, 25 << 16, 1 << 14])).max() <= 1
