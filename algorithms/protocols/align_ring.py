"""The ring in which an alignment passes blinded ids, and the pieces that they are passed in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_POINTS = 2**14  # half a MiB; at 70 µs each, a second of one core


@dataclass(frozen=True, slots=True)
class Ring:
    """The data parties in the order in which sets pass through them, and their sizes once these are known."""

    parties: tuple[str, ...]
    counts: tuple[int, ...] = ()
    min_common: tuple[int, ...] = ()

    @property
    def least(self) -> int:
        return max(self.min_common)

    def next_after(self, party: str) -> str:
        return self.parties[(self.parties.index(party) + 1) % len(self.parties)]

    def before(self, party: str) -> str:
        return self.parties[self.parties.index(party) - 1]

    def timetable(self, party: str) -> Iterator[Piece]:
        """Return what a data party blinds, in order; `hops` counts the parties that have blinded it before."""
        seat, seats = self.parties.index(party), len(self.parties)
        for turn in range(_chunks(max(self.counts)) + seats - 1):
            for hops in range(seats):
                owner = (seat - hops) % seats
                if 0 <= turn - hops < _chunks(self.counts[owner]):
                    yield Piece(self.parties[owner], hops, turn - hops, self.counts[owner])

    def arrivals(self) -> Iterator[Piece]:
        """Return what the key node receives, in an order that each sender keeps."""
        for chunk in range(_chunks(max(self.counts))):
            for owner, count in zip(self.parties, self.counts, strict=True):
                if chunk < _chunks(count):
                    yield Piece(owner, len(self.parties), chunk, count)


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk of one set, at one stop of its way."""

    owner: str
    hops: int
    chunk: int
    count: int  # of the whole set

    @property
    def size(self) -> int:
        return min(CHUNK_POINTS, self.count - self.chunk * CHUNK_POINTS)

    @property
    def places(self) -> slice:
        start = self.chunk * CHUNK_POINTS
        return slice(start, start + self.size)


def _chunks(count: int) -> int:
    return -(-count // CHUNK_POINTS)
