"""Columns that a server leaves out, and rows that it shortens, before it sums the joined rows of several parties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.protocols.walr import lone_rows

ROWS = 1200
STEPS = 2.0**12


def integers(*columns: np.ndarray) -> np.ndarray:
    return np.rint(np.column_stack(columns) * STEPS).astype(np.int32)


def hat(rows: np.ndarray) -> np.ndarray:
    """Compute leverages by the pseudo-inverse, of columns of one length, so that no small one counts as zero."""
    real = rows.astype(float)
    real = real / np.maximum(np.linalg.norm(real, axis=0), 1)
    return np.einsum("ij,ji->i", real, np.linalg.pinv(real, rcond=1e-11))


def assert_nobody_stands_out(rows: np.ndarray, n_columns: tuple[int, ...]) -> None:
    """Check this in the columns of all parties except one, for each party."""
    blocks = np.split(rows, np.cumsum(n_columns)[:-1], axis=1)
    for one in range(len(blocks)):
        others = np.concatenate([b for at, b in enumerate(blocks) if at != one], axis=1)
        assert hat(others).max() <= lone_rows.MOST_LEVERAGE * (1 + 1e-5)


@pytest.mark.parametrize("rows", [1, 3, 19, 20, 21, 600])
@pytest.mark.parametrize("standardised", [False, True])
def test_effective_rows_of_a_level_are_the_rows_that_have_it(rows: int, standardised: bool) -> None:
    """A standardised column of a rare level has as many effective rows, or a few more."""
    column = (np.arange(ROWS) < rows) * 1.0
    if standardised:
        column = (column - column.mean()) / column.std()
    found = float(lone_rows.effective_rows(integers(column))[0])
    share = rows / ROWS
    expected = ROWS / (1 / (share * (1 - share)) - 3) if standardised else rows
    assert found == pytest.approx(expected, rel=0.01)


def test_columns_of_few_rows_are_left_out_and_no_others() -> None:
    rng = np.random.default_rng(0)
    levels = [(np.arange(ROWS) < rows) * 1.0 for rows in (1, 19, 20, 100)]
    zeros = np.zeros(ROWS)
    rows = integers(rng.normal(size=ROWS), *levels, zeros, np.ones(ROWS))
    shaped, left_out = lone_rows.shape_rows(rows, (1, 6))
    assert left_out.tolist() == [False, True, True, False, False, True, False]
    assert not shaped[:, left_out].any()
    assert (shaped[:, [0, 3, 4, 6]] == rows[:, [0, 3, 4, 6]]).all()


def test_a_column_for_every_level_beside_a_constant_costs_one_of_them_and_no_person() -> None:
    """Rounding of the rows that were clipped breaks the dependence, by which these would stand out."""
    rng = np.random.default_rng(1)
    levels = (rng.integers(0, 4, ROWS)[:, None] == np.arange(4)) * 1.0
    real = np.column_stack([(levels - levels.mean(axis=0)) / levels.std(axis=0), np.ones(ROWS)])
    real[: ROWS // 100] *= 0.7123
    rows = integers(rng.normal(size=ROWS), real)
    shaped, left_out = lone_rows.shape_rows(rows, (1, 5))
    assert left_out.tolist() == [False, True, False, False, False, False]
    assert (shaped[:, ~left_out] == rows[:, ~left_out]).all()


def nested(rng: np.random.Generator) -> np.ndarray:
    """Return columns at the second and the third party, of which each pair differs in one row."""
    wide = [(np.arange(ROWS) // 40 == pair) * 1.0 for pair in range(4)]
    narrow = [column * (np.arange(ROWS) % 40 > 0) for column in wide]
    return integers(rng.normal(size=(ROWS, 4)), *wide, *narrow)


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return integers(rng.standard_t(3, size=(ROWS, 12)).clip(-30, 30))


def by_one_step(rng: np.random.Generator) -> np.ndarray:
    rows = heavy_tails(rng)
    rows[:, 8:] = rows[:, 4:8]
    rows[np.arange(4), np.arange(8, 12)] += 1
    return rows


def growing(rng: np.random.Generator) -> np.ndarray:
    """Return rows of which each shortened one makes the next one stand out."""
    rows = integers(rng.normal(size=(ROWS, 12)))
    rows[:, 5] = rng.integers(-(2**21), 2**21, ROWS)
    rows[:, 6] = rows[:, 5]
    rows[:20, 6] += 2 ** np.arange(20)
    return rows


@pytest.mark.parametrize("made", [nested, heavy_tails, by_one_step, growing])
def test_no_row_stands_out_in_the_columns_of_all_holders_but_one(
    made: Callable[[np.random.Generator], np.ndarray],
) -> None:
    """Several passive parties may combine their columns."""
    rows = made(np.random.default_rng(2))
    shaped, _ = lone_rows.shape_rows(rows, (4, 4, 4))
    assert_nobody_stands_out(shaped, (4, 4, 4))
    changed = (shaped != rows).any(axis=1)
    assert 0 < changed.sum() < ROWS / 10


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 3), (3, 3, 2)]), st.integers(2, 60))
def test_whatever_rows_there_are_they_get_no_longer_and_keep_their_direction(
    seed: int, n_columns: tuple[int, ...], n_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.standard_cauchy((n_rows, sum(n_columns))) * 1000).clip(-(2**20), 2**20).astype(np.int32)
    shaped, left_out = lone_rows.shape_rows(rows, n_columns)
    assert_nobody_stands_out(shaped, n_columns)
    assert (np.abs(shaped) <= np.abs(rows)).all()
    assert (shaped * np.sign(rows) >= 0).all()
    assert not shaped[:, left_out].any()


def test_rows_needed_are_forty_for_each_column_of_all_holders_but_the_smallest() -> None:
    assert lone_rows.rows_needed([3]) == 120
    assert lone_rows.rows_needed([3, 5]) == 200
    assert lone_rows.rows_needed([3, 5, 7]) == 480
