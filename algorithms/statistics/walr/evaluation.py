"""The quality of a model, from noisy sums over the labels of rows that it has scored.

Given the scores, each figure is affine in the labels or a function of counts of positives. So an evaluation is one more
weighted aggregate. A row is sent as one vector of norm 1 at most, a part for each of m figures, each of norm
1 / sqrt(m); z is the score, clipped to [-c, c], and k the predicted class:

    Log loss       z / c              mean softplus(z) - mean y z.
    Accuracy       2k - 1             mean (1 - k) + mean y (2k - 1).
    Calibration    1                  the rate of positives, next to the mean prediction.
    AUC            1 in its bin       positives in each of equally large bins of the score: AUC and KS of the bins.

One shared norm for all parts costs as much as releasing them one after the other, each with its own noise. Intervals
cover only the noise. They are exact for the first three figures; `evaluation_bins` computes them for AUC and KS. For
the log loss over that of a constant, they cover an ellipse of both.

Source: MATH section 1, label-free evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.logistic import Floats, sigmoid, softplus
from blindfit.algorithms.statistics.walr.evaluation_bins import Z_95, Interval, NoisyBins, NoisyCount, over_ellipse
from blindfit.algorithms.statistics.walr.forecast import entropy

FigureName = Literal["log_loss", "accuracy", "calibration", "auc"]
FIGURES: tuple[FigureName, ...] = get_args(FigureName)
LEAST_BINS, MOST_BINS = 2, 200
LEAST_SCORE_BOUND = 2.0**-10


@dataclass(frozen=True, repr=False)
class ScoredRows:
    """The contents of scored rows, and the facts about them without labels.

    Args:
        scores: (n,), log-odds, clipped to the bound.
        bound: largest score.
        figures: parts of a row, in the order of FIGURES.
        bins: (n,), bin of each row, by ascending score; n_bins of them, and at most as many as rows.
    """

    scores: Floats
    bound: float
    figures: tuple[FigureName, ...]
    bins: NDArray[np.intp]
    n_bins: int

    @classmethod
    def of(cls, scores: Floats, bound: float, figures: tuple[FigureName, ...], n_bins: int) -> ScoredRows:
        """Sort the scores into bins and clip them; raise ConfigError for no figures, or a bound that is not above 0."""
        if not figures or len(set(figures)) < len(figures):
            raise ConfigError("evaluate.figures must name at least one figure, and each figure once")
        if not LEAST_SCORE_BOUND <= bound < np.inf:
            raise ConfigError(f"evaluate.score_bound must be at least {LEAST_SCORE_BOUND:g}, not {bound:g}")
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
        """Return the vectors that are summed over the rows with a label, (n, width), each of norm 1 at most."""
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

    def select(self, kept: NDArray[np.bool_]) -> ScoredRows:
        """Select the rows that counted."""
        return ScoredRows(self.scores[kept], self.bound, self.figures, self.bins[kept], self.n_bins)

    def evaluate(self, sums: Floats, noise_std: float, generator: np.random.Generator) -> dict[str, Interval]:
        """Compute the figures.

        Args:
            sums: (width,), released sums of these rows' `columns`.
            noise_std: standard deviation of each sum.
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
                yield from self._over_constant(loss, rate)
        if "auc" in self.parts:
            yield from self._of_bins()

    def _affine(self, known: float, released: float, scale: float) -> Interval:
        reach = Z_95 * self.noise_std * scale
        return Interval(known + released, known + released - reach, known + released + reach)

    def _over_constant(self, loss: Interval, rate: Interval) -> Iterator[tuple[str, Interval]]:
        """Yield the log loss over that of a constant, whose noise is independent, if there are two classes."""
        n = len(self.rows.scores)
        counts, off = NoisyCount(rate.value * n, self.noise_std, n).likely(Z_95)
        if len(counts):
            bases = np.array([entropy(count / n) for count in counts.tolist()])
            known, std = np.full(len(counts), loss.value), (loss.high - loss.value) / Z_95
            low, high = over_ellipse(known, std, bases, off)
            value = loss.value / entropy(rate.value)
            yield "normalised_entropy", Interval(value, min(value, low), max(value, high))

    def _of_bins(self) -> Iterator[tuple[str, Interval]]:
        counts = np.bincount(self.rows.bins, minlength=self.rows.n_bins).astype(np.float64)
        together = float(self.parts["calibration"][0]) if "calibration" in self.parts else None
        bins = NoisyBins(counts, self.parts["auc"], self.noise_std, together)
        yield "auc", bins.auc()
        yield "ks", bins.ks(self.generator)
