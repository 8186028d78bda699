"""Snapshots: what jobs, releases and resumed trainings read of a party's datasets.

A snapshot is numbered, never changes, and lies in a directory of its own beside the party's database. Its owner makes
the next one when it chooses to, whether or not anything changed; so when it is made tells others nothing of the rows.
All that others see of it is a random id: even a keyed digest would tell that a label changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from blindfit.algorithms.columns.record import MISSING_WORDS, Kind, TableColumn, TableRecord, made
from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.algorithms.statistics.score_leaks import RowContent
from blindfit.parties.data.encoding import AsWritten, ByModel, rule_of
from blindfit.parties.data.origin import Origin, Tolerates, nothing, refuse_missing_names
from blindfit.parties.data.settings import BATCH_ROWS, DatasetSettings
from blindfit.parties.data.source import Source, fingerprint_of, kinds_of, open_source
from blindfit.parties.data.urls import without_password
from blindfit.parties.files.private_files import make_private
from blindfit.parties.settings import PartyDatasetSettings, PartySettings
from blindfit.parties.snapshots.directories import Unfinished, only_publisher, remove_unfinished, unknown_in
from blindfit.parties.snapshots.rows_file import FILE, RowsFile, Written, write_rows
from blindfit.parties.store.store import SnapshotRow, Store, stamp

log = structlog.get_logger(__name__)

Writer = Callable[[Source, Path], Written]
COLUMNS = ("url", "id", "person", "label", "label_kind", "split", "features", "quasi_identifiers", "missing")
ENCODED = ("positive", "categories", "dates")  # done when a snapshot is made
SERVES: dict[Kind, tuple[Kind, ...]] = {  # what a model wants -> kinds of a snapshot's column that serve
    "number": ("number", "boolean"),
    "boolean": ("boolean", "number"),
    "date": ("date",),
    "category": ("category",),
}
DESCRIBE: dict[Kind, str] = {
    "number": "take it out of `categories` and `dates`",
    "boolean": "take it out of `categories` and `dates`",
    "date": "name it in `dates`; the table must hold dates there",
    "category": "name it in `categories`",
}


@dataclass(frozen=True, repr=False)
class Snapshot:
    """A published dataset.

    Args:
        batch_rows: that are held in memory at a time, as the party's file has it now.
        remarks: on how it was made, where that was just now.
    """

    row: SnapshotRow
    directory: Path
    batch_rows: int
    remarks: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def size_bytes(self) -> int:
        """On the disk."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    def content(self, columns: Sequence[str]) -> RowContent:
        """What its rows hold in these features."""
        return content_of(self.row, columns)

    def source(self) -> Source:
        """Return its rows with all columns that it was published with; of a party that keeps rows.

        Raises:
            DataError: some of these columns cannot be read.
        """
        meaning = json.loads(self.row.meaning)
        for name, problem in meaning.get("unusable", {}).items():
            raise _unusable(self.row, name, problem)
        settings = {name: meaning[name] for name in COLUMNS if meaning.get(name) is not None}
        columns = tuple(meaning["columns"])
        chosen = DatasetSettings(**{**settings, "features": columns, "batch_rows": self.batch_rows})
        return Source.of(self._file, chosen, self.row.dataset, record_of(self.row), columns, AsWritten())

    def scored_by(
        self, record: TableRecord, columns: Sequence[str], means: Mapping[str, float], *, labels: bool = False
    ) -> Source:
        """Return its rows as a model reads them: the model's columns, converted by its record. No row is read here.

        Args:
            columns: the model's, in order.
            means: by the model's columns, what stands for a missing value where the dataset lets values be missing.
            labels: whether the dataset's label is read too.

        Raises:
            DataError: it lacks a column, has it in another kind, or cannot read it.
        """
        meaning, there, file = json.loads(self.row.meaning), record_of(self.row), self._file
        kept = ("url", "id", "missing", *(("label", "label_kind") if labels else ()))
        settings = {name: meaning[name] for name in kept if meaning.get(name) is not None}
        for name in (settings["id"], *record.names, *filter(None, [settings.get("label")])):
            if name in (problems := meaning.get("unusable", {})):
                raise _unusable(self.row, name, problems[name])
        check_kinds(record, {column.name: column.kind for column in there.columns}, file.origin)
        if older := [c.name for c in record.columns if c.kind == "category" and c.name not in file.names]:
            raise file.origin.error(
                "it was made by an older version, and keeps no texts of this column",
                column=older[0],
                hint="publish the dataset again",
            )
        chosen = DatasetSettings(**{**settings, "features": tuple(columns), "batch_rows": self.batch_rows})
        return Source.of(file, chosen, self.row.dataset, record.with_fill(means), columns, ByModel(record))

    @property
    def _file(self) -> RowsFile:
        return RowsFile(self.directory / FILE, Origin(self.row.dataset, f"snapshot {self.row.number}"))


