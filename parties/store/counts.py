"""Keep what repeats give away without a charge, for each snapshot, over all jobs and for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blindfit.algorithms.errors import BlindfitError
from blindfit.parties.store.rows import RowReads, RowWrites


@dataclass(frozen=True, slots=True, repr=False)
class ScoredRows:
    """Rows of a snapshot of which an active party has got one model's scores.

    Args:
        asker: which one.
        model: a digest of the party's part of it.
        bits: that one of its scores has.
        rows: a compressed bitmap, by position.
    """

    asker: str
    model: str
    bits: float
    rows: bytes


@dataclass(frozen=True, slots=True)
class Linkage:
    """Of a snapshot with another data party's rows.

    Args:
        question: a digest of all that its outcome depends on.
        min_common: fewer matches end it.
    """

    other: str
    question: str
    min_common: int


class CountReads(RowReads):
    def told_bits(self, snapshot: str) -> int:
        """Return how many bits were told that depend on the rows of this snapshot."""
        return self._number("SELECT coalesce(sum(bits), 0) FROM told_bits WHERE snapshot = ?", snapshot)

    def scored_rows(self, snapshot: str) -> list[ScoredRows]:
        return self._rows(ScoredRows, "scored_rows", "WHERE snapshot = ?", snapshot)

    def label_layouts(self, snapshot: str) -> dict[str, float]:
        """Return digests of the batch layouts that were trained in, with the bits that each gives away of a label."""
        return dict(self._all("SELECT layout, share FROM label_layouts WHERE snapshot = ?", snapshot))

    def linkages(self, snapshot: str) -> list[Linkage]:
        return self._rows(Linkage, "linkages", "WHERE snapshot = ?", snapshot)


class CountWrites(CountReads, RowWrites):
    def count_told_bits(
        self,
        requester: str,
        request_id: str,
        bits: Mapping[str, int],
        most: int,
        refuse: Callable[[int], BlindfitError],
    ) -> None:
        """Count bits before they are told. The same request counts once; one that is refused does not count.

        Args:
            bits: by snapshot.
            refuse: what is raised of so many bits of one snapshot.
        """
        asked = {"requester": requester, "request_id": request_id}
        for snapshot, more in bits.items():
            self._insert("told_bits", how="INSERT OR REPLACE", snapshot=snapshot, **asked, bits=more)
            if (all_bits := self.told_bits(snapshot)) > most:
                raise refuse(all_bits)

    def put_scored_rows(self, snapshot: str, scored: ScoredRows) -> None:
        self._insert("scored_rows", scored, "INSERT OR REPLACE", snapshot=snapshot)

    def add_label_layout(self, snapshot: str, layout: str, share: float) -> None:
        self._insert("label_layouts", snapshot=snapshot, layout=layout, share=share)

    def add_linkage(self, snapshot: str, linkage: Linkage) -> None:
        """Add a linkage; the same question counts once."""
        self._insert("linkages", linkage, "INSERT OR IGNORE", snapshot=snapshot)
