from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Dealer, Expander
from blindfit.algorithms.sharing.largest import largest
from blindfit.algorithms.sharing.shares import Share
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

BELOW = 6  # bits of the differences of all numbers, by default
RANGE = 2 ** (BELOW - 1)


def found_in(
    secrets: Sequence[Share], dealer: Dealer, parties: Sequence[Expander], below: int = BELOW
) -> tuple[list[int], int]:
    """Return the result, and the number of rounds."""
    found, table = compute(dealer, parties, lambda party, place: largest(party, "largest", secrets[place], below))
    return field.integers(reconstructed(found, dealer)).tolist(), len(table.rounds)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 17, 64, 65])
def test_it_is_the_largest_wherever_it_stands(n: int) -> None:
    rng = np.random.default_rng(n)
    dealer, parties = dealt_to(2)
    for place in {0, 1, n // 2, n - 2, n - 1} & set(range(n)):
        x = rng.integers(-RANGE, RANGE, n)
        x[place] = x.max()  # the largest number may occur elsewhere too
        assert found_in(shared(x, dealer, parties, f"x {place}"), dealer, parties)[0] == [x.max()]


@pytest.mark.parametrize("same", [0, -5, RANGE - 1])
def test_of_equal_numbers_one_is_taken(same: int) -> None:
    dealer, parties = dealt_to(3)
    assert found_in(shared(np.full(20, same), dealer, parties), dealer, parties)[0] == [same]


def test_numbers_that_differ_by_as_much_as_they_may() -> None:
    dealer, parties = dealt_to(2)
    x = np.array([-RANGE, RANGE - 1, -RANGE, RANGE - 1, 0, -1, 1, -RANGE, RANGE - 1])
    assert found_in(shared(x, dealer, parties), dealer, parties)[0] == [RANGE - 1]


def test_five_hundred_and_twelve_take_three_comparisons_one_after_another() -> None:
    dealer, parties = dealt_to(2)
    x = np.random.default_rng(3).integers(-(2**13), 2**13, 512)
    comparison, product_of_seven, product = 5, 3, 1
    rounds = 3 * (comparison + product_of_seven + product)
    assert found_in(shared(x, dealer, parties), dealer, parties, below=15) == ([x.max()], rounds)
