"""Sums of squared errors in shares agree with those of plain numbers."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import field, squares
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.shares import Share
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

SCORE_BITS, LABEL_BITS, ROWS = 36, 14, 300


def test_the_sum_is_the_plain_one_within_the_rounding_of_each_row() -> None:
    rng = np.random.default_rng(2)
    z, y = rng.normal(0, 8, ROWS), np.rint(rng.normal(0, 2, ROWS) * 2**LABEL_BITS) / 2**LABEL_BITS
    dealer, parties = dealt_to(2)
    scores = shared(np.rint(z * 2.0**SCORE_BITS).astype(np.int64), dealer, parties, "z")
    labels = shared((y * 2**LABEL_BITS).astype(np.int64), dealer, parties, "y")
    kept = squares.error_bits(ROWS, 64.0)

    async def errors(party: Party, place: int) -> Share:
        return await squares.squared_errors(party, "e", scores[place], labels[place], SCORE_BITS, LABEL_BITS, kept)

    found, table = compute(dealer, parties, errors)
    total = float(field.integers(reconstructed(found, dealer))[0]) / 4.0**kept
    unit = 2.0**-kept
    assert abs(total - ((z - y) ** 2).sum()) <= 2 * unit * np.abs(z - y).sum() + ROWS * unit**2
    assert len(table.rounds) == 2


@pytest.mark.parametrize("rows", [1, 50, 4096, 1_000_000, 4_000_000])
def test_the_largest_errors_fit(rows: int) -> None:
    bits = squares.error_bits(rows, 64.0)
    assert bits >= 12
    assert rows * ((64 << bits) + 1) ** 2 < 2**59


def test_scores_are_clipped_at_their_bound() -> None:
    numbers = np.array([0, 5, -5, 9, 10, 11, -9, -10, -11, 2**50, -(2**50)])
    dealer, parties = dealt_to(3)
    z = shared(numbers, dealer, parties, "z")

    async def clip(party: Party, place: int) -> Share:
        return await squares.clip(party, "c", z[place], 10)

    found, table = compute(dealer, parties, clip)
    assert field.integers(reconstructed(found, dealer)).tolist() == np.clip(numbers, -10, 10).tolist()
    assert len(table.rounds) == 8
