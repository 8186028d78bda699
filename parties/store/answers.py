"""Keep answers: a party that repeats a request gets the same answer."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.store.rows import RowReads, RowWrites


@dataclass(frozen=True, slots=True, repr=False)
class StoredAnswer:
    request_digest: str  # digest of the request with this id
    answer: bytes
    position: int  # place of its charge in the ledger
    session: str
    kept_bytes: int = 0  # space on the disk for ever, estimated from public sizes


@dataclass(frozen=True, slots=True, repr=False)
class StoredLabels:
    digest: str  # digest of the release's question
    position: int  # place of its charge in the ledger
    mechanism: str
    release: str
    directory: str  # folder of the noisy labels, also while they are made; empty if no mechanism could be made
    labels_sha256: str = ""  # set when they are there
    answer: bytes = b""

    @property
    def is_under_way(self) -> bool:
        """True if the release is charged and not made yet. If no process makes it any more, it is lost."""
        return bool(self.directory) and not self.labels_sha256


class AnswerReads(RowReads):
    def answer(self, requester: str, request_id: str) -> StoredAnswer | None:
        return self._row(StoredAnswer, "answers", "WHERE requester = ? AND request_id = ?", requester, request_id)

    def has_answered(self, requester: str, session: str) -> bool:
        query = "SELECT 1 FROM answers WHERE requester = ? AND session = ? LIMIT 1"
        return bool(self._all(query, requester, session))

    def count_kept_bytes(self, requester: str) -> int:
        """Return the space of all answers to a requester on the disk, as estimated before each was accepted."""
        return self._number("SELECT coalesce(sum(kept_bytes), 0) FROM answers WHERE requester = ?", requester)

    def read_kept_piece(self, requester: str, request_id: str, piece: int) -> bytes:
        """Return one piece of the marks of rows that counted; empty after the last piece."""
        query = "SELECT bits FROM kept_rows WHERE requester = ? AND request_id = ? AND piece = ?"
        rows = self._all(query, requester, request_id, piece)
        return bytes(rows[0][0]) if rows else b""

    def block_fit(self, requester: str, request_id: str) -> tuple[str, bytes] | None:
        """Return the settings of a fit of columns that several parties hold, and the fit."""
        query = "SELECT settings, fit FROM block_fits WHERE requester = ? AND request_id = ?"
        rows = self._all(query, requester, request_id)
        return (rows[0][0], rows[0][1]) if rows else None

    def label_release(self, digest: str) -> StoredLabels | None:
        return self._row(StoredLabels, "label_releases", "WHERE digest = ?", digest)

    def label_releases(self) -> list[StoredLabels]:
        return self._rows(StoredLabels, "label_releases", "ORDER BY position")


class AnswerWrites(AnswerReads, RowWrites):
    def add_answer(self, requester: str, request_id: str, answer: StoredAnswer) -> None:
        self._insert("answers", answer, requester=requester, request_id=request_id)

    def add_kept_piece(self, requester: str, request_id: str, piece: int, bits: bytes) -> None:
        self._insert("kept_rows", requester=requester, request_id=request_id, piece=piece, bits=bits)

    def add_block_fit(self, requester: str, request_id: str, settings: str, fit: bytes) -> None:
        self._insert("block_fits", requester=requester, request_id=request_id, settings=settings, fit=fit)

    def add_label_release(self, stored: StoredLabels) -> None:
        self._insert("label_releases", stored)

    def end_label_release(self, stored: StoredLabels) -> None:
        """End a release that is in progress; a finished release never changes."""
        query = (
            "UPDATE label_releases SET directory = ?, labels_sha256 = ?, answer = ? "
            "WHERE digest = ? AND directory != '' AND labels_sha256 = ''"
        )
        self._change(query, stored.directory, stored.labels_sha256, stored.answer, stored.digest)