def check_kinds(record: TableRecord, there: Mapping[str, Kind], origin: Origin) -> None:
    """Raises DataError: the table lacks a column of a model's record, or has it in another kind."""
    refuse_missing_names(record.names, list(there), origin)
    for column in record.columns:
        kind = there[column.name]
        if kind not in SERVES[column.kind]:
            problem = f"the model reads it as a {column.kind}, and the dataset describes a {kind}"
            raise origin.error(problem, column=column.name, hint=DESCRIBE[column.kind])


def _unusable(row: SnapshotRow, column: str, problem: str) -> DataError:
    hint = f"correct it, and publish the dataset again: snapshot {row.number} has no column {column}"
    return DataError(problem, hint=hint)


class Snapshots:
    """Of all datasets of one party.

    Args:
        write: what its role keeps of a dataset.
    """

    def __init__(self, settings: PartySettings, base_dir: Path, store: Store, write: Writer = write_rows) -> None:
        self._settings, self._base_dir, self._store, self._write = settings, base_dir, store, write
        self._data_dir = base_dir / settings.data_dir
        self._directory = self._data_dir / "snapshots"
        # When these settings were read; the newest of each dataset, by its number.
        self._then = {row.dataset: row.number for row in store.reader().snapshots()}

    # --- which there are

    def current(self, dataset: str) -> Snapshot | None:
        """The newest; None where there is none of the dataset as these settings describe it.

        Raises:
            ConfigError: another process has published it by later ones.
        """
        rows = [row for row in self._store.reader().snapshots(dataset) if row.removed is None]
        if not rows:
            return None
        if self._is_of(rows[-1], self._dataset(dataset)):
            return self._at(rows[-1])
        if rows[-1].number > self._then.get(dataset, 0):  # by a process that read the file later: not to be undone
            raise ConfigError(
                f"datasets.{dataset} was published as the party's file describes it now, and this process has read the "
                "file before that",
                hint="start the party again",
            )
        return None

    def all_of(self, dataset: str) -> list[Snapshot]:
        """Those whose files are there, the oldest first."""
        return [self._at(row) for row in self._store.reader().snapshots(dataset) if row.removed is None]

    def newest(self, dataset: str, needed: Sequence[str] | None = None) -> Snapshot:
        """Return the current one; the first use of a dataset publishes it.

        Args:
            needed: the table's columns that this use needs; None: all that the dataset names.

        Raises:
            DataError, ConfigError: what is wrong with the dataset, for the party's own operator.
        """
        return self.current(dataset) or self.published(dataset, needed)

    def published(self, dataset: str, needed: Sequence[str] | None = None) -> Snapshot:
        """Make the next one by the party itself, whose log says so."""
        made = self.publish(dataset, needed=needed)
        log.info("dataset is published", dataset=dataset, snapshot=made.row.number, rows=made.row.rows)
        for caution in self.cautions(made):
            log.warning(caution, dataset=dataset)
        return made

    def cautions(self, made: Snapshot) -> Iterator[str]:
        """What its operator should know of a new snapshot: how it was made, what scores could tell of it, and which
        counts it begins."""
        yield from made.remarks
        for name, problem in json.loads(made.row.meaning).get("unusable", {}).items():
            yield f"a job that needs the column {name or '(without a name)'} is refused: {problem}"
        known, reader = self._store.reader().snapshots(made.row.dataset), self._store.reader()
        if self._settings.role == "passive" and not self._dataset(made.row.dataset).scores_may_be_solved_for:
            yield from self._scores(made)
        if any(reader.label_layouts(row.id) for row in known[:-1]):
            yield "label bits count from 0: labels that have not changed can be given away once more"
        if any(reader.scored_rows(row.id) for row in known[:-1]):
            yield "models of a row count from 0: rows that have not changed can be scored once more"
        if any(reader.linkages(row.id) for row in known[:-1]):
            yield "linkages count from 0: whether enough rows match can be asked once more, also by another number"

    def _scores(self, made: Snapshot) -> Iterator[str]:
        content, chosen = made.content(json.loads(made.row.meaning)["columns"]), self._settings.policy.models_per_row
        if weakness := content.weakness():
            yield f"its rows are scored only with scores_may_be_solved_for = true: {weakness}"
        elif chosen > content.most_models:
            yield f"its columns allow {content.most_models} models of a row, not models_per_row = {chosen}"

    def of_session(self, session: str) -> Snapshot:
        """What a session read.

        Raises:
            DataError: it read nothing here, or the snapshot is gone.
        """
        found = self._row_of(session)
        if found is None or found.removed is not None:
            raise DataError(f"the snapshot that {session} read is not here any more", hint="train anew")
        return self._at(found)

    def _row_of(self, session: str) -> SnapshotRow | None:
        wanted = self._store.reader().session_snapshot(session)
        return next((row for row in self._store.reader().snapshots() if row.id == wanted), None)

    def content_of_session(self, session: str, columns: Sequence[str]) -> RowContent:
        """What the rows that a session read held in these features; their files may be gone.

        Raises:
            DataError: it read nothing here.
        """
        found = self._row_of(session)
        if found is None:
            raise DataError(f"the party's database does not know what {session} read", hint="train anew")
        return content_of(found, columns)

    def source(self, dataset: str) -> Source:
        """What a job would read: the current snapshot, or before its first use the source, of which no row is read."""
        found = self.current(dataset)
        return found.source() if found else open_source(self._dataset(dataset), self._base_dir, dataset)

    def check_scored(self, dataset: str, record: TableRecord, columns: Sequence[str]) -> None:
        """Check that a model can read a dataset, as far as that can be said without its rows.

        Raises:
            DataError: it lacks a column, has it in another kind, or cannot read it.
        """
        if (found := self.current(dataset)) is not None:
            found.scored_by(record, columns, {})
        else:
            settings = self._dataset(dataset)
            there = kinds_of(settings, self._base_dir, dataset)
            check_kinds(record, there, Origin(dataset, without_password(settings.url)))

    def changed_since(self, snapshot: Snapshot) -> bool | None:
        """Whether the source has changed; None: a database cannot tell. For the party's own operator."""
        if snapshot.row.source is None:
            return None
        try:
            found = fingerprint_of(self._dataset(snapshot.row.dataset), self._base_dir, snapshot.row.dataset)
        except DataError:
            return True
        return found != snapshot.row.source

    def overdue(self, dataset: str) -> bool:
        """Whether its owner's schedule asks for the next one, changed or not."""
        every = self._dataset(dataset).publish_every_h
        if every is None or (current := self.current(dataset)) is None:
            return False
        return datetime.now(UTC) - datetime.fromisoformat(current.row.made) >= timedelta(hours=every)

    def tell_of_changes(self) -> None:
        """The operator alone, in the log."""
        for dataset in self._settings.datasets:
            current = self.current(dataset)
            if current is not None and self.changed_since(current):
                log.warning("dataset has changed: publish it", dataset=dataset, snapshot=current.row.number)

    def unknown(self) -> Iterator[str]:
        """Directories with a snapshot's name that the party's database does not know; for its operator."""
        yield from unknown_in(self._directory, self._store.reader().snapshots())

    def settle(self) -> None:
        """At a party's start: what a publisher that was killed left goes, and what is unknown is told, in the log."""
        try:
            if self._directory.is_dir():
                with only_publisher(self._data_dir, "what is unfinished", lambda _: None, most_wait_s=0.0):
                    self._remove_unfinished()
        except OSError as error:
            log.warning("what an unfinished publish left cannot be removed", where=str(error.filename or ""))
        except DataError:  # another process publishes, and has removed it
            log.info("another process publishes")
        for unknown in self.unknown():
            log.warning(unknown)

    # --- making them

    def publish(
        self,
        dataset: str,
        *,
        needed: Sequence[str] | None = None,
        other_people: bool = False,
        on_waiting: Callable[[str], None] | None = None,
    ) -> Snapshot:
        """Make the next one; nothing of it is there unless all of it is.

        A column that cannot be read is noted in the snapshot where nobody needs it: a prediction needs the columns of
        its model, and whoever publishes again needs those that the snapshot before can read.

        Args:
            needed: the table's columns that must be readable; None: all that the snapshot before can read.
            other_people: the operator's word that its people are none of another population.
            on_waiting: is told what is waited for, where another one is being made; by default the log is.

        Raises:
            DataError: what is wrong with the rows, or the disk; or another one is being made, for too long.
            ConfigError: the rows are known under another population.
        """
        settings = self._dataset(dataset)
        source = open_source(settings, self._base_dir, dataset, self._tolerance(dataset, needed))
        fingerprint = source.fingerprint()  # before the rows are read: a file that changes meanwhile is seen to differ
        try:
            make_private(self._directory)
            with only_publisher(self._data_dir, dataset, on_waiting or log.info):
                self._remove_unfinished()
                try:
                    new = Unfinished.begin(self._directory)
                    written = self._write(source, new.within)
                    new.give_name()
                    return self._enter(dataset, settings, source, fingerprint, new.id, written, other_people)
                finally:
                    with suppress(OSError, BlindfitError):  # else the next one, or the next start, does it
                        self._remove_unfinished()
        except OSError as error:
            raise DataError(
                f"{dataset}: its snapshot in {self._directory} cannot be written: {error.strerror or error}",
                hint="is the disk full, or may this user not write there?",
            ) from error

    def _tolerance(self, dataset: str, needed: Sequence[str] | None) -> Tolerates:
        if needed is not None:
            kept = {*needed, self._dataset(dataset).id}
            return lambda column: column not in kept
        before = self._store.reader().snapshots(dataset)
        unusable = json.loads(before[-1].meaning).get("unusable", {}) if before else {}
        return unusable.__contains__ if unusable else nothing

    def remove_older(self, dataset: str) -> list[tuple[Snapshot, int]]:
        """Removes the files of all but the newest; what was charged for them stays in the ledger.

        Returns:
            Each with the bytes that it took.
        """
        removed = []
        for snapshot in self.all_of(dataset)[:-1]:
            removed.append((snapshot, snapshot.size_bytes))
            with self._store.transaction() as transaction:
                transaction.remove_snapshot(snapshot.id, stamp())
            shutil.rmtree(snapshot.directory, ignore_errors=True)
        return removed

    def _remove_unfinished(self) -> None:
        remove_unfinished(self._directory, self._store.reader().snapshots())

    def _enter(
        self,
        dataset: str,
        settings: PartyDatasetSettings,
        source: Source,
        fingerprint: str | None,
        new: str,
        written: Written,
        other_people: bool,
    ) -> Snapshot:
        with self._store.transaction() as transaction:
            known = transaction.snapshots()
            row = SnapshotRow(
                id=new,
                dataset=dataset,
                number=1 + max((row.number for row in known if row.dataset == dataset), default=0),
                population=settings.population or "",
                meaning=json.dumps(
                    {
                        **_meaning(settings),
                        **_found(source, written),
                        "distinct": dict(written.distinct),
                    }
                ),
                source=fingerprint,
                content_sha256=written.content_sha256,
                rows=written.rows,
                other_people=int(other_people),
                made=stamp(),
            )
            _refuse_another_population(row, known)
            transaction.add_snapshot(row)
        return replace(self._at(row), remarks=written.remarks)

    def _dataset(self, name: str) -> PartyDatasetSettings:
        return self._settings.datasets[name]

    def _at(self, row: SnapshotRow) -> Snapshot:
        described = self._settings.datasets.get(row.dataset)  # none where it was taken out of the file since
        return Snapshot(row, self._directory / row.id, described.batch_rows if described else BATCH_ROWS)

    def _is_of(self, row: SnapshotRow, settings: PartyDatasetSettings) -> bool:
        """An operator who describes a dataset in other words has another one, which its first use publishes."""
        meaning = json.loads(row.meaning)
        return all(meaning.get(name) == value for name, value in _meaning(settings).items())


