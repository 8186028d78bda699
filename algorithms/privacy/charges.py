"""Many charges in a bounded space: a receipt's summary of all charges of its population.

The first MOST_DIFFERENT different events are counted one by one. All other events are added up, by law:

    gaussian       sum of 1/s^2        composes exactly: k releases of multipliers s_i are one of (sum 1/s_i^2)^(-1/2)
    epsilon-DP     sum of epsilons     an upper bound, that of basic composition
    sampled        as if of all rows   an upper bound

Sums are integers, in units of 1/UNITS_OF_ONE, and each term is rounded up. So the order of the terms does not change a
sum, the sum of a part can be subtracted exactly, and nothing is ever counted for less than it is.
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
MOST_UNITS = 1000 * int(1 / LEAST_MULTIPLIER**2) * UNITS_OF_ONE  # a thousand releases with nearly no noise

Law = Literal["gaussian", "pure"]
Rounded = Callable[[Fraction], int]
Sums = Counter[tuple[Law, str]]
"""(law, neighbours) -> units."""


@dataclass(frozen=True, slots=True)
class CountedCharge:
    """The charge of one ledger entry. With `is_sum`, it stands for many charges, and for no requested event."""

    event: str
    is_sum: bool = False


@dataclass(frozen=True)
class Charges:
    """
    Args:
        counted: (canonical event, number of charges), sorted.
        sums: (law, neighbours, units) of all other events, sorted.

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
        """Count charges in ledger order, so that a beginning of a ledger has a part of the charges of the whole."""
        counter = ChargeCounter()
        for charge in charges:
            counter.add(charge)
        return counter.charges()

    def covers(self, other: Charges) -> bool:
        """Return True if these charges include the others."""
        needed = other._sums()
        for event, count in (Counter(dict(other.counted)) - Counter(dict(self.counted))).items():
            _add(needed, event, count)
        return not needed - self._sums()

    def without(
        self, beginning: Iterable[CountedCharge], recovered: Iterable[CountedCharge]
    ) -> Iterator[tuple[CountedCharge, int]]:
        """Yield the charges that are left, each with its number.

        Args:
            beginning: some of the first of these charges.
            recovered: charges already made again, for these charges, for a beginning of them, or for more than them.
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
                _add(less, charge.event, rounded=math.floor)  # otherwise the rest could be too small
            else:
                done[charge.event] += 1  # an event that is not counted here came later
        yield from ((CountedCharge(event), count) for event, count in sorted((counted - done).items()))
        for (law, neighbours), units in sorted((sums - less).items()):
            yield from ((CountedCharge(e.canonical(), is_sum=True), 1) for e in events_of(law, neighbours, units))

    def _sums(self) -> Sums:
        return Counter({(law, neighbours): units for law, neighbours, units in self.sums})


class ChargeCounter:
    """A counter of charges, in the order in which they come."""

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
    """Yield releases (mostly one) of the greatest noise that cost at least so many units without rounding up."""
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
    """Return whether the names are in order, each once."""
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
