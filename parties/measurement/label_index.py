"""The measurement server's join from ids to labels, on disk.

A table of labels is hashed, sorted and written once (label_index_build.py). A request then joins its ids
batch by batch against memory-mapped files, and memory holds a few megabytes, whatever the table's size: the
pages go back to the system after each part of a batch.

A request uses a row of the table at most once, and at most `max_rows_per_person` rows of a person: that is
what bounds the sensitivity of a sum over its rows. Which ids a request names, and in which order, decides
what is kept; a label never does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, DataError, DuplicateId, UnknownId
from blindfit.parties.data.id_hash import HashKeys, Words, hash_texts
from blindfit.parties.data.source import Source
from blindfit.parties.files.private_files import make_private
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.measurement.label_index_build import Built, IndexKeys, build_files
from blindfit.parties.measurement.mapped import MappedArray

FORMAT = 1
HEADER = "header.json"
RESIDENT_BYTES = 8 << 20  # of the index, mapped at a time
BLOCK_ROWS = 1 << 16
LEAST_PART = 128  # lookups between two releases; each may map a few neighbouring 64 KiB

Unknown = Literal["refuse", "zero"]


@dataclass(frozen=True, repr=False, eq=False)
class JoinedBatch:
    """The rows of a batch, in its order.

    Attributes:
        labels: (n,), of the index's type; 0 where `kept` is false or the id is unknown.
        kept: bool (n,); false for a person's rows beyond the cap.
        unknown: How many ids the table does not have. Under unknown="zero" this depends on who is in the
            table, so it must not leave the server.
    """

    labels: NDArray[Any]
    kept: NDArray[np.bool_]
    unknown: int


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
        """None where the dataset has no person column."""
        return self._header.table.n_persons

    @property
    def version(self) -> str:
        """A digest of the content: the same rows in another order have the same version."""
        return self._header.table.dataset_version

    def new_request(self, max_rows_per_person: int | None, unknown: Unknown) -> JoinState:
        """The state of one request; close it when the request ends."""
        if max_rows_per_person is not None and max_rows_per_person < 1:
            raise ConfigError("max_rows_per_person must be at least 1")
        if max_rows_per_person is not None and self.n_persons is None:
            raise ConfigError("max_rows_per_person needs a person column, which this dataset does not declare")
        if unknown == "zero" and self.n_persons is not None:
            raise ConfigError(
                'unknown_rows = "zero" cannot be used with a person column: a person whose rows are absent '
                "from the table cannot be capped, so which of her rows are kept could depend on her labels, "
                "and the sensitivity would double",
                hint='list every row in the table, with its label 0 or 1, and set unknown_rows = "refuse"',
            )
        return JoinState(self, max_rows_per_person, unknown)

    def labels_in_order(self, max_rows_per_person: int | None) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
        """All labels, block by block, and which of them are among the first so many of their person.

        The order is that of secret hashes of the ids: no label has a bearing on which rows of a person come first.
        """
        with self.new_request(max_rows_per_person, "refuse") as state:
            for start in range(0, self.n_rows, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                labels = self._files["label"].array[block].copy()
                if max_rows_per_person is None:
                    yield labels, np.ones(len(labels), np.bool_)
                else:
                    yield labels, state._within_cap(self._files["person"].array[block].astype(np.int64))
                for file in self._files.values():
                    file.release()

    def in_order(self, field: Literal["high", "low"]) -> Iterator[NDArray[Any]]:
        """One of the index's columns, block by block, as it was opened, whatever is at its path by now."""
        file = self._files[field]
        for start in range(0, self.n_rows, BLOCK_ROWS):
            yield file.array[start : start + BLOCK_ROWS].copy()
            file.release()

    def frozen(self, label: str) -> Header:
        """The header of a copy with labels of another type, and without persons."""
        table = replace(self._header.table, n_persons=None, label=label)
        return replace(self._header, table=table, source=None)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> LabelIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, high: Words, low: Words) -> NDArray[np.int64]:
        """The place of each hash in the table, -1 where it is unknown. `high` is sorted."""
        table_high, table_low = self._files["high"].array, self._files["low"].array
        candidate = np.searchsorted(table_high, high)
        place = np.full(len(high), -1)
        for step in range(self._header.table.longest_run):
            at = np.minimum(candidate + step, self.n_rows - 1)
            found = (table_high[at] == high) & (table_low[at] == low)
            place[found] = at[found]
        return place


