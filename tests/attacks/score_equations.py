"""Features from scores: a party that knows a few people's features solves for the weights, then for all features."""

from __future__ import annotations

import itertools

import numpy as np


def weights_from(known: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, float]:
    """Solve for the weights of the raw columns and the constant, from people whose features are known."""
    solved = np.linalg.lstsq(np.c_[known, np.ones(len(known))], scores, rcond=None)[0]
    return solved[:-1], float(solved[-1])


def read_binary(known: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(n, k) columns of 0 and 1 from one model's scores; the first rows are the known ones."""
    weights, constant = weights_from(known, scores[: len(known)])
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=known.shape[1])))
    by_score = np.argsort(patterns @ weights)
    values = (patterns @ weights + constant)[by_score]
    middles = (values[1:] + values[:-1]) / 2
    return np.asarray(patterns[by_score[np.searchsorted(middles, scores)]])


def read_columns(known: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(n, k) columns from (models, n) scores; with fewer models than columns, the likeliest ones if all are alike."""
    solved = [weights_from(known, each[: len(known)]) for each in scores]
    weights, constants = np.array([w for w, _ in solved]), np.array([c for _, c in solved])
    middle = known.mean(axis=0)
    rest = scores.T - constants - middle @ weights.T
    return np.asarray(middle + np.linalg.lstsq(weights, rest.T, rcond=None)[0].T)
