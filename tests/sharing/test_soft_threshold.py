"""The soft threshold in shares equals that of integers, exactly."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.soft_threshold import ROUNDS, soft_threshold
from tests.sharing.computing import TableOfAll, compute
from tests.sharing.parties import dealt_to, reconstructed, shared

LARGEST = 2**40


def thresholded(w: list[int], t: list[int]) -> tuple[list[int], TableOfAll]:
    dealer, parties = dealt_to(2)
    shares = shared(np.array(w), dealer, parties, "w")

    async def drawn(party: Party, place: int) -> Share:
        return await soft_threshold(party, "t", shares[place], field.elements(t))

    found, table = compute(dealer, parties, drawn)
    return field.integers(reconstructed(found, dealer)).tolist(), table


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-LARGEST, LARGEST), st.integers(0, LARGEST)), min_size=1, max_size=8))
def test_it_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    w, t = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found, table = thresholded(w, t)
    assert found == (np.sign(w) * np.maximum(np.abs(w) - np.array(t), 0)).tolist()
    assert len(table.rounds) == ROUNDS


def test_at_the_threshold_and_beside_it() -> None:
    assert thresholded([7, -7, 8, -8, 6, -6, 0, 5, 0], [7, 7, 7, 7, 7, 7, 7, 0, 0])[0] == [0, 0, 1, -1, 0, 0, 0, 5, 0]
