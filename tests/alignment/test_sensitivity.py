"""Estimated errors of linkage against the truth of made-up registers, and what errors do to a model."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from blindfit.algorithms.alignment import clk
from blindfit.algorithms.alignment.clk import Encoding, Field
from blindfit.algorithms.alignment.matching import Pairs, alike_pairs, assign
from blindfit.algorithms.alignment.sensitivity import SHARES, expected_errors, refit_with_wrong_matches
from blindfit.algorithms.errors import DataError
from examples.linkage.dirty_records import registers
from tests.alignment.pairs import as_set, pairs_of

ENCODING = Encoding((Field("first_name"), Field("last_name"), Field("birth_date", "date"), Field("postcode")))


# --- how many errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_both", "threshold"), [(1500, 0.75), (1500, 0.8), (2700, 0.75)])
def test_the_estimate_holds_the_truth(n_both: int, threshold: float) -> None:
    people = registers(3000, 3000, n_both, seed=4)
    first, second = (clk.encode(side, ENCODING, b"k" * 32) for side in (people.first, people.second))
    pairs, _ = alike_pairs(first, second, threshold)
    matches = assign(pairs, threshold)
    right = len(as_set(matches) & set(map(tuple, people.true_pairs.tolist())))
    wrong, missed = len(matches) - right, n_both - right
    errors = expected_errors(pairs, matches, (3000, 3000), threshold)
    chance = 3 * math.sqrt(wrong + 1)
    assert errors.wrong_least - chance <= wrong <= errors.wrong_most + chance
    assert missed / 2 <= errors.missed <= 2 * missed
    assert errors.wrong_share[0] <= errors.wrong_share[1] < 0.1
    assert errors.missed_share == pytest.approx(errors.missed / n_both, rel=0.05)


def matches_at(similarities: list[float]) -> Pairs:
    return pairs_of([(i, i, similarity) for i, similarity in enumerate(similarities)])


def test_without_strangers_no_match_is_wrong() -> None:
    matches = matches_at([1.0] * 80 + [0.85] * 20)
    errors = expected_errors(matches, matches, (200, 300), 0.8)
    assert (errors.wrong_least, errors.wrong_most) == (0.0, 0.0)
    assert errors.missed == pytest.approx(20 * 20 / 80)


def test_records_that_all_match_have_no_wrong_ones() -> None:
    """A stranger who is already matched takes nobody's place."""
    matches = matches_at([1.0] * 50)
    pairs = pairs_of([(i, j, 1.0) for i in range(50) for j in range(50)])
    errors = expected_errors(pairs, matches, (50, 50), 0.8)
    assert (errors.wrong_least, errors.missed) == (0.0, 0.0)


def test_where_everybody_is_alike_every_match_may_be_wrong() -> None:
    pairs = pairs_of([(i, j, 0.9) for i in range(30) for j in range(40)])
    matches = assign(pairs.where(pairs.first < 20), 0.8)
    errors = expected_errors(pairs, matches, (100, 100), 0.8)
    assert errors.wrong_most == len(matches) == 20


def test_no_matches_are_no_division_by_zero() -> None:
    errors = expected_errors(pairs_of([]), pairs_of([]), (10, 10), 0.8)
    assert errors.wrong_share == (0.0, 0.0)
    assert 0 <= errors.missed_share <= 1


# --- what errors do ---------------------------------------------------------------------------------


def two_parties(n_rows: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, 2))
    score = first @ [0.5, -0.5, 0.2] + second @ [1.0, -0.7]
    return first, second, (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int64)


def test_wrong_matches_cost_loss_and_shrink_the_second_party() -> None:
    results = refit_with_wrong_matches(*two_parties(), np.random.default_rng(1))
    assert [result.wrong_share for result in results] == list(SHARES)
    right = results[0]
    assert (right.weight_change, right.second_party_weights, right.log_loss_spread) == (0.0, 1.0, 0.0)
    for smaller, larger in pairwise(results[1:]):
        assert right.log_loss <= smaller.log_loss < larger.log_loss
        assert smaller.weight_change < larger.weight_change
    assert 0.8 < results[-1].second_party_weights < 0.92  # lower by one to two times the share of wrong matches


def test_a_single_row_has_nobody_to_change_with() -> None:
    results = refit_with_wrong_matches(*two_parties(100), np.random.default_rng(1), shares=(0.01,), repeats=2)
    assert results[0].weight_change == 0


def test_rows_that_do_not_belong_together_are_refused() -> None:
    first, second, labels = two_parties(50)
    with pytest.raises(DataError, match="do not belong together"):
        refit_with_wrong_matches(first, second[:-1], labels, np.random.default_rng(0))
