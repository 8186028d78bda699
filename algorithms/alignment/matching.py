"""The key node's matcher: it finds filters of two parties that are alike, and pairs that are one person.

Likeness is the Dice coefficient 2 |a and b| / (|a| + |b|) of the bits set. The matcher compares all pairs, by counting
bits of packed words, in tiles that stay in a core's cache. It sorts both sides by their number of bits first: filters
of |a| and |b| bits are alike by at most 2 min / (|a| + |b|), so it skips most filters that are too short or too long.

The assignment is greedy, the most alike pair first. No two records then prefer each other to their partners. An
assignment of the largest total would give up a sure match for two doubtful ones; the greedy one never does, because a
wrong match costs a model more than a missed one. Among equally alike pairs, the pair goes first whose records have the
worse other choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.alignment.clk import Filters
from blindfit.algorithms.errors import ConfigError, DataError

Indices = npt.NDArray[np.int64]
Similarities = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Progress = Callable[[int, int], None]  # filters of the first party done, and all of them; from the working thread

TILE_ROWS, TILE_COLUMNS = 32, 4096
MAX_CANDIDATES = 5_000_000  # 24 octets each
WATCHED = 0.1  # pairs less alike than the threshold by up to this are counted, to estimate what was missed
BIN_WIDTH = 0.01


# --- which pairs are alike --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Pairs:
    """Pairs of positions in the two parties' lists, and how alike each pair is."""

    first: Indices
    second: Indices
    similarity: Similarities

    def __len__(self) -> int:
        return len(self.first)

    def where(self, chosen: npt.NDArray[np.bool_] | Indices) -> Pairs:
        return Pairs(self.first[chosen], self.second[chosen], self.similarity[chosen])


def no_pairs() -> Pairs:
    return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def check_threshold(threshold: float) -> None:
    """Raise ConfigError if nothing, or everything, would match."""
    if not 0.5 <= threshold <= 1:
        raise ConfigError(f"threshold = {threshold:g} of the linkage is not between 0.5 and 1")


def alike_pairs(
    first: Filters, second: Filters, threshold: float, on_progress: Progress = lambda _done, _all: None
) -> tuple[Pairs, float]:
    """Return all pairs that are at least as alike as a floor.

    Returns:
        The pairs, and the floor. It lies `WATCHED` below the threshold; where too many pairs lie between the two, it is
        the threshold itself.

    Raises:
        DataError: the pairs above the threshold are more than `MAX_CANDIDATES`. It is raised after all tiles, because
            others would notice an early end.
    """
    check_threshold(threshold)
    floor, found, too_many = threshold - WATCHED, _Found(), False
    for tile in _tiles(_Sorted.of(first), _Sorted.of(second).drop_empty(), floor, on_progress):
        found.add(tile.where(tile.similarity >= floor))
        if found.count > MAX_CANDIDATES and floor < threshold:
            floor = threshold
            found.drop_below(floor)
        if found.count > MAX_CANDIDATES:
            found, too_many = _Found(), True
    if too_many:
        raise DataError(
            f"more than {MAX_CANDIDATES:,} pairs of records are alike by {threshold:g}, as any two people would be",
            hint="raise the threshold, or name fields that distinguish people",
        )
    return found.pairs(), floor


class _Found:
    """Pairs as they are found, tile by tile."""

    def __init__(self) -> None:
        self._parts: list[Pairs] = []
        self.count = 0

    def add(self, pairs: Pairs) -> None:
        if len(pairs):
            self._parts.append(pairs)
            self.count += len(pairs)

    def drop_below(self, floor: float) -> None:
        parts, self._parts, self.count = self._parts, [], 0
        for part in parts:
            self.add(part.where(part.similarity >= floor))

    def pairs(self) -> Pairs:
        parts = [no_pairs(), *self._parts]
        return Pairs(
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.second for part in parts]),
            np.concatenate([part.similarity for part in parts]),
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Sorted:
    """Filters by their number of bits.

    Attributes:
        words: (n, filter_bits / 64).
        counts: (n,) bits set, ascending.
        positions: (n,) in the party's list.
    """

    words: Words
    counts: Counts
    positions: Indices

    @classmethod
    def of(cls, filters: Filters) -> _Sorted:
        words = np.ascontiguousarray(filters).view(np.uint64)
        counts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        order = np.argsort(counts, kind="stable")
        return cls(words[order], counts[order], order)

    def drop_empty(self) -> _Sorted:
        """Leave out the empty filters."""
        first = int(np.searchsorted(self.counts, 1))
        return _Sorted(self.words[first:], self.counts[first:], self.positions[first:])


def _tiles(first: _Sorted, second: _Sorted, floor: float, on_progress: Progress) -> Iterator[Pairs]:
    """Yield the pairs of every tile that are alike by at least the floor; skip tiles that cannot have such a pair.

    The first party's empty filters match nothing, but they are gone through all the same: the progress that others see
    must count every record.

    Args:
        second: without empty ones.
    """
    columns = np.ascontiguousarray(second.words.T)
    shortest = floor / (2 - floor) * (1 - 1e-9)  # of two filters' counts; a little less, as this is rounded
    for start in range(0, len(first.counts), TILE_ROWS):
        counts = first.counts[start : start + TILE_ROWS]
        low = int(np.searchsorted(second.counts, counts[0] * shortest))
        high = int(np.searchsorted(second.counts, counts[-1] / shortest, side="right"))
        for left in range(low, high, TILE_COLUMNS):
            right = min(left + TILE_COLUMNS, high)
            common = _common_bits(first.words[start : start + TILE_ROWS], columns[:, left:right])
            row, column = _alike(common, counts, second.counts[left:right], floor)
            similarity = 2 * common[row, column] / (counts[row] + second.counts[left + column])
            yield Pairs(first.positions[start + row], second.positions[left + column], similarity)
        on_progress(start + len(counts), len(first.counts))


