"""AUC and KS of score bins, from noisy counts of their positives.

Of p positives in b bins of c rows, with P = sum p, n = sum c, q(P) = P (n - P), and F and C for p and c cumulated:

    AUC  =  1/2 + D / q(P)            D   = sum over bins of p (C - c / 2 - n / 2)
    KS   =  max over k of |E_k| / q(P)  E_k = n F_k - P C_k

D and E_k are linear in p. As w.p, each is (w - mean w).p + P mean w. The noise of the first term is independent of the
noise of sum p, so P is known as well as that sum and a count of all positives determine it. No noisy count is clipped
to the range of a bin, which would move the sum of many.

The ranges hold the figures with a chance of at least 95% over the noise. Let w.p be off by s of its deviations and P by
t. All pairs that would give the true figure are a curve through the truth, almost a line, and a line through the truth
meets the ellipse s^2 + t^2 <= 1.96^2 with a chance of 95%.

    AUC       its range over that ellipse (Fieller's, if q is a line).
    KS, high  range of any E_k over its ellipse: the one that is the largest in truth passes its own with 2.5%.
    KS, low   max |E| >= max |noisy E| - max |noise|, which 98% of draws keep to, at any P of 99.5%.

Source: ours; for the ratio, Fieller 1954.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Z_95, Z_99_5 = 1.959963984540054, 2.807033768343811
DRAWS = 2000  # of the noise, to find its largest value
KEPT_TO = 0.98  # by draws
POINTS = 401  # of a range
LEAST = 0.5  # positives, or negatives, if there is at least one
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A figure, and a range that holds it with a chance of at least 95% over the noise."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class NoisyCount:
    """The number of positive rows among n, of which both classes have some.

    Args:
        std: standard deviation of its noise.
    """

    value: float
    std: float
    n: float

    @property
    def inside(self) -> float:
        """The count, clipped to its possible range."""
        return float(np.clip(self.value, LEAST, max(LEAST, self.n - LEAST)))

    @cached_property
    def _range(self) -> tuple[Floats, Floats]:
        """Deviations, and the counts that are off by them."""
        off = np.linspace(-Z_99_5, Z_99_5, POINTS)
        counts = self.value + off * self.std
        possible = (counts >= LEAST) & (counts <= self.n - LEAST)
        return off[possible], counts[possible]

    def likely(self, z: float) -> tuple[Floats, Floats]:
        """Return counts within z deviations, and their deviations; empty if all would be of one class."""
        off, counts = self._range
        within = np.abs(off) <= z
        return counts[within], off[within]


def over_ellipse(known: Floats, std: float, divisor: Floats, off: Floats) -> tuple[float, float]:
    """Return the range of (known + noise) / divisor.

    Args:
        known, divisor: numbers at a count which is `off` deviations from its noisy value.
        std: standard deviation of the noise, independent of the count's.
    """
    reach = std * np.sqrt(Z_95**2 - off**2)
    return (
        float(((known - reach) / divisor).min(initial=np.inf)),
        float(((known + reach) / divisor).max(initial=-np.inf)),
    )


@dataclass(frozen=True, repr=False)
class NoisyBins:
    """Noisy counts of positives in bins.

    Args:
        counts: (b,), number of rows.
        positives: (b,), with noise.
        noise_std: standard deviation of each.
        together: all positives, with separate noise of the same deviation; None if nobody asked for them.
    """

    counts: Floats
    positives: Floats
    noise_std: float
    together: float | None

    @cached_property
    def _all(self) -> NoisyCount:
        """The count P, by least squares."""
        bins, summed = len(self.counts), float(self.positives.sum())
        if self.together is None:
            return NoisyCount(summed, self.noise_std * bins**0.5, self._n)
        best = (summed + bins * self.together) / (bins + 1)
        return NoisyCount(best, self.noise_std * (bins / (bins + 1)) ** 0.5, self._n)

    @property
    def _n(self) -> float:
        return float(self.counts.sum())

    def _divisor(self, count: Floats | float) -> Floats:
        return np.asarray(count * (self._n - count))

    def auc(self) -> Interval:
        form = np.cumsum(self.counts) - self.counts / 2 - self._n / 2
        centred, of_all = form - form.mean(), form.mean()
        counts, off = self._all.likely(Z_95)
        std = self.noise_std * float(np.linalg.norm(centred))
        known = float(centred @ self.positives)
        low, high = over_ellipse(known + of_all * counts, std, self._divisor(counts), off)
        value = (known + of_all * self._all.inside) / self._divisor(self._all.inside)
        return _within(0.5 + float(value), 0.5 + low, 0.5 + high)

    def ks(self, generator: np.random.Generator) -> Interval:
        bins, up_to = len(self.counts), np.cumsum(self.counts)[:-1, None]
        forms = self._n * np.tri(bins)[:-1] - up_to
        of_all = forms.mean(axis=1)
        centred = forms - of_all[:, None]
        noise = self.noise_std * generator.standard_normal((DRAWS, bins)) @ centred.T
        known = centred @ self.positives
        return _within(self._value(known, of_all, noise), self._low(known, of_all, noise), self._high(centred, of_all))

    def _value(self, known: Floats, of_all: Floats, noise: Floats) -> float:
        """Return the largest difference, less the mean addition of noise to it."""
        noisy = known + of_all * self._all.inside
        largest = np.abs(noisy).max(initial=0)
        added = float(np.abs(noisy + noise).max(axis=1, initial=0).mean() - largest)
        return float((largest - added) / self._divisor(self._all.inside))

    def _low(self, known: Floats, of_all: Floats, noise: Floats) -> float:
        counts, _ = self._all.likely(Z_99_5)
        largest = np.abs(known + np.outer(counts, of_all)).max(axis=1, initial=0)
        reach = np.quantile(np.abs(noise).max(axis=1, initial=0), KEPT_TO)
        return float((np.maximum(0, largest - reach) / self._divisor(counts)).min(initial=np.inf))

    def _high(self, centred: Floats, of_all: Floats) -> float:
        counts, off = self._all.likely(Z_95)
        stds, divisor = self.noise_std * np.linalg.norm(centred, axis=1), self._divisor(counts)
        sizes = []
        for form, std, mean in zip(centred, stds.tolist(), of_all.tolist(), strict=True):
            low, high = over_ellipse(form @ self.positives + mean * counts, std, divisor, off)
            sizes.append(max(-low, high))
        return max(sizes, default=0.0)


def _within(value: float, low: float, high: float) -> Interval:
    """Clip the interval of a figure to [0, 1]; it is all of [0, 1] if noise leaves no count of positives."""
    if not -np.inf < low < np.inf or not -np.inf < high < np.inf:
        low, high = 0.0, 1.0
    low, high = float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))
    return Interval(float(np.clip(value, low, high)), low, high)
