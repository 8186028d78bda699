"""How good a model is, from noisy sums over the labels of rows that it has scored.

Given the scores, each figure is affine in the labels or a function of counts of positives, so that an evaluation is one
more weighted aggregate. A row is sent as one vector of norm 1 at most, a part for each of m figures, each of norm
1 / sqrt(m); z is the score, clipped to [-c, c], and k the predicted class:

    log loss       z / c              mean softplus(z) - mean y z
    accuracy       2k - 1             mean (1 - k) + mean y (2k - 1)
    calibration    1                  the rate of positives, beside the mean prediction
    auc            1 in its bin       positives in each of equally large bins of the score: AUC and KS of the bins

That all parts share one norm is what it costs to release them one after the other, each with the noise of its own.
Intervals are of the noise alone: of the first three exact, of AUC and KS by drawing the noise again (the reflected
bootstrap, as a largest difference of noisy numbers is too large in the mean).

Source: MATH section 1, label-free evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.logistic import Floats, sigmoid, softplus
from blindfit.algorithms.statistics.walr_plan import entropy

FigureName = Literal["log_loss", "accuracy", "calibration", "auc"]
FIGURES: tuple[FigureName, ...] = get_args(FigureName)
LEAST_BINS, MOST_BINS = 2, 200
Z_95 = 1.959963984540054
DRAWS = 2000  # of the noise, for an interval
LEAST_SCORE_BOUND = 2.0**-10


@dataclass(frozen=True)
class Interval:
    """A figure, and where it lies with 95 % chance as far as the noise goes."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class ScoredRows:
    """What is sent of scored rows, and what is known of them without labels.

    Args:
        scores: (n,), log-odds, clipped to the bound.
        bound: of the scores.
        figures: which parts a row has, in the order of FIGURES.
        bins: (n,), of each row, by ascending score; n_bins of them, and no more than rows.
    """

    scores: Floats
    bound: float
    figures: tuple[FigureName, ...]
    bins: NDArray[np.intp]
    n_bins: int

    @classmethod
    def of(cls, scores: Floats, bound: float, figures: tuple[FigureName, ...], n_bins: int) -> ScoredRows:
        """Raises ConfigError: no figures, or a bound that is not above 0."""
        if not figures or len(set(figures)) < len(figures):
            raise ConfigError("evaluate.figures must name each figure once, and one at least")
        if not LEAST_SCORE_BOUND <= bound < np.inf:
            raise ConfigError(f"evaluate.score_bound must be {LEAST_SCORE_BOUND:g} at least, not {bound:g}")
        order = np.argsort(scores, kind="stable")
        bins = np.empty(len(scores), np.intp)
        bins[order] = np.arange(len(scores)) * n_bins // max(1, len(scores))
        chosen = tuple(name for name in FIGURES if name in figures)
        return cls(np.clip(scores, -bound, bound), bound, chosen, bins, n_bins)

    @property
    def _share(self) -> float:
        """The norm of a part."""
        return float(len(self.figures) ** -0.5)

    @property
    def classes(self) -> NDArray[np.bool_]:
        return self.scores > 0

    def columns(self) -> Floats:
        """(n, width): what is summed over the rows with a label, each of norm 1 at most."""
        return np.hstack([self._columns_of(name) for name in self.figures]) * self._share

    def _columns_of(self, name: FigureName) -> Floats:
        if name == "log_loss":
            return self.scores[:, None] / self.bound
        if name == "accuracy":
            return np.where(self.classes, 1.0, -1.0)[:, None]
        if name == "calibration":
            return np.ones((len(self.scores), 1))
        one_hot: Floats = (self.bins[:, None] == np.arange(self.n_bins)).astype(np.float64)
        return one_hot

    def kept(self, kept: NDArray[np.bool_]) -> ScoredRows:
        """Of rows that counted alone."""
        return ScoredRows(self.scores[kept], self.bound, self.figures, self.bins[kept], self.n_bins)

    def evaluated(self, sums: Floats, noise_std: float, generator: np.random.Generator) -> dict[str, Interval]:
        """
        Args:
            sums: (width,), released of these rows' `columns`.
            noise_std: of each.
        """
        parts = dict(self._parts(np.asarray(sums) / self._share))
        return dict(_Evaluated(self, parts, noise_std / self._share, generator).figures())

    def _parts(self, sums: Floats) -> Iterator[tuple[str, Floats]]:
        start = 0
        for name in self.figures:
            stop = start + (self.n_bins if name == "auc" else 1)
            yield name, sums[start:stop]
            start = stop


@dataclass(frozen=True, repr=False)
class _Evaluated:
    rows: ScoredRows
    parts: dict[str, Floats]
    noise_std: float
    generator: np.random.Generator

    def figures(self) -> Iterator[tuple[str, Interval]]:
        rows = self.rows
        if "log_loss" in self.parts:
            scale = rows.bound / len(rows.scores)
            loss = self._affine(float(softplus(rows.scores).mean()), -scale * float(self.parts["log_loss"][0]), scale)
            yield "log_loss", loss
        if "accuracy" in self.parts:
            wrong = float((~rows.classes).mean())
            n = len(rows.scores)
            yield "accuracy", self._affine(wrong, float(self.parts["accuracy"][0]) / n, 1 / n)
        if "calibration" in self.parts:
            rate = self._affine(0.0, float(self.parts["calibration"][0]) / len(rows.scores), 1 / len(rows.scores))
            yield "positive_rate", rate
            mean = float(sigmoid(rows.scores).mean())
            yield "mean_prediction", Interval(mean, mean, mean)
            if "log_loss" in self.parts and 0 < rate.value < 1:
                base = entropy(rate.value)
                yield "normalised_entropy", Interval(*(one / base for one in (loss.value, loss.low, loss.high)))
        if "auc" in self.parts:
            yield from self._of_bins()

    def _affine(self, known: float, released: float, scale: float) -> Interval:
        reach = Z_95 * self.noise_std * scale
        return Interval(known + released, known + released - reach, known + released + reach)

    def _of_bins(self) -> Iterator[tuple[str, Interval]]:
        counts = np.bincount(self.rows.bins, minlength=self.rows.n_bins).astype(np.float64)
        released = self.parts["auc"]
        noise = self.generator.standard_normal((DRAWS, len(released)))
        drawn = released + self.noise_std * noise
        for name, of_counts in (("auc", _auc), ("ks", _ks)):
            value = float(of_counts(np.clip(released, 0, counts)[None], counts)[0])
            again = of_counts(np.clip(drawn, 0, counts), counts)
            low, high = 2 * value - np.quantile(again, [0.975, 0.025])
            middle = float(np.clip(2 * value - again.mean(), 0, 1))
            yield name, Interval(middle, float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))


def _auc(positives: Floats, counts: Floats) -> Floats:
    """(draws, bins) -> (draws,): ties within a bin count half; 1/2 where one class is missing."""
    negatives = counts - positives
    below = np.cumsum(negatives, axis=1) - negatives / 2
    pairs = positives.sum(axis=1) * negatives.sum(axis=1)
    found: Floats = np.where(pairs > 0, (positives * below).sum(axis=1) / np.maximum(pairs, 1e-300), 0.5)
    return found


def _ks(positives: Floats, counts: Floats) -> Floats:
    """The largest difference between the shares of positives and of negatives in the lower bins."""
    negatives = counts - positives

    def shares(of: Floats) -> Floats:
        cumulated: Floats = np.cumsum(of, axis=1) / np.maximum(of.sum(axis=1, keepdims=True), 1e-300)
        return cumulated

    found: Floats = np.abs(shares(positives) - shares(negatives)).max(axis=1)
    return found
