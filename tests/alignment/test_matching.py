"""The key node's matcher finds the same pairs as brute force, at most one match for each record, and good matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.alignment import clk, matching
from blindfit.algorithms.alignment.clk import Encoding, Field, Filters
from blindfit.algorithms.alignment.matching import Pairs, alike_pairs, assign, histogram
from blindfit.algorithms.errors import ConfigError, DataError
from examples.linkage.dirty_records import Registers, registers
from tests.alignment.pairs import as_set, pairs_of
from tests.each_case import each_case

ENCODING = Encoding((Field("first_name"), Field("last_name"), Field("birth_date", "date"), Field("postcode")))
THRESHOLD = 0.8


def related_filters(n_first: int, n_second: int, seed: int, bits: int = 256) -> tuple[Filters, Filters]:
    """Return random filters of very different fill; the second's are partly copies with flipped bits; one of each is
    empty.
    """
    rng = np.random.default_rng(seed)
    first = rng.random((n_first, bits)) < rng.uniform(0.05, 0.9, (n_first, 1))
    second = first[rng.integers(0, n_first, n_second)] ^ (rng.random((n_second, bits)) < rng.uniform(0, 0.4))
    first[0], second[-1] = False, False
    return np.packbits(first, axis=1), np.packbits(second, axis=1)


def dice_by_definition(first: Filters, second: Filters) -> np.ndarray[Any, Any]:
    a, b = (np.unpackbits(filters, axis=1).astype(int) for filters in (first, second))
    total = a.sum(1)[:, None] + b.sum(1)
    return np.where(total > 0, 2 * (a @ b.T) / np.maximum(total, 1), 0.0)


# --- which pairs are alike --------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.6, 0.8, 1.0])
@pytest.mark.parametrize(("n_first", "n_second"), [(1, 1), (7, 90), (90, 7), (200, 150)])
def test_all_alike_pairs_and_no_others(
    threshold: float, n_first: int, n_second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "TILE_COLUMNS", 64)
    first, second = related_filters(n_first, n_second, seed=n_first)
    pairs, floor = alike_pairs(first, second, threshold)
    expected = dice_by_definition(first, second)
    assert floor == threshold - matching.WATCHED
    assert as_set(pairs) == set(map(tuple, np.argwhere(expected >= floor).tolist()))
    np.testing.assert_array_equal(pairs.similarity, expected[pairs.first, pairs.second])


def test_a_pair_exactly_at_the_threshold_is_alike() -> None:
    """5 bits each, 4 in common: 0.8, which binary fractions do not hold."""
    first, second = np.zeros((2, 1, 256), np.uint8)
    first[0, :5], second[0, 1:6] = 1, 1
    pairs, _ = alike_pairs(np.packbits(first, axis=1), np.packbits(second, axis=1), 0.8)
    assert pairs.similarity.tolist() == [0.8]
    assert len(assign(pairs, 0.8)) == 1


def test_empty_filters_are_like_nothing() -> None:
    empty = np.zeros((3, 128), np.uint8)
    assert len(alike_pairs(empty, empty, 0.5)[0]) == 0


def test_full_filters_are_counted_right() -> None:
    """4096 bits in common: more than 8 bits, and more than 255 words' worth, count."""
    full = np.full((2, 512), 255, np.uint8)
    assert alike_pairs(full, full, 1.0)[0].similarity.tolist() == [1.0] * 4


def test_pairs_below_the_threshold_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = related_filters(100, 100, seed=3)
    whole, _ = alike_pairs(first, second, 0.8)
    above = whole.where(whole.similarity >= 0.8)
    monkeypatch.setattr(matching, "MAX_CANDIDATES", len(above))
    pairs, floor = alike_pairs(first, second, 0.8)
    assert floor == 0.8
    assert as_set(pairs) == as_set(above)
    monkeypatch.setattr(matching, "MAX_CANDIDATES", len(above) - 1)
    with pytest.raises(DataError, match=r"alike by 0\.8"):
        alike_pairs(first, second, 0.8)


@pytest.mark.parametrize("empty", [1, 6, 40, 70])
def test_progress_does_not_tell_how_many_filters_are_empty(empty: int) -> None:
    told: list[tuple[int, int]] = []
    first, second = related_filters(70, 20, seed=1)
    first[:empty] = 0
    pairs, floor = alike_pairs(first, second, 0.8, lambda done, total: told.append((done, total)))
    assert as_set(pairs) == set(map(tuple, np.argwhere(dice_by_definition(first, second) >= floor).tolist()))
    assert told == [(32, 70), (64, 70), (70, 70)]


@each_case("threshold", [0.49, 1.01, 0.0, -1.0, float("nan")])
def test_thresholds_that_match_all_or_none_are_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match="threshold"):
        alike_pairs(*related_filters(2, 2, seed=0), threshold)


# --- which pairs are matches ------------------------------------------------------------------------

SIMILARITIES = st.sampled_from([0.7, 0.8, 0.85, 0.9, 0.95, 1.0])
SOME_PAIRS = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 7)), SIMILARITIES, max_size=40)


@settings(deadline=None, max_examples=300)
@given(SOME_PAIRS, st.randoms(use_true_random=False))
def test_matches_are_stable_and_the_order_of_pairs_does_not_matter(alike: dict[Any, float], shuffler: Any) -> None:
    triples = [(a, b, s) for (a, b), s in alike.items()]
    matches = assign(pairs_of(triples), THRESHOLD)
    got_first = dict(zip(matches.first.tolist(), matches.similarity.tolist(), strict=True))
    got_second = dict(zip(matches.second.tolist(), matches.similarity.tolist(), strict=True))
    assert len(got_first) == len(got_second) == len(matches)
    assert all(alike[pair] >= THRESHOLD for pair in as_set(matches))
    for (a, b), similarity in alike.items():  # a less alike pair never displaces a better one
        if similarity >= THRESHOLD:
            assert max(got_first.get(a, 0), got_second.get(b, 0)) >= similarity
    shuffler.shuffle(triples)
    assert as_set(assign(pairs_of(triples), THRESHOLD)) == as_set(matches)


