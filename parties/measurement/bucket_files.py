"""Records by bucket, which one pass of a build leaves for the next: in memory if they are few, else in one file.

A task of a cluster may be lost and run again elsewhere, or run twice at once, on a disk that all machines share. So
every file of a task has a temporary name until it is complete. Its final name and its bytes are the same for every
worker.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from blindfit.parties.files.private_files import open_private

N_BUCKETS = 256

Records = NDArray[Any]


@dataclass(frozen=True, repr=False, eq=False)
class Bucketed:
    """The records that one task left.

    Attributes:
        held: all records, as one bucket; None if they are in the file.
        path: file of records, in runs one after the other, each run in the order of its buckets.
        bounds: int64 (runs, buckets + 1), the places in the file at which the buckets of a run begin and end, in
            records.
    """

    dtype: np.dtype[Any]
    held: Records | None
    path: Path
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return int((self.bounds[:, -1] - self.bounds[:, 0]).sum()) if self.held is None else len(self.held)

    def part(self, buckets: slice) -> Bucketed:
        """Return some of the buckets. Records in memory are one bucket, which is not divided."""
        return self if self.held is not None else replace(self, bounds=self.bounds[:, buckets.start : buckets.stop + 1])

    def buckets(self) -> Iterator[Records]:
        if self.held is not None:
            yield self.held
            return
        for starts, ends in zip(self.bounds.T[:-1], self.bounds.T[1:], strict=True):
            yield self._read(starts, ends)

    def _read(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Records:
        records = np.empty(int((ends - starts).sum()), self.dtype)
        if not len(records):
            return records
        octets, size, at = records.view(np.uint8).data, self.dtype.itemsize, 0
        with open(self.path, "rb", buffering=0) as file:
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                file.seek(start * size)
                n = (end - start) * size
                if file.readinto(octets[at : at + n]) != n:
                    raise OSError(errno.EIO, f"{self.path} is shorter than it was written")
                at += n
        return records


class Buckets:
    """A collector of records in any order; fewer than `most_held` are in memory.

    Args:
        may_hold: True if the records may stay in memory when no more come.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], most_held: int, *, may_hold: bool) -> None:
        self._path, self._dtype, self._most_held, self._may_hold = path, dtype, most_held, may_hold
        self._closing = ExitStack()
        self._file: IO[bytes] | None = None
        self._held: list[tuple[Records, NDArray[np.uint8]]] = []
        self._n_held = self._n_written = 0
        self._bounds: list[NDArray[np.int64]] = []

    def add(self, records: Records, bucket: NDArray[Any]) -> None:
        self._held.append((records, bucket.astype(np.uint8)))
        self._n_held += len(records)
        if self._n_held >= self._most_held:
            self._flush()

    def left(self) -> Bucketed:
        if self._may_hold and not self._bounds:
            return Bucketed(self._dtype, self._take()[0], self._path, np.zeros((0, 1), np.int64))
        self._flush()
        bounds = np.array(self._bounds, np.int64).reshape(-1, N_BUCKETS + 1)
        return Bucketed(self._dtype, None, self._path, bounds)

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, *error: Any) -> None:
        self._closing.__exit__(*error)

    def _take(self) -> tuple[Records, NDArray[np.uint8]]:
        """Return the records in memory, with the bucket of each, and empty the memory."""
        held = [(np.empty(0, self._dtype), np.empty(0, np.uint8)), *self._held]
        self._held, self._n_held = [], 0
        records, bucket = (np.concatenate(column) for column in zip(*held, strict=True))
        return records, bucket

    def _flush(self) -> None:
        records, bucket = self._take()
        if len(records):
            self._file = self._file or self._closing.enter_context(write_whole(self._path))
            records[np.argsort(bucket, kind="stable")].tofile(self._file)
            ends = np.cumsum(np.bincount(bucket, minlength=N_BUCKETS))
            self._bounds.append(self._n_written + np.concatenate([[0], ends]))
            self._n_written += len(records)


@contextmanager
def write_whole(path: Path) -> Iterator[IO[bytes]]:
    """Yield a private file that gets its path only when it is complete. It replaces the file of another run of the
    task.
    """
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with open_private(temporary, "xb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def records_of(dtype: np.dtype[Any], **fields: Any) -> Records:
    records = np.empty(max(np.size(values) for values in fields.values()), dtype)
    for name, values in fields.items():
        records[name] = values
    return records
