"""Compose the privacy losses of releases that were fixed beforehand.

A release with neighbours P and Q has the curve delta(epsilon) = sup_S P(S) - e^epsilon Q(S). With the privacy loss
L = ln(P/Q) under P, the curve is E (1 - e^(epsilon - L))+. The loss of a composition is the sum of the losses.

1. Connect the dots (Doroshenko et al. 2022): read the curve on a grid of step h and join the points by straight lines
   over e^epsilon. The curve is convex, so the lines lie above it. They are the curve of losses on the grid.
2. Tilt: give a loss l of probability p the weight p e^(t l) / K(t). A Fourier transform loses about 1e-15 of the total
   (Koskela, Jalko and Honkela 2020), so without the tilt it cannot see a delta of 1e-15. The tilt moves the total to
   the wanted epsilon, and the transform then loses 1e-15 of *delta*.
3. Compose with one Fourier transform, and undo the tilt.

Every approximation makes delta larger: the lines, the chances past the ends of the grid, and rounding. Curves are
logarithms, so a delta of 1e-300 is found as well as one of 0.1.

dp_accounting is only an oracle of the tests, because its transforms stop at a delta of about 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.privacy.events import MOST_MULTIPLIER
from blindfit.algorithms.privacy.gaussian import log_excess, log_gaussian_deltas

Floats = NDArray[np.float64]
Curve = Callable[[Floats], Floats]
"""ln delta at each epsilon >= 0."""

CELLS = 48  # grid steps up to the epsilon at which the curve of a release has fallen by half
MOST_CELLS = 2**16  # grid steps of one release
_FINE, _MOST_CELLS_TO_HALF = 0.02, 2000
_SMALL = 4800  # the variance of all losses, over the variance that a coarse grid adds for one kind of release
_PAST_THE_END = 16.0  # ln(delta / chance past the end of a grid)
_NEGLIGIBLE = 46.0  # e^-46 = 1e-20
_REACH = 14.0  # standard deviations of the tilted sum that fit in the transform, at least
_POINTS, _TILTS = 1000, 12  # where two curves are compared
_LEAST_TILT = 0.25  # in units of 1/deviation
_LARGEST_POWER = 600.0  # of e
_MOST_WINDOW = 2**22  # steps, where the search for a tilt begins
_LOST, _LAST_BITS = 1e-9, 1e-14  # relative errors: of delta after sums and powers, and of a loss
_ROUNDING = 32 * 2.3e-16  # error of one value of a Fourier transform, for each release


# --- the curve of one release -------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The curves of one release: P against Q, and Q against P. Its largest loss, if it has one, is `largest`."""

    forward: Curve
    backward: Curve
    largest: float = math.inf

    @property
    def reversed(self) -> Pair:
        return Pair(self.backward, self.forward, self.largest)


def gaussian(noise_multiplier: float) -> Pair:
    def curve(epsilons: Floats) -> Floats:
        return log_gaussian_deltas(noise_multiplier, epsilons)

    return Pair(curve, curve)


def laplace(noise_multiplier: float) -> Pair:
    """delta(epsilon) = 1 - e^((epsilon - 1/b) / 2) below 1/b."""

    def curve(epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(np.minimum(epsilons - 1 / noise_multiplier, 0.0) / 2))

    return Pair(curve, curve, 1 / noise_multiplier)


def pure(epsilon: float) -> Pair:
    """Return randomised response, the worst epsilon-DP release (Kairouz, Oh and Viswanath 2015)."""

    def curve(epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(np.minimum(epsilons - epsilon, 0.0))) - math.log1p(math.exp(-epsilon))

    return Pair(curve, curve, epsilon)


