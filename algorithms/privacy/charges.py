"""Many charges in a bounded space: what a receipt says of all that its population was charged.

The first MOST_DIFFERENT different events are counted one by one. Whatever differs from these is added up, by law:

    gaussian       sum of 1/s^2        composes exactly: k releases of multipliers s_i are one of (sum 1/s_i^2)^(-1/2)
    epsilon-DP     sum of epsilons     an upper bound, that of basic composition
    sampled        as if of all rows   an upper bound

Sums are integers, in units of 1/UNITS_OF_ONE, each term rounded up: so they are the same in whatever order the terms
came, the sum of a part can be taken away exactly, and nothing is ever counted for less than it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.events import LEAST_MULTIPLIER, MOST_MULTIPLIER, ReleaseEvent

MOST_DIFFERENT = 256
UNITS_OF_ONE = 2**100  # 1/s^2 of the largest multiplier, 1e-24, is a million units

MOST_POSITION = 2**62  # entries of a ledger: a database counts no further
MOST_UNITS = 1000 * int(1 / LEAST_MULTIPLIER**2) * UNITS_OF_ONE  # a thousand releases without any noise to speak of

Law = Literal["gaussian", "pure"]
Rounded = Callable[[Fraction], int]
Sums = Counter[tuple[Law, str]]
"""(law, neighbours) -> units."""


@dataclass(frozen=True, slots=True)
class CountedCharge:
    """Of one ledger entry. `is_sum`: it stands for many, and is one of no event that was asked for."""

    event: str
    is_sum: bool = False


@dataclass(frozen=True)
class Charges:
    """
    Args:
        counted: (canonical event, how often), sorted.
        sums: (law, neighbours, units) of all the others, sorted.

    Raises:
        DataError: no ledger has such charges: an event is there twice, or a number is out of its range.
    """

    counted: tuple[tuple[str, int], ...] = ()
    sums: tuple[tuple[Law, str, int], ...] = ()

    def __post_init__(self) -> None:
        counts, units = [count for _, count in self.counted], [units for _, _, units in self.sums]
        if any(law not in get_args(Law) for law, _, _ in self.sums) or not all(1 <= n <= MOST_UNITS for n in units):
            raise DataError("not a sum of charges")
        if len(self.sums) > MOST_DIFFERENT or not _is_sorted([(law, neighbours) for law, neighbours, _ in self.sums]):
            raise DataError("not one sum of charges for each law")
        if len(self.counted) > MOST_DIFFERENT or not _is_sorted([event for event, _ in self.counted]):
            raise DataError("not one count for each event")
        if not all(1 <= count <= MOST_POSITION for count in counts):
            raise DataError("not a count of charges")

    @classmethod
    def of(cls, charges: Iterable[CountedCharge]) -> Charges:
        """In the order in which they were charged: then those of a ledger's beginning are a part of those of all."""
        counter = ChargeCounter()
        for charge in charges:
            counter.add(charge)
        return counter.charges()

    def covers(self, other: Charges) -> bool:
        """Whether whoever charges these charges the others too."""
        needed = other._sums()
        for event, count in (Counter(dict(other.counted)) - Counter(dict(self.counted))).items():
            _add(needed, event, count)
        return not needed - self._sums()

    def without(
        self, beginning: Iterable[CountedCharge], recovered: Iterable[CountedCharge]
    ) -> Iterator[tuple[CountedCharge, int]]:
        """What is left to charge, and how often.

        Args:
            beginning: some of the first of these.
            recovered: charged again already, for these or for a beginning of these, or for more than these.
        """
        counted, sums = Counter(dict(self.counted)), self._sums()
        known, done = set(counted), Counter[str]()
        less: Sums = Counter()
        for charge in beginning:
            if charge.event in known and not charge.is_sum:
                done[charge.event] += 1
            else:
                _add(less, charge.event)
        for charge in recovered:
            if charge.is_sum:
                _add(less, charge.event, rounded=math.floor)  # else the rest could be less than what is left
            else:
                done[charge.event] += 1  # of an event that is not counted here: of what came after
        yield from ((CountedCharge(event), count) for event, count in sorted((counted - done).items()))
        for (law, neighbours), units in sorted((sums - less).items()):
            yield from ((CountedCharge(e.canonical(), is_sum=True), 1) for e in events_of(law, neighbours, units))

    def _sums(self) -> Sums:
        return Counter({(law, neighbours): units for law, neighbours, units in self.sums})


class ChargeCounter:
    """Charges, as they come."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._sums: Sums = Counter()

    def add(self, charge: CountedCharge) -> None:
        if not charge.is_sum and (charge.event in self._counted or len(self._counted) < MOST_DIFFERENT):
            self._counted[charge.event] += 1
        else:
            _add(self._sums, charge.event)

    def charges(self) -> Charges:
        sums = ((law, neighbours, units) for (law, neighbours), units in self._sums.items())
        return Charges(tuple(sorted(self._counted.items())), tuple(sorted(sums)))


def events_of(law: Law, neighbours: str, units: int) -> Iterator[ReleaseEvent]:
    """Releases, mostly one, of no fewer units, none of them by rounding: of the greatest noise that has as many."""
    most = _units(law, LEAST_MULTIPLIER, rounded=math.floor)
    while units > most:
        yield ReleaseEvent(law, LEAST_MULTIPLIER, neighbours)
        units -= most
    share = Fraction(UNITS_OF_ONE, units)
    noise = math.sqrt(share) if law == "gaussian" else float(share)
    multiplier = min(max(noise, LEAST_MULTIPLIER), MOST_MULTIPLIER)
    while _units(law, multiplier, rounded=math.floor) < units:
        multiplier = math.nextafter(multiplier, 0.0)
    yield ReleaseEvent(law, multiplier, neighbours)


def _is_sorted(names: Sequence[Any]) -> bool:
    """Return whether the names are in order, each of them once."""
    return list(names) == sorted(set(names))


def _add(sums: Sums, event: str, count: int = 1, rounded: Rounded = math.ceil) -> None:
    release = ReleaseEvent.from_canonical(event)
    law: Law = "pure" if math.isfinite(release.epsilon) else "gaussian"
    releases = release.sampling.n_releases if release.sampling else 1
    sums[law, release.neighbours] += count * _units(law, release.noise_multiplier, releases, rounded)


def _units(law: Law, multiplier: float, releases: int = 1, rounded: Rounded = math.ceil) -> int:
    noise = Fraction(multiplier)
    cost = 1 / (noise * noise) if law == "gaussian" else Fraction(1 / multiplier)
    return rounded(releases * cost * UNITS_OF_ONE)
