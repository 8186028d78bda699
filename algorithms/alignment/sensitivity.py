"""Errors of linkage: how many there probably are, and what they do to a model.

The key node has no truth; it estimates the errors from the similarities only:

    Wrong     A record without a partner is matched when a stranger without a partner is alike enough. Each record i has
              k_i such strangers: its pairs above the threshold, without its match. With W wrong matches, a share
              u_B = (n_B - M + W) / n_B of the second party's records has no partner. The first party then has
              n_A - M + W records without a partner, and W = (n_A - M + W) mean_i [1 - (1 - u_B)^k_i].
              The same holds from the second party's side; the estimate is the smaller of the two. A wrong match hides
              one of the k_i.
              `wrong_least` takes W = 0 on the right hand side, `wrong_most` solves the equation.
              Two assumptions: records with and without a partner are alike to equally many strangers, and nobody
              is twice in one register.
    Missed    With near and far the right matches in the lower and upper half of [threshold, 1], the interval of the
              same width below the threshold has near^2 / far. The numbers decline by the same factor twice.
              Pairs that are still less alike are not counted.
              Assumes that decline, which holds roughly where errors are few.

Where wrong_most is far from wrong_least, the threshold is too low for so few partners, and neither is a usable figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.alignment.matching import Indices, Pairs, non_matches
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.logistic import Floats, as_rows, sigmoid, weighted_aggregate
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.quality.metrics import log_loss

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)


# --- how many errors --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpectedErrors:
    """Numbers of matches; see the top of this file for what they assume."""

    n_matches: int
    wrong_least: float
    wrong_most: float
    missed: float

    @property
    def wrong_share(self) -> tuple[float, float]:
        """Share of the matches that are wrong, at least and at most."""
        return self.wrong_least / max(self.n_matches, 1), self.wrong_most / max(self.n_matches, 1)

    @property
    def missed_share(self) -> float:
        """Share of all true pairs that were missed."""
        true_pairs = self.n_matches - self.wrong_least + self.missed
        return self.missed / true_pairs if true_pairs > 0 else 0.0


def expected_errors(pairs: Pairs, matches: Pairs, sizes: tuple[int, int], threshold: float) -> ExpectedErrors:
    """
    Args:
        pairs: all pairs that are alike by at least the threshold, or more pairs.
        matches: the assigned pairs among them.
        sizes: numbers of records of the two parties.
    """
    n_matches = len(matches)
    others = non_matches(pairs.where(pairs.similarity >= threshold), matches, sizes[0])
    strangers = np.bincount(others.first, minlength=sizes[0]), np.bincount(others.second, minlength=sizes[1])
    least = wrong = _wrong(0.0, strangers, n_matches)
    for _ in range(1000):  # it only grows, up to the number of matches
        before, wrong = wrong, _wrong(wrong, strangers, n_matches)
        if wrong - before < 0.01:
            break
    return ExpectedErrors(n_matches, least, wrong, _estimate_missed(matches, least, threshold, min(sizes) - n_matches))


def _wrong(wrong: float, strangers: tuple[Indices, Indices], n_matches: int) -> float:
    """Return the right hand side of the equation for W."""
    sizes = [len(of_party) for of_party in strangers]
    lone = [size - n_matches + wrong for size in sizes]
    found = []
    for of_party, size, mine, theirs in zip(strangers, sizes, lone, reversed(lone), strict=True):
        other_size = sum(sizes) - size
        share = theirs / other_size
        found.append(mine * (float((1 - (1 - share) ** of_party).sum()) + wrong * share) / size)
    return min(*found, float(n_matches))


def _estimate_missed(matches: Pairs, wrong: float, threshold: float, most: int) -> float:
    """Estimate the missed matches: at most `most` and the wrong ones, which are taken to lie in the lower half."""
    upper = matches.similarity >= (threshold + 1) / 2
    near, far = max(float((~upper).sum()) - wrong, 0.0), float(upper.sum())
    return min(near * near / far, most + wrong) if far else most + wrong


# --- what errors do ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefitResult:
    """A model fitted with a share of wrong matches, compared with the model without; means over repeats.

    Args:
        wrong_share: share of rows that have another row's features of the second party.
        log_loss: log loss on the rows as they truly belong together.
        log_loss_spread: standard deviation over repeats.
        weight_change: norm of the difference of the weights over the norm of the right weights.
        second_party_weights: norm of the second party's weights over that of its right weights: errors shrink it.
    """

    wrong_share: float
    log_loss: float
    log_loss_spread: float
    weight_change: float
    second_party_weights: float


def refit_with_wrong_matches(
    first: Floats,
    second: Floats,
    labels: Indices,
    generator: np.random.Generator,
    *,
    shares: Sequence[float] = SHARES,
    repeats: int = 5,
    l2: float = 1e-3,
) -> list[RefitResult]:
    """Fit logistic regressions on rows that belong together, with more and more of them torn apart.

    For a demo, where one machine holds both parties' rows; wrong matches are drawn among the given rows.

    Args:
        first, second: (n, k_first) and (n, k_second) features, standardised; row i of both is one person.
        labels: (n,) 0 or 1.
        generator: source that draws the rows to tear apart.

    Raises:
        DataError: the three are not of one length.
    """
    n_rows = len(labels)
    if not len(first) == len(second) == n_rows:
        raise DataError(f"{len(first)} and {len(second)} rows of features and {n_rows} labels do not belong together")
    right = _fit(first, second, labels, l2)
    results = []
    for share in shares:
        count = round(share * n_rows)
        fits = [
            _fit(first, second[_displace_rows(n_rows, count, generator)], labels, l2)
            for _ in range(repeats if count else 1)
        ]
        results.append(_compare(share, fits, right, (first, second, labels)))
    return results


def _displace_rows(n_rows: int, count: int, generator: np.random.Generator) -> Indices:
    """Move `count` drawn rows, each to the place of another drawn row. Where only one is drawn, none moves."""
    rows = np.arange(n_rows)
    drawn = generator.permutation(n_rows)[:count]
    rows[drawn] = np.roll(drawn, 1)
    return rows


def _design(first: Floats, second: Floats) -> Floats:
    return np.column_stack([first, second, np.ones(len(first))])


def _fit(first: Floats, second: Floats, labels: Indices, l2: float) -> Floats:
    rows = as_rows(_design(first, second))
    return fit(rows, weighted_aggregate(rows, labels), SolverSettings(l2=l2)).weights


def _compare(share: float, fits: Sequence[Floats], right: Floats, truth: tuple[Floats, Floats, Indices]) -> RefitResult:
    first, second, labels = truth
    design, block = _design(first, second), slice(first.shape[1], first.shape[1] + second.shape[1])
    losses = [log_loss(labels, sigmoid(design @ weights)) for weights in fits]
    norm = np.linalg.norm
    return RefitResult(
        wrong_share=share,
        log_loss=float(np.mean(losses)),
        log_loss_spread=float(np.std(losses)),
        weight_change=float(np.mean([norm(weights - right) / norm(right) for weights in fits])),
        second_party_weights=float(np.mean([norm(weights[block]) / norm(right[block]) for weights in fits])),
    )
