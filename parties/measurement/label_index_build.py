"""Build of the label index: an external sort by ranges of hashes, in this process or by the workers of a cluster.

| pass | a task takes                   | and leaves, by ranges of
| 1    | a part of the rows             | the ids' hashes: a record of each row
| 2    | a range of the ids' hashes     | the persons' hashes: the person of each place in the index
| 3    | a range of the persons' hashes | the places: a number of the person for each, from 0 in each range
| 4    | a range of the places          | no records

Pass 2 sorts, searches for two equal ids, and writes its piece of the index's files of hashes and labels. Pass 4 writes
a piece of the file of persons. Passes 3 and 4 run only if the dataset has a person column. The pieces are joined in the
order of their ranges, so the files do not depend on the workers that wrote them.

A range consists of some of 256 buckets, by the first byte of a hash or a place. A task has one bucket in memory at a
time (130 MB at 1,000,000,000 rows). Records that are few enough to stay in memory are one bucket, which needs no file.
Without a cluster a pass is one task. Tasks leave their files in a folder of the index's directory, on a disk that all
workers share. With labels 0 and 1, a row takes 50 bytes there, or 66 with persons, and 17 or 21 in the final index.

Two persons whose 64-bit hashes collide share one limit of rows. The probability is 3e-8 at 1,000,000 persons. Fewer
rows are then kept than the limit allows, never more.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.workers import THIS_PROCESS, OpenWorkers, Workers, even_slices, in_this_process
from blindfit.parties.data.content_digest import ContentDigest
from blindfit.parties.data.duplicates import duplicate_error
from blindfit.parties.data.id_hash import HashKeys, hash_texts, hash_texts_64
from blindfit.parties.data.source import Source
from blindfit.parties.files.private_files import open_private
from blindfit.parties.measurement.bucket_files import (
    N_BUCKETS,
    Bucketed,
    Buckets,
    Records,
    records_of,
    write_whole,
)

HELD_RECORDS = 1 << 17  # records in a task's memory before they go to its file; a smaller table needs no cluster
TASKS_OF_A_WORKER = 4
MOST_ROWS_OF_A_TASK = 1 << 22  # some ten seconds of work, which is all that a lost worker costs
WORKING = "building"  # folder
COPIED_BYTES = 1 << 22  # size of one copy

FILES: dict[str, str] = {"high": "<u8", "low": "<u8", "label": "u1", "person": "<u4"}
SORTED = ("high", "low", "label")  # files that pass 2 writes
LABELS = {"binary": "u1", "number": "<f8", "share": "<u8"}  # dtypes by the source's label_kind
OWNER = np.dtype([("person", "<u8"), ("place", "<u8")])
NUMBERED = np.dtype([("place", "<u8"), ("number", "<u4")])


@dataclass(frozen=True)
class Built:
    """Description of the table in the index's header."""

    n_rows: int
    n_persons: int | None
    longest_run: int  # rows whose high 64 bits are equal: 1, except after a collision
    label: str = FILES["label"]  # dtype
    split_id: str = ""  # only for shares

    def dtypes(self) -> dict[str, str]:
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
        """Return keys for the tables of one split, so that their ids have the same order under the same key."""
        return cls(HashKeys.of_split(split_id), HashKeys.random())


def row_dtype(label: str) -> np.dtype[Any]:
    return np.dtype([("high", "<u8"), ("low", "<u8"), ("person", "<u8"), ("row", "<u8"), ("label", label)])


# --- what a task does ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class IndexTask:
    """A task of one pass.

    Args:
        number: number of its part or range; with the pass, it names the files that the task writes.
        directory: folder of all files that tasks leave.
        is_only: True if this is the only task of its pass, and its records are used in this process.
    """

    number: int
    directory: Path
    label: str
    has_persons: bool
    held_records: int
    is_only: bool

    def path(self, name: str) -> Path:
        return self.directory / f"{name}-{self.number:03}"

    def leaving(self, name: str, dtype: np.dtype[Any]) -> Buckets:
        if not self.directory.is_dir():
            raise DataError(
                f"{self.directory}: the worker on {socket.gethostname()} does not see this folder",
                hint="put data_dir on a disk that all workers of the cluster share, at the same path",
            )
        return Buckets(self.path(name), dtype, self.held_records, may_hold=self.is_only)


