"""Keep uploads of ids without an answer, whose number is limited for each active party."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.store.rows import RowReads, RowWrites


@dataclass(frozen=True, slots=True)
class FailedUploads:
    consumer: str
    dataset: str
    count: int
    last: str  # time of its beginning


class UploadReads(RowReads):
    def count_uploads(self, *, consumer: str | None = None, since: str = "") -> int:
        """Count uploads without an answer.

        Args:
            since: time in the form of `began`; all times have the same length.
        """
        query = "SELECT count(*) FROM uploads WHERE (?1 IS NULL OR consumer = ?1) AND began >= ?2"
        return self._number(query, consumer, since)

    def uploads(self) -> list[FailedUploads]:
        """Return the uploads without an answer, by active party and dataset."""
        query = "SELECT consumer, dataset, count(*), max(began) FROM uploads GROUP BY consumer, dataset"
        return [
            FailedUploads(consumer=consumer, dataset=dataset, count=count, last=last)
            for consumer, dataset, count, last in self._all(query)
        ]


class UploadWrites(UploadReads, RowWrites):
    def add_upload(self, consumer: str, dataset: str, began: str) -> int:
        """Add an upload and return its number."""
        query = "INSERT INTO uploads (consumer, dataset, began) VALUES (?, ?, ?) RETURNING number"
        return self._number(query, consumer, dataset, began)

    def forget_upload(self, number: int | None) -> None:
        self._change("DELETE FROM uploads WHERE number = ?", number)
