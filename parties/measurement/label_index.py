"""The measurement server's join from ids to labels, on disk.

A table of labels is hashed, sorted and written once (label_index_build.py). A request then joins its ids batch by batch
against memory-mapped files. Memory holds a few megabytes for a table of any size: the pages return to the system after
each part of a batch.

A request uses a row of the table at most once, and at most `max_rows_per_person` rows of a person: this bounds the
sensitivity of a sum over its rows. The ids of a request and their order decide which rows are kept; a label never does.

The ids in the table and the persons of its rows may be private, and anyone who uploads ids without an answer can
measure time. So each id takes the same time: known or unknown, new or used before, within its person's limit or above.
An unknown id passes through all steps with the row that would follow it. Every array has the batch's length, and a
request is refused only at the upload's end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.algorithms.errors import ConfigError, DataError, DuplicateId, UnknownId
from blindfit.algorithms.workers import OpenWorkers, in_this_process
from blindfit.parties.data.id_hash import HashKeys, Words, hash_texts
from blindfit.parties.data.source import Source
from blindfit.parties.files.private_files import new_private
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.measurement.label_index_build import Built, IndexKeys, build_files, reading
from blindfit.parties.measurement.mapped import MappedArray
from blindfit.parties.snapshots.rows_file import Written, without_positive

FORMAT = 2
HEADER = "header.json"
RESIDENT_BYTES = 8 << 20  # part of the index that is mapped at a time; a smaller index stays mapped during a request
BLOCK_ROWS = 1 << 16  # whole octets of bits
NO_ROW = 1 << 62
READ_ALONE = (
    "its rows were read in one process and only sorted by the workers of [compute]: put the table into a Parquet file, "
    "which all of them can read"
)
LEAST_PART = 128  # lookups between two releases of pages; each may map 64 KiB around it

Unknown = Literal["refuse", "zero"]


@dataclass(frozen=True, repr=False, eq=False)
class JoinedBatch:
    """The rows of a batch, in its order.

    Attributes:
        labels: labels (n,), in the index's type; 0 if `kept` is False, if the id is unknown, or if it came before.
        kept: bool (n,); False for a person's rows above the limit.
    """

    labels: NDArray[Any]
    kept: NDArray[np.bool_]


class LabelIndex:
    """A built index, open to read."""

    def __init__(self, directory: Path, header: Header) -> None:
        self.directory = directory
        self._header = header
        dtypes = header.table.dtypes()
        self._files = {name: MappedArray.open(directory / name, dtype) for name, dtype in dtypes.items()}

    @property
    def n_rows(self) -> int:
        return self._header.table.n_rows

    @property
    def n_persons(self) -> int | None:
        """Number of persons; None if the dataset has no person column."""
        return self._header.table.n_persons

    @property
    def split_id(self) -> str:
        """Id of the split, for shares; else empty."""
        return self._header.table.split_id

    def ids_sha256(self) -> bytes:
        """Return a digest of the ids of a table of shares. It is equal for equal ids of one split, in any order of the
        table.
        """
        digest = hashlib.sha256()
        for name in ("high", "low"):
            for block in self.in_order(name):
                digest.update(np.ascontiguousarray(block, "<u8").data)
        return digest.digest()

    def new_request(self, max_rows_per_person: int | None, unknown: Unknown) -> JoinState:
        """Return the state of one request; close it when the request ends."""
        if max_rows_per_person is not None and max_rows_per_person < 1:
            raise ConfigError("max_rows_per_person must be at least 1")
        if max_rows_per_person is not None and self.n_persons is None:
            raise ConfigError("max_rows_per_person needs a person column, which this dataset does not declare")
        if unknown == "zero" and self.n_persons is not None:
            raise ConfigError(
                'unknown_rows = "zero" cannot be used with a person column: no limit per person holds for rows that '
                "the table lacks. The labels of a person could then decide which rows of the person are kept, and the "
                "sensitivity would double",
                hint='list every row in the table, with its label 0 or 1, and set unknown_rows = "refuse"',
            )
        return JoinState(self, max_rows_per_person, unknown)

    def labels_in_order(self, max_rows_per_person: int | None) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
        """Yield all labels, block by block, and a mark for each row among the first `max_rows_per_person` of its
        person.
        """
        for block, first in self.first_in_order(max_rows_per_person):
            yield self._files["label"].array[block].copy(), first

    def first_in_order(self, max_rows_per_person: int | None) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield all rows, block by block, and a mark for each row among the first `max_rows_per_person` of its person.

        The order follows secret hashes of the ids, so the first rows of a person do not depend on labels.
        """
        with self.new_request(max_rows_per_person, "refuse") as state:
            for start in range(0, self.n_rows, BLOCK_ROWS):
                block = slice(start, min(start + BLOCK_ROWS, self.n_rows))
                if max_rows_per_person is None:
                    yield block, np.ones(block.stop - start, np.bool_)
                else:
                    yield block, state._within_cap(self._files["person"].array[block].astype(np.int64))
                for file in self._files.values():
                    file.release()

    def in_order(self, field: Literal["high", "low"]) -> Iterator[NDArray[Any]]:
        """Yield one of the index's columns, block by block, from the file that was opened, even if its path now has
        another.
        """
        file = self._files[field]
        for start in range(0, self.n_rows, BLOCK_ROWS):
            yield file.array[start : start + BLOCK_ROWS].copy()
            file.release()

    def frozen(self, label: str) -> Header:
        """Return the header of a copy with labels of another type, and without persons."""
        table = replace(self._header.table, n_persons=None, label=label)
        return replace(self._header, table=table)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> LabelIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, high: Words, low: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the place of each hash in the table (or of the row that would follow it), and True for each that is
        there.

        `high` is sorted, and so are the places.
        """
        table_high, table_low = self._files["high"].array, self._files["low"].array
        first = np.minimum(np.searchsorted(table_high, high), self.n_rows - 1)
        place, known = first.copy(), np.zeros(len(high), np.bool_)
        for step in range(self._header.table.longest_run):
            at = np.minimum(first + step, self.n_rows - 1)
            found = (table_high[at] == high) & (table_low[at] == low)
            place += (at - place) * found
            known |= found
        return place, known


class JoinState:
    """The part of the index that one request has used so far: a bit for each row of the table, a count for each person.

    Attributes:
        unknown: number of ids that the table does not have. This depends on who is in the table.
        again: number of known ids that came a second time, in another batch.
    """

    def __init__(self, index: LabelIndex, max_rows_per_person: int | None, unknown: Unknown) -> None:
        self._index, self._cap, self._refuses = index, max_rows_per_person, unknown == "refuse"
        self._n_seen = 0
        self.unknown = self.again = 0
        self._first_unknown = self._first_again = NO_ROW
        beside = index.directory.parent  # the index's own folder may be removed meanwhile, with its snapshot
        self._used = MappedArray.temporary((index.n_rows + 7) // 8, "u1", beside)
        self._counts: MappedArray | None = None
        if max_rows_per_person is not None and index.n_persons is not None:
            self._counts = MappedArray.temporary(index.n_persons, "<u4", beside)

    def join(self, ids: list[str] | pa.Array) -> JoinedBatch:
        """Join the next rows of the request, ids in any spelling. At the end, `check` refuses a request that has no
        answer.

        Raises:
            DuplicateId: two ids in this batch are equal, known or not; the request is over.
        """
        texts = one_spelling(pa.array(ids, pa.string()) if isinstance(ids, list) else ids)
        high, low = hash_texts(texts, self._index._header.keys.ids)
        order = np.argsort(high)
        if (np.diff(high[order]) == 0).any():
            order = np.lexsort((low, high))
            self._refuse_twins(high[order], low[order], order)
        joined = _Joining.empty(len(order), self._index._header.table.label)
        for part in self._parts(order):
            self._join_part(part, high[part], low[part], joined)
        self._note(joined)
        kept = self._within_cap(joined.person)
        return JoinedBatch(_only(joined.label, kept), kept)

    def check(self) -> None:
        """Check that the rows can be answered. Call it when all rows have come, before anything is computed from them.

        It checks nothing under unknown="zero": there an id of an earlier batch counts as label 0, like an unknown id.

        Raises:
            DuplicateId: two batches have the same id.
            UnknownId: the table does not have an id.
        """
        if self._refuses and self.again:
            raise DuplicateId(self._first_again)
        if self._refuses and self.unknown:
            raise UnknownId(self._first_unknown, self.unknown)

    @property
    def rows_taken_as_zero(self) -> int:
        """Number of rows with label 0 under unknown="zero": the table lacks their ids, or the ids came before."""
        return 0 if self._refuses else self.unknown + self.again

    def count_within(self, max_rows_per_person: int | None) -> int:
        """Return the number of rows that came and are among the first of their person, in the index's order."""
        count = 0
        for block, first in self._index.first_in_order(max_rows_per_person):
            octets = self._used.array[block.start >> 3 : (block.stop + 7) >> 3]
            used = np.unpackbits(octets, count=len(first), bitorder="little")
            count += int((used & first).sum())
        return count

    def close(self) -> None:
        self._release(list(self._index._files.values()))
        self._used.close()
        if self._counts is not None:
            self._counts.close()

    def __enter__(self) -> JoinState:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_twins(self, high: Words, low: Words, order: NDArray[np.int64]) -> None:
        """Refuse equal ids in a batch. lexsort is stable, so the second of two equal ids in order is the later row."""
        twins = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
        if twins.size:
            raise DuplicateId(self._n_seen + 1 + int(order[twins + 1].min()))

    def _parts(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yield the sorted batch in parts. Each part touches about RESIDENT_BYTES, because hashes are uniform."""
        mapped = self._map()
        n_parts = 1 + sum(file.size_bytes for file in mapped) // RESIDENT_BYTES
        size = max(LEAST_PART, len(order) // n_parts + 1)
        for start in range(0, len(order), size):
            yield order[start : start + size]
            if n_parts > 1:  # mapping the pages of one part repeatedly would take longer than the lookups
                self._release(mapped)

    def _release(self, mapped: list[MappedArray]) -> None:
        for file in mapped:
            file.release()

    def _map(self) -> list[MappedArray]:
        counts = [] if self._counts is None else [self._counts]
        return [*self._index._files.values(), self._used, *counts]

    def _join_part(self, part: NDArray[np.int64], high: Words, low: Words, joined: _Joining) -> None:
        place, known = self._index._find(high, low)
        again = self._mark_used(place, known)
        joined.known[part] = known
        joined.again[part] = again
        joined.label[part] = _only(self._index._files["label"].array[place], known & ~again)
        if self._counts is not None:
            joined.person[part] = self._index._files["person"].array[place]

    def _mark_used(self, place: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Set the bits of the known rows, which are distinct, and return which of them were set before."""
        byte, bit = place >> 3, (1 << (place & 7)).astype(np.uint8)
        used = self._used.array
        again: NDArray[np.bool_] = ((used[byte] & bit) != 0) & known
        np.add.at(used, byte, _only(bit, known & ~again))  # these bits are 0, so the sum equals an or
        return again

    def _note(self, joined: _Joining) -> None:
        """Add the batch to the counts and the first places. Every batch takes the same steps."""
        row = np.arange(self._n_seen + 1, self._n_seen + 1 + len(joined.known))
        self.unknown += int((~joined.known).sum())
        self.again += int(joined.again.sum())
        self._first_unknown = min(self._first_unknown, int((row + NO_ROW * joined.known).min(initial=NO_ROW)))
        self._first_again = min(self._first_again, int((row + NO_ROW * ~joined.again).min(initial=NO_ROW)))
        self._n_seen += len(row)

    def _within_cap(self, person: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for each row among the first `max_rows_per_person` of its person, in the request's order."""
        if self._counts is None or self._cap is None:
            return np.ones(len(person), np.bool_)
        kept = np.empty(len(person), np.bool_)
        for part in self._parts(_by_person(person)):
            kept[part] = _count(self._counts.array, person[part]) < self._cap
        return kept


def _only(values: NDArray[Any], chosen: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the chosen values, and 0 for the others. It works on bits, because the time of a product of reals depends
    on them.
    """
    bits = values.view(f"u{values.itemsize}")
    only: NDArray[Any] = (bits & -chosen.astype(bits.dtype)).view(values.dtype)
    return only


def _by_person(person: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order that sorts rows by person, with the rows of one person in the order in which they came.

    The keys are shuffled first: the time to sort distinct numbers in random order reveals nothing about them.
    """
    keys = person.astype(np.uint64) << np.uint64(32) | np.arange(len(person), dtype=np.uint64)
    np.random.default_rng().shuffle(keys)
    keys.sort()
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _count(counts: NDArray[np.uint32], person: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of rows of its person before each row, and count these rows too. `person` is sorted."""
    row = np.arange(len(person))
    is_first = np.concatenate([[True], person[1:] != person[:-1]])
    earlier: NDArray[np.int64] = counts[person] + row - np.maximum.accumulate(row * is_first)
    np.add.at(counts, person, np.ones(len(person), counts.dtype))
    return earlier


@dataclass(frozen=True, repr=False, eq=False)
class _Joining:
    """A batch during its join, filled part by part."""

    known: NDArray[np.bool_]
    again: NDArray[np.bool_]
    label: NDArray[Any]
    person: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, label: str) -> _Joining:
        return cls(np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, label), np.zeros(n, np.int64))


# --- opening and building -----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Header:
    table: Built
    keys: IndexKeys

    def to_json(self) -> str:
        keys = {"ids": self.keys.ids.to_bytes().hex(), "persons": self.keys.persons.to_bytes().hex()}
        return json.dumps({"format": FORMAT, "table": asdict(self.table), "keys": keys}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Header:
        """Return the header of a text. Raise ValueError, KeyError or TypeError if the text has not the format of
        `to_json`.
        """
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        keys = (HashKeys.from_bytes(bytes.fromhex(content["keys"][name])) for name in ("ids", "persons"))
        return cls(Built(**content["table"]), IndexKeys(*keys))


def write_index(
    source: Source, directory: Path, vault: Vault = PLAIN, open_workers: OpenWorkers = in_this_process
) -> Written:
    """Build the index of a source in an empty directory.

    Args:
        open_workers: opener of the workers of the party's own cluster, if it has one; used for a table that is large
            enough.

    Raises:
        DataError: the table has an error.
        ComputeFailed: the workers cannot be reached, were lost, or were too slow.
    """
    if source.settings.label is None:
        raise ConfigError(f"{source.name}: a measurement server's dataset needs a label column")
    with reading(source, open_workers) as rows:
        split_id = rows.split_id() if source.settings.split else ""
        keys = IndexKeys.of_split(split_id) if split_id else IndexKeys.random()
        table, content_sha256 = build_files(rows, keys, directory)
        remarks = [READ_ALONE] if rows.read_alone(table.n_rows) else []
    positive = source.settings.positive
    if positive is not None and not MappedArray.open(directory / "label", table.label).array.any():
        # A remark to the server's operator only, and no refusal: a job may be waiting.
        remarks.append(without_positive(source.name, positive))
    table = replace(table, split_id=split_id)
    write_private(directory / HEADER, vault.seal(HEADER, Header(table, keys).to_json().encode()))
    return Written(table.n_rows, content_sha256, remarks=tuple(remarks), ids=lambda: _people_of(source))


def _people_of(source: Source) -> Iterator[Any]:
    """Yield the names of persons, or of rows where the dataset names no persons, as `pyarrow.StringArray`s."""
    for batch in source.batches(labels=False, features=False):
        yield batch.ids if batch.persons is None else batch.persons


def open_index(directory: Path, vault: Vault = PLAIN) -> LabelIndex:
    """Open an index. Raise DataError if it is incomplete, or has another format."""
    try:
        header = Header.from_json(vault.read(directory / HEADER))
        if _is_whole(directory, header.table):
            return LabelIndex(directory, header)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DataError(
        f"{directory} has no label index, or the index is damaged",
        hint="restore it from a backup, or publish the dataset again",
    )


def _is_whole(directory: Path, table: Built) -> bool:
    sizes = {name: table.n_rows * np.dtype(dtype).itemsize for name, dtype in table.dtypes().items()}
    return all((directory / name).stat().st_size == size for name, size in sizes.items())


def write_private(path: Path, content: bytes) -> None:
    with new_private(path) as file:
        file.write(content)