def sampled_gaussian(noise_multiplier: float, batch_fraction: float, sensitivity: int) -> Pair:
    """Return the curves of one sum over a Poisson sample.

    Args:
        noise_multiplier: the standard deviation of the noise over the sensitivity.
        sensitivity: 1: neighbours have one row more or less. P = (1 - q) N(0, s^2) + q N(1, s^2), Q = N(0, s^2).
            2: neighbours replace a row. P = (1 - q) N(0, s^2) + q N(1, s^2), Q = (1 - q) N(0, s^2) + q N(-1, s^2).
    """
    q, std = batch_fraction, noise_multiplier * sensitivity
    if sensitivity == 2:
        replaced = partial(_replacement_curve, std, q)
        return Pair(replaced, replaced)
    return Pair(partial(_removal_curve, std, q), partial(_addition_curve, std, q))


def _removal_curve(std: float, q: float, epsilons: Floats) -> Floats:
    """Return the curve of P - e^epsilon Q = q (N(1) - e^epsilon' N(0)), e^epsilon' = 1 + (e^epsilon - 1) / q."""
    with np.errstate(over="ignore"):
        inner = np.where(epsilons < 30, np.log1p(np.expm1(epsilons) / q), epsilons - math.log(q))
    return math.log(q) + log_gaussian_deltas(std, inner)


