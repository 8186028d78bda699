"""Times of several things taken in turn, so that a disturbance of a shared machine disturbs them all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LARGE_SPREAD = 0.1  # spread of the middle half of the times over their median; above it there are more rounds
MOST_ROUNDS = 3  # times the requested rounds
PATIENCE_S = 10.0  # for all rounds


@dataclass(frozen=True)
class Times:
    """Seconds of each thing, one for every round."""

    seconds: Mapping[str, list[float]]

    @property
    def rounds(self) -> int:
        return min(map(len, self.seconds.values()))

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, over: str, under: str) -> float:
        """Return the median of the ratios of all rounds."""
        return median_ratio(self.seconds[over], self.seconds[under])

    def spread(self) -> float:
        return max(_spread(times) for times in self.seconds.values())


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median ratio of two lists of times, round by round."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def in_turn(
    runs: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.thread_time
) -> Times:
    """Run each once a round; run more rounds than requested while the times are far apart and the runs are quick.

    Args:
        clock: source of times; the default is this thread's processor time, which leaves out other processes.
    """
    times = Times({name: [] for name in runs})
    patience_ends = time.monotonic() + PATIENCE_S

    def worth_another() -> bool:
        few = times.rounds < MOST_ROUNDS * rounds and time.monotonic() < patience_ends
        return few and times.spread() > LARGE_SPREAD

    while times.rounds < rounds or worth_another():
        for name, run in runs.items():
            started = clock()
            run()
            times.seconds[name].append(clock() - started)
    return times


def _spread(times: list[float]) -> float:
    if len(times) < 3:
        return 0.0
    first, _, third = statistics.quantiles(times, n=4, method="inclusive")
    return (third - first) / statistics.median(times)
