"""Building the label index: an external sort, so that memory does not grow with the table.

Three passes, each over records in 256 bucket files by the first byte of their key, one bucket in memory at a
time (130 MB at a billion rows); records that are few enough to be held are one bucket, which needs no file:

    pass | bucket by        | then
    1    | hash of the id   | sort; refuse two equal ids; append hash and label to the index's files
    2    | hash of person   | number the persons 0, 1, 2, ...
    3    | place in index   | append each row's person number to the index's file

Passes 2 and 3 run only where the dataset has a person column. Two persons whose 64-bit hashes collide (3e-8
at a million persons) share one allowance: fewer rows are kept than could be, never more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from blindfit.parties.data.content_digest import ContentDigest
from blindfit.parties.data.id_hash import HashKeys, hash_texts, hash_texts_64
from blindfit.parties.data.source import Source, duplicate_error
from blindfit.parties.files.private_files import open_private

N_BUCKETS = 256
HELD_RECORDS = 1 << 17  # records in memory before they go to the bucket files

FILES: dict[str, str] = {"high": "<u8", "low": "<u8", "label": "u1", "person": "<u4"}
LABELS = {"binary": "u1", "number": "<f8", "share": "<u8"}  # dtypes by the source's label_kind
OWNER = np.dtype([("person", "<u8"), ("place", "<u8")])
NUMBERED = np.dtype([("place", "<u8"), ("number", "<u4")])

Records = NDArray[Any]


@dataclass(frozen=True)
class Built:
    """What the header says of the table."""

    n_rows: int
    n_persons: int | None
    longest_run: int  # rows whose high 64 bits are equal: 1, but for a collision
    label: str = FILES["label"]  # dtype
    split_id: str = ""  # of shares

    def dtypes(self) -> dict[str, str]:
        """Of the files that the index has."""
        has = {name: dtype for name, dtype in FILES.items() if name != "person" or self.n_persons is not None}
        return has | {"label": self.label}


@dataclass(frozen=True, repr=False)
class IndexKeys:
    """The secret keys under which ids and persons are hashed."""

    ids: HashKeys
    persons: HashKeys

    @classmethod
    def random(cls) -> IndexKeys:
        return cls(HashKeys.random(), HashKeys.random())

    @classmethod
    def of_split(cls, split_id: str) -> IndexKeys:
        """Two tables of one split have their ids in one order, under one key."""
        return cls(HashKeys.of_split(split_id), HashKeys.random())


def row_dtype(label: str) -> np.dtype[Any]:
    return np.dtype([("high", "<u8"), ("low", "<u8"), ("person", "<u8"), ("row", "<u8"), ("label", label)])


def build_files(source: Source, keys: IndexKeys, directory: Path) -> tuple[Built, str]:
    """Writes the sorted files into an empty directory, which the caller removes if this raises.

    Returns:
        The table, and the digest of its content.
    """
    label = LABELS[source.settings.label_kind]
    row, content = row_dtype(label), ContentDigest()
    rows = _Buckets(directory / "rows", row)
    for batch in source.batches(features=False):
        content.add(batch)
        high, low = hash_texts(batch.ids, keys.ids)
        person = 0 if batch.persons is None else hash_texts_64(batch.persons, keys.persons)
        rows.add(_records(row, high=high, low=low, person=person, row=batch.rows, label=batch.labels), high >> 56)
    owners = _Buckets(directory / "owners", OWNER) if source.settings.person else None
    longest_run = _write_sorted(rows, owners, source, directory)
    n_persons = None if owners is None else _write_persons(owners, content.n_rows, directory)
    return Built(content.n_rows, n_persons, longest_run, label), content.hexdigest()


def _write_sorted(rows: _Buckets, owners: _Buckets | None, source: Source, directory: Path) -> int:
    n_written, longest_run = 0, 0
    with (
        _Output(directory, "high") as high,
        _Output(directory, "low") as low,
        _Output(directory, "label", rows.dtype["label"]) as label,
    ):
        for bucket in rows.drain():
            ordered = bucket[np.lexsort((bucket["row"], bucket["low"], bucket["high"]))]
            _refuse_duplicates(ordered, source)
            longest_run = max(longest_run, _longest_run(ordered["high"]))
            for output in (high, low, label):
                output.write(ordered[output.field])
            if owners is not None:
                place = np.arange(n_written, n_written + len(ordered))
                person = ordered["person"]
                owners.add(_records(OWNER, person=person, place=place), person >> 56)
            n_written += len(ordered)
    return longest_run


def _refuse_duplicates(ordered: Records, source: Source) -> None:
    high, low, row = ordered["high"], ordered["low"], ordered["row"]
    again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
    if again.size:
        raise duplicate_error(source, int(row[again[0]]), int(row[again[0] + 1]))


def _longest_run(ordered: NDArray[Any]) -> int:
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))
    return int(np.diff(starts).max())


def _write_persons(owners: _Buckets, n_rows: int, directory: Path) -> int:
    numbered, n_persons = _Buckets(directory / "numbered", NUMBERED), 0
    for bucket in owners.drain():
        distinct, number = np.unique(bucket["person"], return_inverse=True)
        place = bucket["place"]
        numbered.add(_records(NUMBERED, place=place, number=number + n_persons), place * N_BUCKETS // n_rows)
        n_persons += len(distinct)
    with _Output(directory, "person") as output:
        for bucket in numbered.drain():
            output.write(bucket["number"][np.argsort(bucket["place"])])
    return n_persons


def _records(dtype: np.dtype[Any], **fields: Any) -> Records:
    records = np.empty(max(np.size(values) for values in fields.values()), dtype)
    for name, values in fields.items():
        records[name] = values
    return records


class _Buckets:
    """Records in files by bucket, written in bulk."""

    def __init__(self, directory: Path, dtype: np.dtype[Any]) -> None:
        directory.mkdir(mode=0o700)
        self._directory, self.dtype = directory, dtype
        self._held: list[tuple[Records, NDArray[np.uint8]]] = []
        self._n_held = 0

    def add(self, records: Records, bucket: NDArray[Any]) -> None:
        self._held.append((records, bucket.astype(np.uint8)))
        self._n_held += len(records)
        if self._n_held >= HELD_RECORDS:
            self._flush()

    def drain(self) -> Iterator[Records]:
        """Each bucket that holds anything, in order; its file goes once it is read."""
        if self._held and not any(self._directory.iterdir()):  # all that there is
            yield self._taken()[0]
        self._flush()
        for path in sorted(self._directory.iterdir()):
            yield np.fromfile(path, self.dtype)
            path.unlink()
        self._directory.rmdir()

    def _taken(self) -> tuple[Records, NDArray[np.uint8]]:
        """All that is held, which is held no longer, and the bucket of each."""
        records, bucket = (np.concatenate(column) for column in zip(*self._held, strict=True))
        self._held, self._n_held = [], 0
        return records, bucket

    def _flush(self) -> None:
        if not self._held:
            return
        records, bucket = self._taken()
        records = records[np.argsort(bucket, kind="stable")]
        ends = np.cumsum(np.bincount(bucket, minlength=N_BUCKETS))
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                with open_private(self._directory / f"{number:03}", "ab") as file:
                    records[start:end].tofile(file)


class _Output:
    """One file of the index, on the disk when it closes."""

    def __init__(self, directory: Path, field: str, dtype: DTypeLike | None = None) -> None:
        self.field, self._dtype = field, FILES[field] if dtype is None else dtype
        self._file: IO[bytes] = open_private(directory / field, "xb")

    def write(self, values: NDArray[Any]) -> None:
        np.ascontiguousarray(values, self._dtype).tofile(self._file)

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
