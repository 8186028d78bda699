"""Pairs that matching finds."""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.alignment.matching import Pairs


def pairs_of(triples: list[tuple[int, int, float]]) -> Pairs:
    first, second, similarity = zip(*triples, strict=True) if triples else ((), (), ())
    return Pairs(np.array(first, np.int64), np.array(second, np.int64), np.array(similarity, np.float64))


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