class JoinState:
    """What one request has used so far: a bit for each row of the table, a count for each person."""

    def __init__(self, index: LabelIndex, max_rows_per_person: int | None, unknown: Unknown) -> None:
        self._index, self._cap, self._unknown = index, max_rows_per_person, unknown
        self._n_seen = 0
        self._used = MappedArray.temporary((index.n_rows + 7) // 8, "u1", index.directory)
        self._counts: MappedArray | None = None
        if max_rows_per_person is not None and index.n_persons is not None:
            self._counts = MappedArray.temporary(index.n_persons, "<u4", index.directory)

    def join(self, ids: list[str] | pa.Array) -> JoinedBatch:
        """Joins the next rows of the request. After an error the request is over.

        Raises:
            DuplicateId: An id was used before in this request. Under unknown="zero" this is said only of two
                equal ids in one batch, known or not: to say it of an id of an earlier batch would tell that
                the table has it. Such an id counts as label 0, like an unknown one.
            UnknownId: Under unknown="refuse".
        """
        high, low = hash_texts(ids, self._index._header.keys.ids)
        order = np.argsort(high)
        if (np.diff(high[order]) == 0).any():
            order = np.lexsort((low, high))
            self._refuse_twins(high[order], low[order], order)
        joined = _Joining.empty(len(order), self._index._header.table.label)
        for part in self._parts(order):
            self._join_part(part, high[part], low[part], joined)
        self._refuse(joined)
        kept = self._within_cap(joined.person)
        self._n_seen += len(order)
        joined.label[~kept] = 0
        return JoinedBatch(joined.label, kept, int((~joined.known).sum()))

    def close(self) -> None:
        self._used.close()
        if self._counts is not None:
            self._counts.close()

    def __enter__(self) -> JoinState:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_twins(self, high: Words, low: Words, order: NDArray[np.int64]) -> None:
        """lexsort is stable: of two equal ids the second in order is the later row."""
        twins = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
        if twins.size:
            raise DuplicateId(self._n_seen + 1 + int(order[twins + 1].min()))

    def _parts(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The sorted batch in parts: as hashes are uniform, each touches about RESIDENT_BYTES."""
        mapped = self._mapped()
        n_parts = 1 + sum(file.size_bytes for file in mapped) // RESIDENT_BYTES
        size = max(LEAST_PART, len(order) // n_parts + 1)
        for start in range(0, len(order), size):
            yield order[start : start + size]
            for file in mapped:
                file.release()

    def _mapped(self) -> list[MappedArray]:
        counts = [] if self._counts is None else [self._counts]
        return [*self._index._files.values(), self._used, *counts]

    def _join_part(self, part: NDArray[np.int64], high: Words, low: Words, joined: _Joining) -> None:
        place = self._index._find(high, low)
        known = place >= 0
        rows, place = part[known], place[known]
        again = self._mark_used(place)
        joined.known[rows] = True
        joined.again[rows] = again
        joined.label[rows] = np.where(again, 0, self._index._files["label"].array[place])
        if self._counts is not None:
            joined.person[rows] = self._index._files["person"].array[place]

    def _mark_used(self, place: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Sets the bits of these rows, sorted and distinct, and returns which were set before."""
        byte, bit = place >> 3, (1 << (place & 7)).astype(np.uint8)
        used = self._used.array
        again: NDArray[np.bool_] = (used[byte] & bit) != 0
        if len(byte):
            starts = np.flatnonzero(np.concatenate([[True], byte[1:] != byte[:-1]]))
            used[byte[starts]] |= np.bitwise_or.reduceat(bit, starts)
        return again

    def _refuse(self, joined: _Joining) -> None:
        if self._unknown == "zero":
            return
        if joined.again.any():
            raise DuplicateId(self._n_seen + 1 + int(np.argmax(joined.again)))
        if not joined.known.all():
            first = self._n_seen + 1 + int(np.argmin(joined.known))
            raise UnknownId(first, int((~joined.known).sum()))

    def _within_cap(self, person: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row is among the first `max_rows_per_person` of its person, in the request's order."""
        if self._counts is None or self._cap is None:
            return np.ones(len(person), np.bool_)
        kept = np.empty(len(person), np.bool_)
        by_person = np.argsort(person, kind="stable")
        for part in self._parts(by_person):
            kept[part] = _count(self._counts.array, person[part]) < self._cap
        return kept


def _count(counts: NDArray[np.uint32], person: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of its person came before each row; counts these as well. `person` is sorted."""
    distinct, start, size = np.unique(person, return_index=True, return_counts=True)
    before = counts[distinct].astype(np.int64)
    counts[distinct] += size.astype(np.uint32)
    rank = np.arange(len(person)) - np.repeat(start, size)
    earlier: NDArray[np.int64] = np.repeat(before, size) + rank
    return earlier


@dataclass(frozen=True, repr=False, eq=False)
class _Joining:
    """A batch while it is joined, filled part by part."""

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
    source: str | None  # the fingerprint of what the index was built from; None for databases

    def to_json(self) -> str:
        keys = {"ids": self.keys.ids.to_bytes().hex(), "persons": self.keys.persons.to_bytes().hex()}
        return json.dumps(
            {"format": FORMAT, "table": asdict(self.table), "source": self.source, "keys": keys}, indent=1
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Header:
        """Raises ValueError, KeyError or TypeError where the text is not `to_json` of this format."""
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        keys = (HashKeys.from_bytes(bytes.fromhex(content["keys"][name])) for name in ("ids", "persons"))
        return cls(Built(**content["table"]), IndexKeys(*keys), content["source"])


def open_or_build(source: Source, directory: Path, vault: Vault = PLAIN) -> LabelIndex:
    """The index of a source in `directory`, which is made, or made anew when the source has changed.

    A database is indexed anew every time, since it cannot tell whether it changed. Two processes that open
    the same directory wait for each other. Nothing half-built is ever at `directory`.

    Raises:
        DataError: The table is wrong in any way, or the index cannot be written.
    """
    if source.settings.label is None:
        raise ConfigError(f"{source.name}: a measurement server's dataset needs a label column")
    try:
        make_private(directory.parent)
        with _only_process(directory.parent):
            _remove_leftovers(directory)
            return _reuse(source, directory, vault) or _build(source, directory, vault)
    except OSError as error:
        raise DataError(
            f"{source.name}: the label index in {directory} cannot be written: {error.strerror or error}",
            hint="is the disk full, or may this user not write there?",
        ) from error


def _reuse(source: Source, directory: Path, vault: Vault) -> LabelIndex | None:
    """An index of the right format that was built from this very source, or None."""
    try:
        header = Header.from_json(vault.read(directory / HEADER))
        if header.source is None or header.source != _fingerprint(source):
            return None
        if not _is_whole(directory, header.table):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return LabelIndex(directory, header)


def _is_whole(directory: Path, table: Built) -> bool:
    sizes = {name: table.n_rows * np.dtype(dtype).itemsize for name, dtype in table.dtypes().items()}
    return all((directory / name).stat().st_size == size for name, size in sizes.items())


def _fingerprint(source: Source) -> str | None:
    """What the index depends on: the file as it is now, and the meaning of its columns."""
    content = source.fingerprint()
    if content is None:
        return None
    settings = source.settings
    return json.dumps([content, settings.id, settings.person, settings.label, settings.label_kind])


def _build(source: Source, directory: Path, vault: Vault) -> LabelIndex:
    building = Path(tempfile.mkdtemp(prefix=f".{directory.name}.building-", dir=directory.parent))  # mode 0700
    try:
        # Taken before the rows are read: a file that changes meanwhile is seen to differ at the next start.
        fingerprint, keys = _fingerprint(source), IndexKeys.random()
        header = Header(build_files(source, keys, building), keys, fingerprint)
        write_private(building / HEADER, vault.sealed(HEADER, header.to_json().encode()))
        _put_in_place(building, directory)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return LabelIndex(directory, header)


def write_private(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(building: Path, directory: Path) -> None:
    """A process that still reads the old index keeps its files until it closes them."""
    if directory.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{directory.name}.old-", dir=directory.parent))
        directory.rename(old / "index")
        building.rename(directory)
        shutil.rmtree(old)
    else:
        building.rename(directory)


def _remove_leftovers(directory: Path) -> None:
    """What a process that was killed while building left behind."""
    for kind in ("building", "old"):
        for path in directory.parent.glob(f".{directory.name}.{kind}-*"):
            shutil.rmtree(path)


@contextmanager
def _only_process(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