def _addition_curve(std: float, q: float, epsilons: Floats) -> Floats:
    """Return the curve of Q - e^epsilon P = r (N(0) - e^epsilon' N(1)).

    Here r = 1 - e^epsilon (1 - q) and e^epsilon' = e^epsilon q / r.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_r = np.log(np.maximum(-np.expm1(epsilons + math.log1p(-q)), 0.0))
        inner = np.where(np.isfinite(log_r), epsilons + math.log(q) - log_r, 0.0)
        return log_r + log_gaussian_deltas(std, inner)


def _replacement_curve(std: float, q: float, epsilons: Floats) -> Floats:
    """P = e^epsilon Q at x = s^2 (epsilon/2 + v), v = arsinh((1 - q)/q e^(1/(2 s^2)) sinh(epsilon/2)).

    delta = q ((1 - w) E(x - 1, x) + w E(x - 1, x + 1)), w = e^(-2 v), E(a, b) = Phi(-a/s) - phi(a/s) M(b/s).
    """
    half = epsilons / 2
    with np.errstate(divide="ignore"):
        log_sinh = half + np.log(-np.expm1(-epsilons)) - math.log(2)
        log_argument = math.log1p(-q) - math.log(q) + 0.5 / std**2 + log_sinh
        arsinh = np.arcsinh(np.exp(np.minimum(log_argument, 300)))
        v = np.where(log_argument < 300, arsinh, log_argument + math.log(2))
        x = (half + v) * std - 1 / std
        apart = np.log(-np.expm1(-2 * v)) + log_excess(x, 1 / std)
    curve: Floats = math.log(q) + np.logaddexp(apart, log_excess(x, 2 / std) - 2 * v)
    return curve


# --- one release on a grid ----------------------------------------------------------------------


@dataclass(frozen=True)
class _OnGrid:
    """Losses that are multiples of the grid's step.

    Args:
        first: the least loss, in steps.
        log_chances: ln of the chance of each loss, from the first on.
        log_infinite: ln of the chance of an infinite loss.
    """

    step: float
    first: int
    log_chances: Floats
    log_infinite: float

    @property
    def last(self) -> int:
        """The largest finite loss, in steps."""
        return self.first + len(self.log_chances) - 1

    def tilt(self, tilt: float) -> _Tilted:
        losses = (self.first + np.arange(len(self.log_chances))) * self.step
        raised = self.log_chances + tilt * losses
        top = float(raised.max())
        weights: Floats = np.exp(raised - top)
        total = float(weights.sum())
        chances: Floats = weights / total
        mean = float(chances @ losses)
        return _Tilted(top + math.log(total), chances, mean, float(chances @ (losses - mean) ** 2))


@dataclass(frozen=True)
class _Tilted:
    """The chances of losses after the tilt. `log_total` is ln K."""

    log_total: float
    chances: Floats
    mean: float
    variance: float


def _on_grid(pair: Pair, step: float, log_least: float) -> _OnGrid:
    """
    Args:
        log_least: ln of a delta. The curves are below it past the ends of the grid.
    """
    above = _Above.of(pair.forward, step, log_least)
    below = _Above.of(pair.backward, step, max(log_least, -_NEGLIGIBLE))
    # Under P the chance of a loss l is e^l times that under Q, where the loss is -l.
    log_below = below.log_chances - step * np.arange(1, len(below.log_chances) + 1)
    at_zero = max(1 - above.at_zero - above.next_to_zero - below.next_to_zero, 5e-324)
    log_chances = np.concatenate([log_below[::-1], [math.log(at_zero)], above.log_chances])
    return _OnGrid(step, -len(log_below), log_chances, above.log_infinite)


@dataclass(frozen=True)
class _Above:
    """The losses above 0 of a curve whose points are joined by lines.

    Args:
        log_chances: ln of the chance of a loss of one step, of two, ...
        at_zero: delta at epsilon 0.
        next_to_zero: the fall of the curve in the first step, over e^step - 1.
    """

    log_chances: Floats
    log_infinite: float
    at_zero: float
    next_to_zero: float

    @classmethod
    def of(cls, curve: Curve, step: float, log_least: float) -> _Above:
        """p_i = (e^h (d_(i-1) - d_i) - (d_i - d_(i+1))) / (e^h - 1). The curve is constant after its last point."""
        cells = math.ceil(_reach(curve, log_least) / step)
        deltas = curve(np.arange(cells + 1, dtype=np.float64) * step)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(np.isneginf(deltas[1:]), -np.inf, deltas[1:] - deltas[:-1])
            falls = np.append(deltas[:-1] + np.log(np.maximum(-np.expm1(change), 0.0)), -np.inf)
            bend = np.where(np.isneginf(falls[1:]), -np.inf, falls[1:] - falls[:-1] - step)
            chances = falls[:-1] + np.log(np.maximum(-np.expm1(bend), 0.0)) - math.log(-math.expm1(-step))
        next_to_zero = math.exp(falls[0] - step) / -math.expm1(-step)
        return cls(chances, float(deltas[-1]), math.exp(deltas[0]), next_to_zero)


def _reach(curve: Curve, log_least: float) -> float:
    """Return the epsilon at which a curve falls below a delta, rounded up."""
    above, below = 0.0, 1.0
    while curve(np.array([below]))[0] > log_least:
        above, below = below, 2 * below
    while below - above > 1e-3 * below:
        middle = (above + below) / 2
        above, below = (middle, below) if curve(np.array([middle]))[0] > log_least else (above, middle)
    return below


def _half(curve: Curve) -> float:
    """Return the epsilon at which a curve has fallen by half."""
    return _reach(curve, float(curve(np.zeros(1))[0]) - math.log(2))


def _step(half: float) -> float:
    """Return a step that is small itself, or small compared with the curve: then lines over e^epsilon follow it."""
    return min(half / CELLS, max(_FINE, half / _MOST_CELLS_TO_HALF))


# --- all releases -------------------------------------------------------------------------------

Parts = Sequence[tuple[Pair, int]]
"""Releases, and the number of each."""


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return an upper bound on the epsilon of all parts together."""
    if sum(count * math.exp(float(pair.forward(np.zeros(1))[0])) for pair, count in parts) <= delta:
        return 0.0
    log_delta = math.log(delta)
    return max(0.0, *(_Composition.of(way, log_delta).epsilon(log_delta) for way in _ways(parts)))


def _ways(parts: Parts) -> list[Parts]:
    if all(pair.forward is pair.backward for pair, _ in parts):
        return [parts]
    return [parts, [(pair.reversed, count) for pair, count in parts]]


def gaussian_at_least(parts: Parts, log_lost: float) -> float:
    """Return the noise multiplier of a Gaussian release that reveals at least as much as all parts together.

    Let delta' be the curve of the Gaussian. Where (1 - lost) delta' + lost >= delta at every epsilon, in both
    directions, the parts are a function of the Gaussian release and of an answer that reveals everything with a chance
    of `lost` (Blackwell; Dong, Roth and Su 2022).
    """
    return min(_dominating(_Composition.of(way, log_lost), log_lost) for way in _ways(parts))