def content_of(row: SnapshotRow, columns: Sequence[str]) -> RowContent:
    """Raises DataError: it has not all of these features."""
    distinct = json.loads(row.meaning)["distinct"]
    if missing := [name for name in columns if name not in distinct]:
        raise DataError(f"snapshot {row.number} of {row.dataset} has no feature {', '.join(missing)}")
    record = record_of(row)
    counts: dict[str, int] = {}
    for name in columns:  # the columns of a category are one: a row has one level, or none of them
        column = record.behind[name]
        if record.level_of(name) is None:
            counts[column.name] = distinct[name]
        elif column.kind == "category" and distinct[name] > 1:
            counts[column.name] = counts.get(column.name, 1) + 1
    return RowContent.of(list(counts.values()))


def record_of(row: SnapshotRow) -> TableRecord:
    """Return what its columns were made of, without means."""
    meaning = json.loads(row.meaning)
    levels, dates = meaning.get("levels", {}), meaning.get("dates") or ()
    booleans, reference = meaning.get("booleans", ()), meaning.get("reference", {})
    are_found = not isinstance(meaning.get("categories"), Mapping)  # then every level of a row has a column
    columns = []
    for name in _table_columns(meaning):
        rule = rule_of(meaning.get("missing", ""), lacks_values=name in meaning.get("indicators", ()))
        if name in levels:
            others = [] if are_found else reference.get(name)
            met = None if others is None else tuple(others)
            columns.append(TableColumn(name, "category", tuple(levels[name]), met, rule, declared=not are_found))
        else:
            kind: Kind = "date" if name in dates else "boolean" if name in booleans else "number"
            columns.append(TableColumn(name, kind, missing=rule))
    return TableRecord(tuple(columns), missing_words=tuple(meaning.get("missing_words") or MISSING_WORDS))


