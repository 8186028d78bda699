"""Sums of short times long integers through float64 are exact."""

from __future__ import annotations

import numpy as np
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.paillier.weighted_sums import BLOCK, BLOCKS, WEIGHT_BITS, weighted_sums
from tests.paillier.tools import LAW

MOST_WEIGHT = 2**62 - 1


@given(
    st.lists(st.lists(st.integers(0, MOST_WEIGHT), min_size=2, max_size=2), max_size=6),
    st.lists(st.integers(0, 2**3000), min_size=6, max_size=6),
)
@LAW
def test_a_sum_is_the_sum(weights: list[list[int]], integers: list[int]) -> None:
    matrix = np.array(weights, dtype=np.int64).reshape(-1, 2)
    expected = [sum(row[j] * integer for row, integer in zip(weights, integers, strict=False)) for j in range(2)]
    assert weighted_sums(matrix, integers[: len(weights)]) == expected


def test_the_largest_numbers_are_exact_across_blocks() -> None:
    rows = 2 * BLOCK * BLOCKS + 1
    largest = mpz(2) ** 2048 - 1
    weights = np.full((rows, 1), MOST_WEIGHT)
    assert weighted_sums(weights, [largest] * rows) == [rows * MOST_WEIGHT * largest]
    assert BLOCK * BLOCKS * (2**16 - 1) * (2**WEIGHT_BITS - 1) < 2**53


def test_no_rows_give_zeros() -> None:
    assert weighted_sums(np.zeros((0, 3), dtype=np.int64), []) == [0, 0, 0]