def assigned_by_definition(alike: dict[tuple[int, int], float]) -> set[tuple[int, int]]:
    """Assign the most alike pair first; of equals the one whose records have the worse other choices,
    then by position.
    """
    kept = {pair: similarity for pair, similarity in alike.items() if similarity >= THRESHOLD}

    def best_other(pair: tuple[int, int], side: int) -> float:
        return max((s for other, s in kept.items() if other != pair and other[side] == pair[side]), default=0.0)

    matches: set[tuple[int, int]] = set()
    for a, b in sorted(kept, key=lambda pair: (-kept[pair], best_other(pair, 0) + best_other(pair, 1), pair)):
        if all(a != first and b != second for first, second in matches):
            matches.add((a, b))
    return matches


FEW = st.sampled_from([0.7, 0.8, 0.9])  # so that most pairs have an equal one
TIED_PAIRS = st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)), FEW, max_size=30)


@settings(deadline=None, max_examples=300)
@given(TIED_PAIRS)
def test_ties_are_decided_by_other_choices_and_then_by_position(alike: dict[tuple[int, int], float]) -> None:
    assert as_set(assign(pairs_of([(a, b, s) for (a, b), s in alike.items()]), THRESHOLD)) == assigned_by_definition(
        alike
    )


def test_records_that_are_all_alike_match_in_their_order() -> None:
    everybody = [(a, b, 0.9) for a in range(4) for b in range(3)]
    assert as_set(assign(pairs_of(everybody[::-1]), THRESHOLD)) == {(0, 0), (1, 1), (2, 2)}


def test_a_sure_match_is_not_given_up_for_two_doubtful_ones() -> None:
    pairs = pairs_of([(0, 0, 1.0), (0, 1, 0.85), (1, 0, 0.85)])
    assert as_set(assign(pairs, THRESHOLD)) == {(0, 0)}


def test_of_equally_alike_pairs_the_one_without_other_choices_goes_first() -> None:
    pairs = pairs_of([(0, 0, 0.9), (0, 1, 0.9), (1, 0, 0.85)])
    assert as_set(assign(pairs, THRESHOLD)) == {(0, 1), (1, 0)}
    mirrored = pairs_of([(0, 0, 0.9), (1, 0, 0.9), (0, 1, 0.85)])
    assert as_set(assign(mirrored, THRESHOLD)) == {(1, 0), (0, 1)}


# --- people -------------------------------------------------------------------------------------------


def matched(people: Registers, secrets: tuple[bytes, bytes] = (b"k" * 32,) * 2, **encoding: Any) -> Pairs:
    made = Encoding(ENCODING.fields, **encoding)
    first, second = clk.encode(people.first, made, secrets[0]), clk.encode(people.second, made, secrets[1])
    threshold = 0.75 if made.fold else THRESHOLD
    return assign(alike_pairs(first, second, threshold)[0], threshold)


@pytest.mark.parametrize("fold", [False, True])
def test_people_are_found_in_spite_of_typing_errors(fold: bool) -> None:
    people = registers(2000, 2000, 1000, seed=7)
    truth = set(map(tuple, people.true_pairs.tolist()))
    same = sum(
        all(people.first[name][a] == people.second[name][b] for name in people.first) for a, b in truth
    )  # the matches by equality of all fields
    found = as_set(matched(people, fold=fold))
    assert same / len(truth) < 0.5
    assert len(found & truth) / len(truth) > 0.9
    assert len(found & truth) / len(found) > 0.98


def test_under_different_secrets_nobody_matches() -> None:
    assert len(matched(registers(300, 300, 200, seed=8), (b"k" * 32, b"l" * 32))) == 0


# --- what may be reported -----------------------------------------------------------------------------


def test_a_histogram_counts_matches_and_best_non_matches() -> None:
    pairs = pairs_of([(0, 0, 1.0), (0, 1, 0.835), (0, 2, 0.72), (1, 1, 0.8), (2, 3, 0.7), (3, 3, 0.795)])
    matches = assign(pairs, 0.8)
    counts = histogram(pairs, matches, n_first=5, threshold=0.8, floor=0.7)
    assert as_set(matches) == {(0, 0), (1, 1)}
    assert len(counts.edges) == len(counts.matches) + 1 == len(counts.best_non_matches) + 1 == 31
    assert (counts.edges[0], counts.edges[10], counts.edges[-1]) == pytest.approx((0.7, 0.8, 1.0))
    assert 0.8 in counts.edges
    assert {i: n for i, n in enumerate(counts.matches) if n} == {10: 1, 29: 1}
    assert {i: n for i, n in enumerate(counts.best_non_matches) if n} == {0: 1, 9: 1, 13: 1}


@each_case("threshold", [0.5, 0.77, 0.805, 0.999, 1.0])
@each_case("watched", [0.0, 0.1])
def test_bins_go_up_from_the_floor_through_the_threshold_to_one(threshold: float, watched: float) -> None:
    pairs = pairs_of([(0, 0, 1.0), (1, 1, threshold)])
    counts = histogram(pairs, pairs, 2, threshold, threshold - watched)
    assert counts.edges[0] == pytest.approx(threshold - watched)
    assert counts.edges[-1] == 1
    assert threshold in counts.edges
    assert all(low <= high for low, high in zip(counts.edges, counts.edges[1:], strict=False))
    assert sum(counts.matches) == 2