def _common_bits(rows: Words, columns: Words) -> npt.NDArray[np.uint16]:
    """(rows, columns) the number of bits set in both."""
    shape = len(rows), columns.shape[1]
    total = np.zeros(shape, np.uint16)
    both, counts = np.empty(shape, np.uint64), np.empty(shape, np.uint8)
    for word, column in enumerate(columns):
        np.bitwise_and(rows[:, word, None], column, out=both)
        np.bitwise_count(both, out=counts)
        total += counts
    return total


def _alike(common: npt.NDArray[np.uint16], rows: Counts, columns: Counts, floor: float) -> tuple[Indices, Indices]:
    """Find the places where the Dice coefficient reaches the floor, or falls short only by rounding."""
    half = np.float32(floor / 2 * (1 - 1e-6))
    least = half * rows.astype(np.float32)[:, None] + half * columns.astype(np.float32)
    rows_found, columns_found = np.nonzero(common >= least)
    return rows_found.astype(np.int64), columns_found.astype(np.int64)


# --- which pairs are matches ------------------------------------------------------------------------


def assign(pairs: Pairs, threshold: float) -> Pairs:
    """Match greedily, most alike first, each record at most once; the order of `pairs` does not matter."""
    pairs = pairs.where(pairs.similarity >= threshold)
    rivals = _best_other(pairs.first, pairs.similarity) + _best_other(pairs.second, pairs.similarity)
    order = np.lexsort((pairs.second, pairs.first, rivals, -pairs.similarity))
    taken_first: set[int] = set()
    taken_second: set[int] = set()
    chosen = []
    for index, a, b in zip(order.tolist(), pairs.first[order].tolist(), pairs.second[order].tolist(), strict=True):
        if a not in taken_first and b not in taken_second:
            taken_first.add(a)
            taken_second.add(b)
            chosen.append(index)
    return pairs.where(np.array(chosen, np.int64))


def _best_other(records: Indices, similarity: Similarities) -> Similarities:
    """Return, for each pair, the similarity of its record's best other pair; 0 if there is no other pair."""
    order = np.lexsort((-similarity, records))
    sorted_records, sorted_similarity = records[order], similarity[order]
    starts = np.flatnonzero(np.diff(sorted_records, prepend=-1))
    second = np.zeros(len(starts))
    has_second = np.diff(np.append(starts, len(order))) > 1
    second[has_second] = sorted_similarity[starts[has_second] + 1]
    group = np.cumsum(np.diff(sorted_records, prepend=-1) != 0) - 1
    best_other = np.empty(len(order))
    best_other[order] = sorted_similarity[starts[group]]
    best_other[order[starts]] = second
    return best_other


# --- what the key node may report -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of pairs by similarity, in bins [edges[i], edges[i + 1]); the last bin includes its upper end.

    Args:
        edges: from the floor to 1; the threshold is one of them.
        matches: the pairs assigned.
        best_non_matches: for each record of the first party, the most alike record that it is not matched with; records
            whose best such similarity is below the floor are left out.
    """

    edges: tuple[float, ...]
    matches: tuple[int, ...]
    best_non_matches: tuple[int, ...]


def histogram(pairs: Pairs, matches: Pairs, n_first: int, threshold: float, floor: float) -> Histogram:
    """
    Args:
        pairs: all pairs that are alike by at least the floor.
        matches: the assigned pairs among them.
    """
    edges = _edges(threshold, floor)
    others = non_matches(pairs, matches, n_first)
    best = np.full(n_first, -1.0)
    np.maximum.at(best, others.first, others.similarity)
    return Histogram(tuple(edges.tolist()), _count(matches.similarity, edges), _count(best[best >= floor], edges))


def non_matches(pairs: Pairs, matches: Pairs, n_first: int) -> Pairs:
    """Return the pairs that were not assigned."""
    partner = np.full(n_first, -1, np.int64)
    partner[matches.first] = matches.second
    return pairs.where(partner[pairs.first] != pairs.second)


def _edges(threshold: float, floor: float) -> Similarities:
    """Step by BIN_WIDTH from the threshold, down to the floor and up to 1."""
    below = np.arange(round((threshold - floor) / BIN_WIDTH), 0, -1)
    above = np.arange(1, np.ceil((1 - threshold) / BIN_WIDTH - 1e-9))
    return np.concatenate([threshold - BIN_WIDTH * below, [threshold], threshold + BIN_WIDTH * above, [1.0]])


def _count(similarity: Similarities, edges: Similarities) -> tuple[int, ...]:
    bins = np.clip(np.searchsorted(edges, similarity, side="right") - 1, 0, len(edges) - 2)
    return tuple(np.bincount(bins, minlength=len(edges) - 1).tolist())