@dataclass(frozen=True, repr=False)
class ReadPart:
    """The result of pass 1 for one part of the rows.

    Args:
        wrong: errors in the rows, in the order in which one process would find them.
    """

    content: ContentDigest
    rows: Bucketed | None
    wrong: DataError | None = None


def split_of_part(source: Source, split_id: str) -> DataError | None:
    """Return the error of a row that has another split; None if all rows have this split."""
    try:
        source.split_id(split_id)
    except DataError as error:
        return error
    return None


def read_part(task: IndexTask, source: Source, keys: IndexKeys) -> ReadPart:
    """Run pass 1."""
    row, content = row_dtype(task.label), ContentDigest()
    with task.leaving("rows", row) as rows:
        try:
            for batch in source.batches(features=False):
                content.add(batch)
                high, low = hash_texts(batch.ids, keys.ids)
                person = 0 if batch.persons is None else hash_texts_64(batch.persons, keys.persons)
                records = records_of(row, high=high, low=low, person=person, row=batch.rows, label=batch.labels)
                rows.add(records, high >> 56)
        except DataError as error:
            return ReadPart(content, None, error)
        return ReadPart(content, rows.left())


@dataclass(frozen=True, repr=False)
class SortedRange:
    """The result of pass 2 for one range.

    Args:
        longest_run: largest number of rows whose high 64 bits are equal.
        again: first row whose id another row has, and that other row, which comes before it.
    """

    longest_run: int
    owners: Bucketed | None
    again: tuple[int, int] | None


def sort_range(task: IndexTask, rows: Sequence[Bucketed], place: int) -> SortedRange:
    """Run pass 2.

    Args:
        place: place of its first row in the index.
    """
    longest_run, again = 0, []
    with ExitStack() as closing:
        owners = closing.enter_context(task.leaving("owners", OWNER))
        outputs = {name: closing.enter_context(write_whole(task.path(name))) for name in SORTED}
        for bucket in _join_buckets(rows):
            ordered = _in_order(bucket)
            again += _first_again(ordered)
            longest_run = max(longest_run, _longest_run(ordered["high"]))
            for name, output in outputs.items():
                np.ascontiguousarray(ordered[name]).tofile(output)
            if task.has_persons:
                person = ordered["person"]
                places = np.arange(place, place + len(ordered))
                owners.add(records_of(OWNER, person=person, place=places), person >> 56)
            place += len(ordered)
        return SortedRange(longest_run, owners.left() if task.has_persons else None, min(again, default=None))


def _join_buckets(left: Sequence[Bucketed]) -> Iterator[Records]:
    """Yield each bucket that holds records, in order, from the files of all tasks."""
    for pieces in zip(*(each.buckets() for each in left), strict=True):
        bucket = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if len(bucket):
            yield bucket


def _in_order(records: Records) -> Records:
    """Return records sorted by hash. Equal ids are sorted by row, so the order does not depend on the tasks."""
    high = np.ascontiguousarray(records["high"])
    order = np.argsort(high)
    ordered = high[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((records["row"], records["low"], high))
    return records[order]


def _first_again(ordered: Records) -> list[tuple[int, int]]:
    high, low, row = ordered["high"], ordered["low"], ordered["row"]
    twins = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
    if not twins.size:
        return []
    first = twins[np.argmin(row[twins + 1])]
    return [(int(row[first + 1]), int(row[first]))]


def _longest_run(ordered: NDArray[Any]) -> int:
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))
    return int(np.diff(starts).max())


