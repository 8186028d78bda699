"""Scores are rounded so that those of all models reveal at most half of a row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.score_leaks import (
    LEAST_SCORE_BITS,
    MODEL_BITS,
    MOST_SCORE_BITS,
    SCORE_BITS,
    RowContent,
    default_models,
    rounding_for,
    score_bits,
)
from tests.each_case import each_case
from tests.predict.parts import model_parts, part_of, rows_for


@each_case(
    ("distinct", "columns", "continuous", "bits", "models"),
    [
        ([2] * 8, 8, 0, 8.0, 3),
        ([4096] * 10, 10, 10, 120.0, 4),
        ([10**6] * 4, 4, 4, 48.0, 1),
        ([4096, 1, 0, 16, 17], 3, 2, 12 + 4 + math.log2(17), 1),
        ([], 0, 0, 0.0, 0),
    ],
)
def test_what_a_row_holds(distinct: list[int], columns: int, continuous: int, bits: float, models: int) -> None:
    content = RowContent.of(distinct)
    assert (content.columns, content.continuous, content.max_models) == (columns, continuous, models)
    assert content.bits == pytest.approx(bits)


@each_case(
    ("distinct", "words"),
    [
        ([4096] * 3, "it has 3 columns that vary, fewer than 4"),
        ([4096] * 3 + [1], "it has 3 columns that vary, fewer than 4"),
        ([16] * 40, "none of its 40 columns has more than 16 values"),
        ([17, 2, 2, 2], "its rows have 7.1 bits each, fewer than 26"),
        ([17] + [2] * 21, "its rows have 25.1 bits each, fewer than 26"),
        ([17] + [2] * 22, ""),
        ([4096] * 4, ""),
    ],
)
def test_rows_that_any_score_would_tell(distinct: list[int], words: str) -> None:
    assert RowContent.of(distinct).weakness() == words


@given(st.lists(st.integers(2, 5000), min_size=4, max_size=40))
def test_all_models_together_have_at_most_half_of_a_rows_bits(distinct: list[int]) -> None:
    content = RowContent.of(distinct)
    assert content.models * MODEL_BITS <= content.bits / 2
    assert content.models <= content.max_models
    assert content.models > 0 or content.weakness()
    assert LEAST_SCORE_BITS <= SCORE_BITS < MODEL_BITS <= MOST_SCORE_BITS


@given(st.integers(1, 1000))
def test_the_default_suits_columns_of_100_values(columns: int) -> None:
    assert default_models(columns) >= 1
    if columns >= 4:
        assert default_models(columns) <= RowContent.of([100] * columns).models


@given(st.data(), st.integers(LEAST_SCORE_BITS, MOST_SCORE_BITS))
@settings(max_examples=50, deadline=None)
def test_rounded_scores_have_as_many_values_as_they_may(data: st.DataObject, bits: int) -> None:
    part: VerticalModelPart = data.draw(model_parts())
    rounding = rounding_for(part, bits)
    assert score_bits(part.largest_steps, rounding) <= bits
    assert rounding == 0 or score_bits(part.largest_steps, rounding - 1) > bits
    scores = part.score_parts(data.draw(rows_for(part)))
    assert (np.abs(scores) <= part.largest_steps + (1 << part.score_rounding >> 1)).all()


def test_a_score_is_rounded_to_the_nearest_and_halves_upwards() -> None:
    weights = np.array([2.0**-20])
    part = part_of("post", columns=1, weights=weights)
    (mean,), (std,) = part.standardiser.mean, part.standardiser.std
    steps = np.array([-3, -2, -1, 0, 1, 2, 3])  # steps of 2^-12: each is 2^10 steps of a score
    rows = (mean + std * steps / 2**12)[:, None]
    assert part.score_parts(rows).tolist() == (steps * 2**10).tolist()
    rounded = part_of("post", columns=1, weights=weights, score_rounding=11).score_parts(rows)
    assert (rounded / 2**11).tolist() == [-1, -1, 0, 0, 1, 1, 2]