def _table_columns(meaning: Mapping[str, Any]) -> list[str]:
    """The table's columns that a snapshot's come from, in order."""
    levels, indicators = meaning.get("levels", {}), meaning.get("indicators", ())
    of_made = {made(name, level): name for name in levels for level in levels[name]}
    of_made |= {made(name, ""): name for name in indicators}
    return list(dict.fromkeys(of_made.get(name, name) for name in meaning.get("columns", meaning["distinct"])))


def _found(source: Source, written: Written) -> dict[str, Any]:
    """What the rows, and not the party's file, say of the columns."""
    usable = [column for column in source.record.columns if column.name not in written.problems]
    return {
        "columns": [name for name in source.feature_names if source.record.behind[name] in usable],
        "levels": {column.name: column.levels for column in usable if column.kind == "category"},
        "reference": {name: written.reference.get(name) for name in source.record.names if name in written.reference},
        "booleans": [column.name for column in usable if column.kind == "boolean"],
        "indicators": [column.name for column in usable if column.missing == "indicator"],
        "unusable": {name: str(problem) for name, problem in written.problems.items()},
    }


def _meaning(settings: PartyDatasetSettings) -> dict[str, Any]:
    chosen = settings.model_dump(mode="json", include={*COLUMNS, *ENCODED, "population"})
    words = None if settings.missing_words == MISSING_WORDS else list(settings.missing_words)
    return {**chosen, "missing_words": words, "url": without_password(settings.url)}


def _refuse_another_population(row: SnapshotRow, known: list[SnapshotRow]) -> None:
    """Two budgets for the same people would be twice the budget."""
    others = [
        k for k in known if k.population and k.population != row.population
        and (k.dataset == row.dataset or k.content_sha256 == row.content_sha256)
    ]  # fmt: skip
    if not row.population or not others or row.other_people:
        return
    if any(k.other_people and (k.dataset, k.population) == (row.dataset, row.population) for k in known):
        return
    other = others[-1]
    raise ConfigError(
        f"datasets.{row.dataset}: its rows are known under the population {other.population}, as snapshot "
        f"{other.number} of {other.dataset}: people who are in two populations have two budgets",
        hint=f'name population = "{other.population}"; or, if these are other people, publish with --other-people',
    )
