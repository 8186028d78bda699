"""A lower bound on epsilon from samples of releases: evidence against a claim of privacy.

Two neighbouring inputs a and b, n releases of each. Under (epsilon, delta)-DP every event E has

    P(a in E) <= e^epsilon P(b in E) + delta,

so a lower bound p of the left probability and an upper bound q of the right one show that epsilon is at least
ln((p - delta) / q). The first half of the samples chooses the event, and the second half, which took no part in the
choice, counts it; p and q are the exact bounds of Clopper and Pearson 1934 for those counts.

The choice of the event: a statistic's values are cut into cells by its quantiles. A quarter of the samples ranks the
cells by how much likelier they are under one neighbour (Neyman and Pearson's best events). The next quarter decides how
many of the first cells to take, which neighbour is the likelier, and which statistic to use.

Sources: Ding et al. 2018 (Detecting violations of differential privacy), Jagielski et al. 2020 (Auditing
differentially private machine learning).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, DataError

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

Samples = Mapping[str, Floats]
"""Independent releases: name of a statistic -> its value in each release."""

CELLS = (8, 32, 128)
"""Numbers of cells to try: few cells make strong counts, many find narrow events."""

LEAST_SAMPLES = 64
_SHOWN_INTERVALS = 2


@dataclass(frozen=True)
class Event:
    """The value of one statistic lies in one of some half-open intervals [low, high)."""

    statistic: str
    intervals: tuple[tuple[float, float], ...]

    def count(self, values: Floats) -> int:
        return int(sum(((values >= low) & (values < high)).sum() for low, high in self.intervals))

    def __str__(self) -> str:
        widest = sorted(self.intervals, key=lambda ends: ends[0] - ends[1])[:_SHOWN_INTERVALS]
        shown = " or ".join(_interval(low, high) for low, high in sorted(widest))
        more = len(self.intervals) - len(widest)
        return f"{self.statistic} {shown}" + (f" or {more} more" if more else "")


def _interval(low: float, high: float) -> str:
    if math.isinf(low):
        return f"< {high:.4g}"
    return f">= {low:.4g}" if math.isinf(high) else f"in [{low:.4g}, {high:.4g})"


@dataclass(frozen=True)
class EpsilonBound:
    """Result for one pair of neighbours.

    Args:
        epsilon: lower bound at the requested confidence; 0 if nothing was shown.
        event: the event that shows it.
        swapped: True if the event is the second neighbour's, not the first's.
        hits, neighbour_hits: times that the event occurred in n releases of its neighbour, and in n of the other.
    """

    epsilon: float
    event: Event
    swapped: bool
    hits: int
    neighbour_hits: int
    n: int


def bound_epsilon(first: Samples, second: Samples, *, delta: float, false_alarm: float) -> EpsilonBound:
    """Return a lower bound of epsilon at delta; it exceeds the true epsilon with probability `false_alarm` at most.

    Args:
        first, second: releases of the two neighbours, equally many, with the same statistics.

    Raises:
        ConfigError: false_alarm or delta is not a probability.
        DataError: too few samples, or the two sides differ in number or statistics.
    """
    _check(first, second, delta, false_alarm)
    n = len(next(iter(first.values())))
    candidates = [
        _best_event(name, swapped, values, other, delta, false_alarm)
        for name in first
        for swapped, values, other in ((False, first[name], second[name]), (True, second[name], first[name]))
    ]
    _, event, swapped = max(candidates, key=lambda found: found[0])
    likelier, other = (second, first) if swapped else (first, second)
    hits, neighbour_hits = (event.count(side[event.statistic][n // 2 :]) for side in (likelier, other))
    counted = n - n // 2
    epsilon = float(event_epsilon(np.array(hits), np.array(neighbour_hits), counted, delta, false_alarm))
    return EpsilonBound(max(0.0, epsilon), event, swapped, hits, neighbour_hits, counted)


def event_epsilon(
    hits: npt.NDArray[np.integer],
    neighbour_hits: npt.NDArray[np.integer],
    n: int,
    delta: float,
    false_alarm: float,
) -> Floats:
    """Return ln((p - delta) / q) of events with these hits in n releases of each neighbour; -inf where p <= delta.

    Each of the two Clopper-Pearson bounds fails with probability false_alarm / 2 at most.
    """
    from scipy.stats import beta  # here, as it takes long to import, and the command line imports this

    likely = np.where(hits > 0, beta.ppf(false_alarm / 2, hits, n - hits + 1), 0.0)
    all_hit = neighbour_hits >= n
    unlikely = np.where(
        all_hit, 1.0, beta.isf(false_alarm / 2, neighbour_hits + 1, np.where(all_hit, 1, n - neighbour_hits))
    )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(likely - delta, 0.0)) - np.log(unlikely), dtype=np.float64)


def greatest_bound(n: int, *, delta: float, false_alarm: float) -> float:
    """Return the bound if the event occurs in all n releases of one neighbour and never in those of the other."""
    return float(event_epsilon(np.array(n), np.array(0), n, delta, false_alarm))


def _check(first: Samples, second: Samples, delta: float, false_alarm: float) -> None:
    if not 0 < false_alarm < 1:
        raise ConfigError(f"the chance of a false alarm must lie in (0, 1), not {false_alarm!r}")
    if not 0 <= delta < 1:
        raise ConfigError(f"delta must lie in [0, 1), not {delta!r}")
    sizes = {len(values) for side in (first, second) for values in side.values()}
    if not first or first.keys() != second.keys() or len(sizes) != 1:
        raise DataError("the two neighbours must have equally many samples, of the same statistics")
    if (n := sizes.pop()) < LEAST_SAMPLES:
        raise DataError(f"{n} samples are too few to look for an event", hint=f"take {LEAST_SAMPLES} or more")
    if not all(np.isfinite(values).all() for side in (first, second) for values in side.values()):
        raise DataError("a sample is not a finite number")


# --- the event ----------------------------------------------------------------------------------


def _best_event(
    name: str, swapped: bool, values: Floats, other: Floats, delta: float, false_alarm: float
) -> tuple[float, Event, bool]:
    """Find the best event in the first half of the samples; return its apparent bound, the event, and `swapped`."""
    quarter = len(values) // 4
    ranking, choosing = slice(0, quarter), slice(quarter, 2 * quarter)
    found = []
    for edges in _cuts(np.concatenate((values[ranking], other[ranking]))):
        counts, neighbour_counts = (_counts(side[ranking], edges) for side in (values, other))
        order = np.argsort(-(counts + 0.5) / (neighbour_counts + 0.5), kind="stable")
        hits, neighbour_hits = (np.cumsum(_counts(side[choosing], edges)[order]) for side in (values, other))
        epsilons = event_epsilon(hits, neighbour_hits, quarter, delta, false_alarm)
        best = int(np.argmax(epsilons))
        found.append((float(epsilons[best]), Event(name, _merge(edges, order[: best + 1])), swapped))
    return max(found, key=lambda one: one[0])


def _cuts(pooled: Floats) -> list[Floats]:
    """Return inner edges of cells; a frequent value gets a cell of its own."""
    distinct = np.unique(pooled)
    if len(distinct) <= max(CELLS):
        return [distinct[1:]]
    shares = (np.arange(1, cells) / cells for cells in CELLS)
    return [np.unique(np.quantile(pooled, share, method="inverted_cdf")) for share in shares]


def _counts(values: Floats, edges: Floats) -> Counts:
    """Count the values in each of the cells [-inf, e0), [e0, e1), .., [ek, inf)."""
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1).astype(np.int64)


def _merge(edges: Floats, cells: npt.NDArray[np.intp]) -> tuple[tuple[float, float], ...]:
    ends = [-math.inf, *edges.tolist(), math.inf]
    merged: list[tuple[float, float]] = []
    for cell in sorted(cells.tolist()):
        low, high = ends[cell], ends[cell + 1]
        if merged and merged[-1][1] == low:
            low = merged.pop()[0]
        merged.append((low, high))
    return tuple(merged)
