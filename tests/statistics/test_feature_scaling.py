from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.statistics.linear.scaling import (
    PIECE_ROWS,
    Standardiser,
    append_constant,
    clip_rows,
    row_norms,
    stream_moments,
)
from tests.each_case import each_case


def sample(n_rows: int = 500) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(n_rows, 4)) * [1, 1e-6, 1e6, 3] + [0, 1, -1e7, 1e3]


@each_case("cuts", [[], [1], [100, 101, 300], [0, 500]])
@each_case("n_rows", [500, 3 * PIECE_ROWS + 5])
def test_batches_give_what_the_whole_gives(cuts: list[int], n_rows: int) -> None:
    whole = sample(n_rows)
    fitted = Standardiser.fit(np.split(whole, cuts))
    oracle = StandardScaler().fit(whole)
    np.testing.assert_allclose(fitted.mean, oracle.mean_, rtol=1e-12)
    np.testing.assert_allclose(fitted.std, oracle.scale_, rtol=1e-9)
    np.testing.assert_allclose(fitted.transform(whole), oracle.transform(whole), atol=1e-8)


def test_a_bad_row_is_named_by_its_place_in_all_batches() -> None:
    whole = sample(3 * PIECE_ROWS)
    whole[2 * PIECE_ROWS + 7, 1] = np.nan
    with pytest.raises(DataError, match=f"row {2 * PIECE_ROWS + 7}, column 1"):
        Standardiser.fit(np.split(whole, [100, 101]))


def test_a_large_mean_does_not_drown_the_deviation() -> None:
    times = 1.7e9 + np.arange(1000.0)
    fitted = Standardiser.fit([times[:300, None], times[300:, None]])
    assert fitted.std[0] == pytest.approx(np.sqrt((1000**2 - 1) / 12), rel=1e-9)


@given(st.floats(-1e100, 1e100), st.integers(1, 50), st.integers(1, 50))
def test_a_constant_column_is_noticed_whatever_its_value(value: float, first: int, second: int) -> None:
    batches = [np.column_stack([np.full(n, value), np.arange(n) + n]) for n in (first, second + 1)]
    fitted = Standardiser.fit(batches, ["price", "age"])
    assert (fitted.dropped, fitted.kept_columns) == (("price",), ("age",))
    assert fitted.transform(batches[1]).shape == (second + 1, 1)


def test_of_constant_columns_the_first_may_be_kept_as_zero() -> None:
    rows = np.full((5, 2), 7.0)
    assert Standardiser.fit([rows], ["a", "b"]).kept_columns == ()
    kept = Standardiser.fit([rows], ["a", "b"], at_least_one=True)
    assert (kept.kept_columns, kept.std) == (("a",), (1.0,))
    assert kept.transform(rows).tolist() == [[0.0]] * 5


def test_the_model_file_keeps_every_digit() -> None:
    whole = np.column_stack([sample(), np.ones(500)])
    fitted = Standardiser.fit([whole], ["a", "b", "c", "d", "e"])
    stored = json.loads(json.dumps(fitted.to_dict()))
    assert Standardiser.from_dict(stored) == fitted


@each_case(
    ("change", "field"),
    [
        ({"columns": "ab"}, "columns"),
        ({"columns": ["a", "a"]}, "columns"),
        ({"mean": {"a": 1.0}}, "mean and std"),
        ({"mean": {"a": float("nan"), "b": 1.0}}, "mean"),
        ({"mean": {"a": "1", "b": 1.0}}, "mean"),
        ({"std": {"a": 0.0, "b": 1.0}}, "std"),
        ({"std": None}, "std"),
        ({"mean": {"a": 1.0, "z": 1.0}, "std": {"a": 1.0, "z": 1.0}}, "columns"),
    ],
)
def test_a_damaged_model_file_is_refused_by_field(change: dict[str, object], field: str) -> None:
    good: dict[str, object] = {"columns": ["a", "b"], "mean": {"a": 1.0, "b": 2.0}, "std": {"a": 1.0, "b": 1.0}}
    assert Standardiser.from_dict(good).mean == (1.0, 2.0)
    with pytest.raises(DataError, match=f"^{field}"):
        Standardiser.from_dict(good | change)


def test_bad_rows_are_refused_by_place() -> None:
    good, bad = sample(), sample(3)
    bad[1, 2] = np.inf
    with pytest.raises(DataError, match="row 501, column 2: inf"):
        Standardiser.fit([good, bad])
    with pytest.raises(DataError, match="3 columns where 4"):
        Standardiser.fit([good, good[:, :3]])
    with pytest.raises(DataError, match="no rows"):
        stream_moments([])
    with pytest.raises(DataError, match="numbers only"):
        Standardiser.fit([[["a", "b"]]])
    with pytest.raises(DataError, match="shape"):
        Standardiser.fit([np.zeros(3)])
    with pytest.raises(DataError, match="names"):
        Standardiser.fit([good], ["a"])
    with pytest.raises(DataError, match="every column is constant"):
        Standardiser.fit([np.ones((3, 2))]).require_columns()
    with pytest.raises(RangeError, match="column 0"):
        Standardiser.fit([[[1e300], [-1e300]]])
    with pytest.raises(DataError, match="made for 4"):
        Standardiser.fit([good]).transform(good[:, :2])


@settings(deadline=None)
@given(
    arrays(np.float64, (5, 3), elements=st.floats(-1e300, 1e300, allow_subnormal=False)),
    st.floats(1e-3, 1e3),
)
def test_clipped_rows_are_within_the_bound_and_keep_their_direction(rows: np.ndarray, bound: float) -> None:
    clipped = clip_rows(rows, bound)
    assert (row_norms(clipped) <= bound * (1 + 8 * np.finfo(float).eps)).all()
    short = row_norms(rows) <= bound
    assert np.array_equal(clipped[short], rows[short])
    # Direction: each clipped row is its row times one factor in (0, 1].
    factors = np.minimum(1, bound / np.maximum(row_norms(rows), 1e-300))
    np.testing.assert_allclose(clipped, rows * factors[:, None], rtol=1e-12, atol=1e-300)


def test_the_constant_feature_counts_in_the_norm_and_shrinks_along() -> None:
    clipped = clip_rows(append_constant([[3.0], [0.0]]), 1.0)
    np.testing.assert_allclose(clipped, [[3 / np.sqrt(10), 1 / np.sqrt(10)], [0, 1]])
    for bound in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ConfigError, match="norm_bound"):
            clip_rows([[1.0]], bound)
    with pytest.raises(DataError, match="row 0, column 0"):
        clip_rows([[np.nan]], 1.0)