def _dominating(composition: _Composition, log_lost: float) -> float:
    reach = composition.epsilon(log_lost)
    if reach <= 0:
        return MOST_MULTIPLIER
    epsilons = np.linspace(0.0, reach, _POINTS)
    tilts = (composition.tilt_for(log_delta) for log_delta in np.linspace(math.log(0.3), log_lost, _TILTS))
    needed = np.minimum.reduce([composition.window(tilt).log_deltas(epsilons) for tilt in tilts])[:-1]

    def reveals_as_much(multiplier: float) -> bool:
        offered = log_gaussian_deltas(multiplier, epsilons[1:]) + math.log1p(-math.exp(log_lost))
        return bool(np.all(needed <= np.logaddexp(offered, log_lost)))

    low = high = 1.0
    while not reveals_as_much(low):
        low /= 2
    while high < MOST_MULTIPLIER and reveals_as_much(high):
        high *= 2
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if reveals_as_much(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class _Composition:
    """Releases on one grid, in one direction."""

    releases: tuple[tuple[_OnGrid, int], ...]

    @classmethod
    def of(cls, parts: Parts, log_least: float) -> _Composition:
        """
        Args:
            log_least: ln of the smallest delta of interest.
        """
        counts = sum(count for _, count in parts)
        halves = [(_half(pair.forward), count) for pair, count in parts]
        spread = sum(count * half * half for half, count in halves)
        step = min(max(_step(half), spread / (_SMALL * count * half)) for half, count in halves)
        past_the_end = log_least - math.log(counts) - _PAST_THE_END
        reach = max(_reach(curve, past_the_end) for pair, _ in parts for curve in (pair.forward, pair.backward))
        step = max(step, reach / MOST_CELLS)
        if bounded := [
            (count * pair.largest, pair.largest) for pair, count in parts if step <= pair.largest < math.inf
        ]:
            _, largest = max(bounded)
            step = largest / math.ceil(largest / step)  # the largest losses of the most weight are points of the grid
        return cls(tuple((_on_grid(pair, step, past_the_end), count) for pair, count in parts))

    @property
    def step(self) -> float:
        return self.releases[0][0].step

    def epsilon(self, log_delta: float) -> float:
        largest = self.step * sum(count * release.last for release, count in self.releases)
        return min(largest, self.window(self.tilt_for(log_delta)).epsilon(log_delta))

    def tilt_for(self, log_delta: float) -> float:
        """Return the tilt at the saddle point: ln delta ~ ln K - t mean - ln((t + 1) max(t sqrt(2 pi variance), e))."""
        # Where all losses are tiny, a smaller tilt would need a window of too many steps.
        low = high = max(1.0, _NEGLIGIBLE / (self.step * _MOST_WINDOW))
        while self._log_saddle(low) < log_delta and low * self._deviation > _LEAST_TILT:
            low /= 4
        while self._log_saddle(high) > log_delta and high * self.step < _NEGLIGIBLE:
            high *= 4
        while high / low > 1.01:
            tilt = math.sqrt(low * high)
            low, high = (tilt, high) if self._log_saddle(tilt) > log_delta else (low, tilt)
        return high

    @cached_property
    def _deviation(self) -> float:
        """The standard deviation of all losses together."""
        return math.sqrt(self._moments(0.0)[2])

    def _log_saddle(self, tilt: float) -> float:
        log_total, mean, variance = self._moments(tilt)
        spread = max(tilt * math.sqrt(2 * math.pi * variance), math.e)
        return log_total - tilt * mean - math.log1p(tilt) - math.log(spread)

    def _moments(self, tilt: float) -> tuple[float, float, float]:
        of_all = [(release.tilt(tilt), count) for release, count in self.releases]
        return tuple(  # type: ignore[return-value]
            math.fsum(count * getattr(tilted, name) for tilted, count in of_all)
            for name in ("log_total", "mean", "variance")
        )

    def window(self, tilt: float) -> _Window:
        log_total, mean, variance = self._moments(tilt)
        reach = _REACH * math.sqrt(variance) + 2 * self.step
        above = reach + _NEGLIGIBLE / tilt
        longest = max(len(release.log_chances) for release, _ in self.releases)
        size = 1 << (max(longest, math.ceil((reach + above) / self.step)) - 1).bit_length()
        transform, first, log_infinite = np.ones(size // 2 + 1, np.complex128), 0, -math.inf
        for release, count in self.releases:
            transform = transform * np.fft.rfft(release.tilt(tilt).chances, size) ** count
            first += count * release.first
            log_infinite = float(np.logaddexp(log_infinite, release.log_infinite + math.log(count)))
        lost = _ROUNDING * sum(count for _, count in self.releases) * float(np.mean(np.abs(transform)))
        chances: Floats = np.maximum(np.fft.irfft(transform, size), 0.0) + lost
        start = math.floor((mean - reach) / self.step)
        losses = np.arange(start, start + size, dtype=np.float64) * self.step
        chances = np.roll(chances, (first - start) % size)
        shown = mean - losses <= _LARGEST_POWER / (tilt + 1)
        return _Window(losses[shown], chances[shown], tilt, log_total, mean, log_infinite)


@dataclass(frozen=True)
class _Window:
    """The sum of all losses, around its tilted mean.

    Args:
        chances: tilted.
    """

    losses: Floats
    chances: Floats
    tilt: float
    log_total: float
    mean: float
    log_infinite: float

    def epsilon(self, log_delta: float) -> float:
        """Return the smallest epsilon at this delta."""
        log_deltas = self.log_deltas(self.losses)
        fits = np.flatnonzero(log_deltas <= log_delta)
        if not len(fits):
            return math.inf
        first = int(fits[0])
        if first == 0:
            return float(self.losses[0])
        # Between two losses delta is a line over e^epsilon.
        low, high = float(self.losses[first - 1]), float(self.losses[first])
        ends = np.exp(log_deltas[first - 1 : first + 1] - log_delta)
        share = float((ends[0] - 1) / (ends[0] - ends[1]))
        with np.errstate(divide="ignore"):
            within = low + float(np.logaddexp(np.log1p(-share), np.log(share) + high - low))
            return within + _LAST_BITS * abs(within)

    def log_deltas(self, epsilons: Floats) -> Floats:
        """Return ln delta at each epsilon. It is precise around the tilted mean, and never too small."""
        sums, weighted = self._sums_above
        below = np.clip(np.searchsorted(self.losses, epsilons, side="right") - 1, 0, None)
        rises = np.exp(np.maximum(epsilons - self.losses[below], 0.0))
        with np.errstate(divide="ignore"):
            finite = np.log(np.maximum(sums[below] - rises * weighted[below], 0.0) + self._past_the_window)
            logs = finite + self.log_total - self.tilt * self.mean
        known = np.logaddexp(logs + _LOST, self.log_infinite)
        return np.where(epsilons < self.losses[0], 0.0, known)

    @cached_property
    def _sums_above(self) -> tuple[Floats, Floats]:
        """For each loss l, the chances of all larger losses, and the sum of each such chance times e^(l - its loss)."""
        from scipy.signal import lfilter

        untilted = self.chances * np.exp(self.tilt * (self.mean - self.losses))
        falls = math.exp(self.losses[0] - self.losses[1])
        sums, weighted = np.zeros(len(untilted)), np.zeros(len(untilted))
        sums[:-1] = np.cumsum(untilted[:0:-1])[::-1]
        weighted[:-1] = lfilter([falls], [1.0, -falls], untilted[:0:-1])[::-1]
        return sums, weighted

    @property
    def _past_the_window(self) -> float:
        return math.exp(self.tilt * (self.mean - self.losses[-1]))
