"""The proof that rows are short: only honest rows pass, for any squares modulo p."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.dealing import Dealer, Expander
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.short_rows import PROJECTIONS, Plan, Verifier
from tests.walr_shares.rows import huge_row

PLAN = Plan(60, 3, 2**15)


def honest_numbers(plan: Plan, seed: int = 0) -> np.ndarray:
    real = np.random.default_rng(seed).normal(size=(plan.n_rows, plan.n_columns))
    real *= (plan.norm_bound - 1) / np.linalg.norm(real, axis=1, keepdims=True)
    real[::2] *= 0.1
    return short_rows.fill_rows(real.astype(np.int32), plan)


def opened(
    numbers: Elements,
    plan: Plan = PLAN,
    bits_of: Callable[[np.ndarray, Plan], np.ndarray] = short_rows.bits_of,
) -> int:
    """Return the number that two parties with shares open: 0 if all of it holds. Only for rows of one block.

    Args:
        bits_of: bits of the sums, as a cheating party has them.
    """
    prover, seeds = Seed.random(), [Seed.random(), Seed.random()]
    dealer, signs, coefficients = Dealer(seeds), short_rows.signs_of(Seed.random(), plan, 0), Seed.random()
    items = [item_of(plan, 0, prover) for item_of in (short_rows.rows_item, short_rows.bits_item)]
    corrections = [dealer.deal(item)[1] for item in items]
    sums = f.integers(short_rows._project(signs, numbers))
    bits = f.elements(bits_of(sums, plan))
    masked = f.subtract(numbers, short_rows.row_masks(plan, 0, prover))
    masked_bits = f.subtract(bits, short_rows.bit_masks(plan, 0, prover))
    total = None
    for place, seed in enumerate(seeds):
        expander = Expander(seed, place)
        rows, given_bits = (
            expander.shares(item, correction if place == 0 else None)
            for item, correction in zip(items, corrections, strict=True)
        )
        verifier = Verifier(plan, expander.holder)
        each = coefficients.elements("rows", (plan.n_rows,))
        mine = verifier.of_rows(each, masked, rows["mask"], rows["square"])
        projections = verifier.projections(signs, masked, rows["mask"])
        mine = mine + verifier.of_bits(coefficients, "bits", projections, masked_bits, given_bits)
        total = mine if total is None else total + mine
    assert total is not None
    assert total.mac is not None
    assert (total.mac == f.multiply(total.value, dealer.mac_key)).all()
    return int(total.value[0])


def test_honest_rows_pass() -> None:
    assert opened(f.elements(honest_numbers(PLAN))) == 0


def test_huge_numbers_whose_squares_are_small_modulo_p_are_noticed() -> None:
    """They pass unnoticed with chance 2^-60."""
    numbers = f.elements(honest_numbers(PLAN))
    row = huge_row(PLAN)
    assert sum(number * number for number in row) % f.P == PLAN.norm_bound**2
    assert min(max(row), f.P - max(row)) > 2**40
    numbers[7] = row

    def nearest(sums: np.ndarray, plan: Plan) -> np.ndarray:
        return short_rows.bits_of(np.clip(sums, -(1 << plan.bits), (1 << plan.bits) - 1), plan)

    assert opened(numbers, bits_of=nearest) != 0


@pytest.mark.parametrize("more", [1, -1, 2**20])
def test_a_row_of_any_other_length_is_noticed(more: int) -> None:
    """This holds for a row whose length is off by one grid step."""
    numbers = honest_numbers(PLAN)
    numbers[11, 0] += more
    assert opened(f.elements(numbers)) != 0


def test_bits_that_are_no_bits_are_noticed() -> None:
    """2 and -1 in two places stand for the same number as a 0 and a 0."""

    def cheating(sums: np.ndarray, plan: Plan) -> np.ndarray:
        bits = short_rows.bits_of(sums, plan)
        bits[5, 3] += 2
        bits[5, 4] -= 1
        return bits

    assert opened(f.elements(honest_numbers(PLAN)), bits_of=cheating) != 0


def test_bits_of_another_number_are_noticed() -> None:
    def cheating(sums: np.ndarray, plan: Plan) -> np.ndarray:
        bits = short_rows.bits_of(sums, plan)
        bits[5, 0] ^= 1
        return bits

    assert opened(f.elements(honest_numbers(PLAN)), bits_of=cheating) != 0


@given(st.lists(st.integers(0, 2**51 - 1), min_size=1, max_size=20))
def test_every_number_is_a_sum_of_six_squares(numbers: list[int]) -> None:
    parts = short_rows.squares_of(np.array(numbers, np.int64))
    assert parts.shape == (len(numbers), short_rows.SQUARES)
    assert [sum(int(part) ** 2 for part in row) for row in parts] == numbers


def test_the_table_of_four_squares_is_whole() -> None:
    table = short_rows._four_squares()
    assert ((table**2).sum(axis=1) == np.arange(len(table))).all()
    assert (table >= 0).all()


@given(st.integers(1, 2**12), st.integers(1, 2**25), st.integers(1, 2**31))
def test_squares_of_what_the_bits_allow_do_not_wrap_round(n_columns: int, norm_bound: int, n_rows: int) -> None:
    try:
        plan = Plan(n_rows, n_columns, norm_bound)
    except RangeError:
        return
    assert plan.width * (2 * 2**plan.bits) ** 2 + norm_bound**2 < f.P
    rows = plan.block_rows
    assert 1 <= rows <= max(1, short_rows.MOST_BLOCK_NUMBERS // plan.width)
    assert n_rows * plan.width <= short_rows.MOST_NUMBERS
    assert short_rows.TAIL * norm_bound * math.sqrt(rows) <= 2**plan.bits  # an honest sum fits but for 2 e^-36
    assert plan.blocks[-1].stop == n_rows


def test_so_many_rows_that_a_holder_could_not_hold_their_shares_are_refused() -> None:
    """An active party that claims so many rows would fill the server's memory."""
    with pytest.raises(RangeError, match="are more than"):
        Plan(2**31, 50, 2**15)


def test_rows_that_cannot_be_proved_are_refused_with_what_to_do() -> None:
    with pytest.raises(RangeError, match="too long to be proved short") as refusal:
        Plan(100, 20, 2**25)
    assert "frac_bits" in refusal.value.hint


def test_a_row_longer_than_the_bound_is_not_even_filled() -> None:
    with pytest.raises(RangeError, match="longer than the norm bound"):
        short_rows.fill_rows(np.array([[0, 0, 0], [2**15, 1, 0], [1, 1, 1]], np.int32), PLAN)


def test_signs_are_minus_one_zero_and_one_with_their_chances() -> None:
    """40,000 signs: a share 7 standard deviations off has a chance of 3e-12."""
    signs = short_rows.signs_of(Seed(b"s" * 32), Plan(70, 3, 2**15), 0)
    assert signs.shape == (PROJECTIONS, 70 * 9)
    for sign, chance in ((-1, 0.25), (0, 0.5), (1, 0.25)):
        share = float((signs == sign).mean())
        assert abs(share - chance) < 7 * math.sqrt(chance * (1 - chance) / signs.size)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_sums_of_elements_are_exact(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, f.P, n, dtype=np.uint64)
    values[0] = f.P - 1
    signs = rng.integers(-1, 2, (PROJECTIONS, n)).astype(np.float64)
    wanted = [sum(int(s) * int(v) for s, v in zip(row, values, strict=True)) % f.P for row in signs]
    assert short_rows._project(signs, values).tolist() == wanted