def number_range(task: IndexTask, owners: Sequence[Bucketed], n_rows: int) -> tuple[int, Bucketed]:
    """Run pass 3: return the number of persons in the range, and their numbers, from 0."""
    n_persons = 0
    with task.leaving("numbered", NUMBERED) as numbered:
        for bucket in _join_buckets(owners):
            distinct, number = np.unique(bucket["person"], return_inverse=True)
            place = bucket["place"]
            numbered.add(records_of(NUMBERED, place=place, number=number + n_persons), place * N_BUCKETS // n_rows)
            n_persons += len(distinct)
        return n_persons, numbered.left()


def place_range(task: IndexTask, numbered: Sequence[Bucketed], first_numbers: Sequence[int]) -> None:
    """Run pass 4.

    Args:
        first_numbers: first number of the persons in each range of pass 3.
    """
    with write_whole(task.path("person")) as output:
        for pieces in zip(*(each.buckets() for each in numbered), strict=True):
            for piece, first in zip(pieces, first_numbers, strict=True):
                piece["number"] += first
            bucket = np.concatenate(pieces)
            np.ascontiguousarray(bucket["number"][np.argsort(bucket["place"])]).tofile(output)


# --- this process --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Reading:
    """A source's rows in parts, and the workers that read them."""

    source: Source
    parts: Sequence[Source]
    workers: Workers
    open_workers: OpenWorkers

    @property
    def in_parts(self) -> bool:
        return self.workers is not THIS_PROCESS

    def read_alone(self, n_rows: int) -> bool:
        """Return True if workers sort rows that one process read, because the rows could not be read in parts."""
        return not self.in_parts and n_rows >= HELD_RECORDS and self.open_workers is not in_this_process

    def split_id(self) -> str:
        """Return the id of the split. It is the source's own id, and so is the error."""
        if not self.in_parts:
            return self.source.split_id()
        split_id = self.source.part(0, 1).split_id()
        for wrong in self.workers.map(split_of_part, [(part, split_id) for part in self.parts]):
            if wrong is not None:
                raise wrong
        return split_id

    def sorting(self, read: Sequence[Bucketed]) -> AbstractContextManager[Workers]:
        """Return the workers that sort. If only this process could read, the cluster's workers sort its records, unless
        they are still in this process's memory.
        """
        if self.in_parts or read[0].held is not None:
            return nullcontext(self.workers)
        return self.open_workers()


@contextmanager
def reading(source: Source, open_workers: OpenWorkers) -> Iterator[Reading]:
    """Open workers only if they can read parts of a source, and the source is large enough."""
    n_rows = source.n_rows
    if n_rows is None or n_rows < HELD_RECORDS:
        yield Reading(source, [source], THIS_PROCESS, open_workers)
        return
    with open_workers() as workers:
        parts = [source] if workers is THIS_PROCESS else _parts_of(source, n_rows, workers.count)
        yield Reading(source, parts, workers, open_workers)


def _parts_of(source: Source, n_rows: int, n_workers: int) -> list[Source]:
    """Return parts of whole batches. So the first error is the same as in one process."""
    size = source.settings.batch_rows
    most = -(-n_rows // HELD_RECORDS)  # smaller parts are not worth their transport
    batches = even_slices(-(-n_rows // size), min(_n_tasks(n_rows, n_workers), most))
    return [source.part(part.start * size, min(part.stop * size, n_rows)) for part in batches]


def _n_tasks(n_rows: int, n_workers: int) -> int:
    return max(n_workers * TASKS_OF_A_WORKER, -(-n_rows // MOST_ROWS_OF_A_TASK))


def build_files(reading: Reading, keys: IndexKeys, directory: Path) -> tuple[Built, str]:
    """Write the sorted files into an empty directory, which the caller removes if this raises.

    Returns:
        The table, and the digest of its content.

    Raises:
        DataError: there is an error in the rows; the error of the first row comes first.
        ComputeFailed: the workers were lost, or too slow.
    """
    with _working_folder(directory.absolute() / WORKING) as working:
        build = _Build(reading.source, working)
        content, rows = build.read(reading, keys)
        with reading.sorting(rows) as workers:
            longest_run, owners = build.sort(rows, workers)
            for each in rows:
                each.path.unlink(missing_ok=True)
            n_persons = None if owners is None else build.number(owners, content.n_rows, workers)
        table = Built(content.n_rows, n_persons, longest_run, build.label)
        for name, dtype in table.dtypes().items():
            _put_together(build.pieces[name], directory / name, table.n_rows * np.dtype(dtype).itemsize)
    return table, content.hexdigest()


@contextmanager
def _working_folder(path: Path) -> Iterator[Path]:
    """Yield a folder and remove it at the end, although a task that was given up as lost may still begin a file
    there.
    """
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        for wait_s in (0.1, 1.0, 0.0):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
            time.sleep(wait_s)
    if path.exists():
        shutil.rmtree(path)  # an error here is reported: the index must be complete


class _Build:
    """The passes of one build.

    Attributes:
        pieces: paths of the pieces of each of the index's files, in order. They are recorded, because the listing of a
            shared disk may be old.
    """

    def __init__(self, source: Source, working: Path) -> None:
        self._source, self._working = source, working
        self.label, self.has_persons = LABELS[source.settings.label_kind], source.settings.person is not None
        self.pieces: dict[str, list[Path]] = {}

    def read(self, reading: Reading, keys: IndexKeys) -> tuple[ContentDigest, list[Bucketed]]:
        tasks = self._tasks(len(reading.parts), is_only=not reading.in_parts)
        found = reading.workers.map(
            read_part, [(task, part, keys) for task, part in zip(tasks, reading.parts, strict=True)]
        )
        for each in found:
            if each.wrong is not None:
                raise each.wrong
        return ContentDigest.of(each.content for each in found), [each.rows for each in found if each.rows is not None]

    def sort(self, rows: Sequence[Bucketed], workers: Workers) -> tuple[int, list[Bucketed] | None]:
        """Return the longest run, and the owners of the rows."""
        ranges = self._ranges(rows, workers)
        sizes = [sum(len(each) for each in of_range) for _, of_range in ranges]
        places = np.cumsum([0, *sizes]).tolist()
        found = workers.map(sort_range, [(*each, place) for each, place in zip(ranges, places[:-1], strict=True)])
        self.pieces |= {name: [task.path(name) for task, _ in ranges] for name in SORTED}
        again = [each.again for each in found if each.again is not None]
        if again:
            later, earlier = min(again)
            raise duplicate_error(self._source, earlier, later)
        owners = [each.owners for each in found if each.owners is not None]
        return max(each.longest_run for each in found), owners if self.has_persons else None

    def number(self, owners: Sequence[Bucketed], n_rows: int, workers: Workers) -> int:
        found = workers.map(number_range, [(*each, n_rows) for each in self._ranges(owners, workers)])
        first_numbers = np.cumsum([0, *(count for count, _ in found)]).tolist()
        places = self._ranges([left for _, left in found], workers)
        workers.map(place_range, [(*each, first_numbers[:-1]) for each in places])
        self.pieces["person"] = [task.path("person") for task, _ in places]
        return int(first_numbers[-1])

    def _ranges(self, left: Sequence[Bucketed], workers: Workers) -> list[tuple[IndexTask, list[Bucketed]]]:
        is_only, n_rows = workers is THIS_PROCESS, sum(map(len, left))
        ranges = even_slices(N_BUCKETS, 1 if is_only else _n_tasks(n_rows, workers.count))
        tasks = self._tasks(len(ranges), is_only=is_only)
        return [(task, [each.part(of) for each in left]) for task, of in zip(tasks, ranges, strict=True)]

    def _tasks(self, count: int, *, is_only: bool) -> list[IndexTask]:
        return [IndexTask(i, self._working, self.label, self.has_persons, HELD_RECORDS, is_only) for i in range(count)]


def _put_together(pieces: Sequence[Path], path: Path, size_bytes: int) -> None:
    """Write one file from all pieces, and wait until it is on the disk.

    Raises:
        DataError: the file does not have its expected size.
    """
    pieces[0].replace(path)
    with open_private(path, "ab") as file:
        for piece in pieces[1:]:
            with piece.open("rb") as more:
                shutil.copyfileobj(more, file, COPIED_BYTES)
            piece.unlink()
        file.flush()
        os.fsync(file.fileno())
        if file.tell() != size_bytes:
            raise DataError(
                f"{path} has {file.tell():,} bytes, not the {size_bytes:,} that were written",
                hint="put data_dir on a disk on which each worker sees the files of all others",
            )
