"""Snapshots of a party's datasets, which jobs, releases and resumed trainings read.

A snapshot is numbered, never changes, and lies in a directory of its own next to the party's database. Its owner makes
the next one at any time, after a change or without a change; so the time of a snapshot reveals nothing about the rows.
Other parties see only a random id of it: even a keyed digest would reveal that a label changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import structlog

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError, PolicyRefused
from blindfit.parties.data.opening import fingerprint_of, open_source
from blindfit.parties.data.origin import Origin, Tolerates, nothing
from blindfit.parties.data.settings import BATCH_ROWS, PartyDatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.files.private_files import make_private
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.carried import carry_account
from blindfit.parties.snapshots.directories import Unfinished, find_unknown, only_publisher, remove_unfinished
from blindfit.parties.snapshots.people import FILE as PEOPLE
from blindfit.parties.snapshots.people import Digests, PeopleKey, add_people, write_digests
from blindfit.parties.snapshots.populations import (
    public_copy,
    refuse_another_population,
    refuse_people_of_another,
    refuse_private_rows,
    schedule_waits,
    warn_of_two_accounts,
    why_it_waits,
    why_public_waits,
)
from blindfit.parties.snapshots.rows_file import FILE as ROWS
from blindfit.parties.snapshots.rows_file import RowsFile, Written, write_rows
from blindfit.parties.snapshots.scored import are_too_weak, models_declared, refuse_weak_rows
from blindfit.parties.snapshots.snapshot import DIGEST, Snapshot, meaning_of
from blindfit.parties.store.database import Store, stamp
from blindfit.parties.store.snapshots import SnapshotRow
from blindfit.parties.work.ending import describe_error

log = structlog.get_logger(__name__)

Writer = Callable[[Source, Path], Written]


class Snapshots:
    """The snapshots of all datasets of one party.

    Args:
        write: function that writes the part of a dataset that the party's role keeps.
    """

    def __init__(self, settings: PartySettings, base_dir: Path, store: Store, write: Writer = write_rows) -> None:
        self._settings, self._base_dir, self._store, self._write = settings, base_dir, store, write
        self._data_dir = base_dir / settings.data_dir
        self._directory = self._data_dir / "snapshots"
        # Number of each dataset's newest snapshot at the time when these settings were read.
        self._then = {row.dataset: row.number for row in store.reader().snapshots()}

    # --- the present snapshots

    def current(self, dataset: str) -> Snapshot | None:
        """Return the newest snapshot; None if these settings describe a dataset that has no snapshot.

        Raises:
            ConfigError: another process has published the dataset by later settings.
        """
        rows = [row for row in self._store.reader().snapshots(dataset) if row.removed is None]
        if not rows:
            return None
        if self._is_of(rows[-1], self._dataset(dataset)):
            return self._at(rows[-1])
        if rows[-1].number > self._then.get(dataset, 0):  # by a process that read the file later: it must stay
            raise ConfigError(
                f"datasets.{dataset} was published by a newer version of the party's file than this process has read",
                hint="start the party again",
            )
        return None

    def names_published(self) -> Iterator[str]:
        """Yield the datasets that have a current snapshot."""
        for dataset in self._settings.datasets:
            with suppress(ConfigError):  # this process must be started again before it reads the dataset
                if self.current(dataset) is not None:
                    yield dataset

    def all_of(self, dataset: str) -> list[Snapshot]:
        """Return the snapshots whose files are there, the oldest first."""
        return [self._at(row) for row in self._store.reader().snapshots(dataset) if row.removed is None]

    def require_current(self, dataset: str) -> Snapshot:
        """Return the current snapshot, which jobs read. A job makes no snapshot: a refusal could reveal what rows hold.

        Raises:
            PolicyRefused: there is no current snapshot.
            ConfigError: as in `current`.
        """
        found = self.current(dataset)
        if found is None:
            raise PolicyRefused(party=self._settings.name, field="dataset", reason=not_published(dataset))
        self._recognise(found)
        return found

    def _recognise(self, snapshot: Snapshot) -> None:
        """Add the people of a snapshot that an older version made without digests."""
        rows = snapshot.directory / ROWS
        if (snapshot.directory / PEOPLE).exists() or not rows.exists():  # a measurement server keeps no ids
            return
        meaning = json.loads(snapshot.row.meaning)
        ids = RowsFile(rows, Origin(snapshot.row.dataset, f"snapshot {snapshot.row.number}")).ids(meaning["id"])
        digests = self._people_key.digests_of(ids)
        with self._store.transaction() as transaction:
            add_people(transaction, snapshot.row.population, meaning.get("label"), digests)
        with suppress(ConfigError):  # another process did so at the same moment, with the same result
            write_digests(snapshot.directory, digests)

    def cautions(self, made: Snapshot) -> Iterator[str]:
        """Yield remarks for the operator about a new snapshot: how it was made, and what scores could reveal of it."""
        yield from made.remarks
        dataset = made.row.dataset
        if self._dataset(dataset).snapshot_every_h is not None and self.waits_for_operator(dataset):
            yield schedule_waits(self._settings, dataset)
        for name, problem in json.loads(made.row.meaning).get("unusable", {}).items():
            yield f"a job that needs the column {name or '(without a name)'} is refused: {problem}"
        problem = are_too_weak(made.row, self._store.reader().snapshots(), self._settings)
        if problem is not None:  # the schedule has published it
            yield f"{problem.message}; {problem.hint}"
        if copy := public_copy(made.row, self._store.reader().snapshots(), self._settings):
            yield f"datasets.{copy} is declared public and has the same ids and labels: remove public = true there"
        if not self._dataset(dataset).public:
            yield from warn_of_two_accounts(self._store.reader(), made.row, made.people())

    def of_session(self, session: str) -> Snapshot:
        """Return the snapshot that a session read.

        Raises:
            DataError: the session read no snapshot here, or the snapshot is gone.
        """
        found = self._row_of(session)
        if found is None or found.removed is not None:
            raise DataError(f"the snapshot that {session} read no longer exists here", hint="train again")
        return self._at(found)

    def to_read(self, dataset: str, resumes: str) -> Snapshot:
        """Return the snapshot that a job reads: the newest, or the one that a resumed training began with.

        Args:
            resumes: session of that training; empty for a job that begins.

        Raises:
            DataError: as in `of_session`.
            PolicyRefused: as in `require_current`; or the training began with another dataset.
        """
        if not resumes:
            return self.require_current(dataset)
        found = self.of_session(resumes)
        if found.row.dataset != dataset:  # the operator saw, and a quota counts, the dataset that the job names
            reason = f"{dataset} is not the dataset that {resumes} began with"
            raise PolicyRefused(party=self._settings.name, field="dataset", reason=reason)
        return found

    def _row_of(self, session: str) -> SnapshotRow | None:
        wanted = self._store.reader().session_snapshot(session)
        return next((row for row in self._store.reader().snapshots() if row.id == wanted), None)

    def source(self, dataset: str) -> Source:
        """Return the rows of the current snapshot.

        Raises:
                PolicyRefused, ConfigError: as in `require_current`.
        """
        return self.require_current(dataset).source()

    def check_scored(self, dataset: str, record: TableRecord, columns: Sequence[str]) -> None:
        """Check that a model can read the current snapshot.

        Raises:
                PolicyRefused, ConfigError: as in `require_current`.
            DataError: the snapshot lacks a column, has it in another kind, or cannot read it.
        """
        self.require_current(dataset).for_model(record, columns, {})

    def has_changed_since(self, snapshot: Snapshot) -> bool | None:
        """Return True if the source has changed; None for a database, which reports no changes. Only for the party's
        operator.
        """
        if snapshot.row.source is None:
            return None
        try:
            found = fingerprint_of(self._dataset(snapshot.row.dataset), self._base_dir, snapshot.row.dataset)
        except DataError:
            return True
        return found != snapshot.row.source

    def tell_of_changes(self) -> None:
        """Log for the operator which datasets have changed, and which schedules do not run."""
        for dataset, settings in self._settings.datasets.items():
            current = self.current(dataset)
            if current is not None and self.has_changed_since(current):
                log.warning("dataset has changed: publish it", dataset=dataset, snapshot=current.row.number)
            if current is not None and settings.snapshot_every_h is not None and self.waits_for_operator(dataset):
                log.warning(schedule_waits(self._settings, dataset), dataset=dataset)

    # --- snapshots that the party makes by itself

    def waits_for_operator(self, dataset: str) -> str:
        """Return why the party makes no snapshot of the dataset by itself; empty if it does."""
        known = self._store.reader().snapshots()
        return why_it_waits(self._settings, dataset, known) or why_public_waits(self._settings, dataset, known)

    def make_first(self) -> None:
        """Make the first snapshot of each dataset without one, at the party's start. The log names each result.

        A column that cannot be read is left out. A dataset whose ids cannot be read stays unpublished, and the party
        starts without it.
        """
        for dataset in self._settings.datasets:
            try:
                if self.current(dataset) is None:
                    self.make_next(dataset, skip_unreadable=True)
            except Exception as error:  # noqa: BLE001 - the log informs the operator, and the other datasets are unaffected
                log.error("dataset is not published", dataset=dataset, **describe_error(error))

    def make_overdue(self, dataset: str) -> None:
        """Make the next snapshot if the owner's schedule demands it, with or without a change."""
        if self.overdue(dataset):
            self.make_next(dataset, by_schedule=True)

    def overdue(self, dataset: str) -> bool:
        """Return True if the owner's schedule demands the next snapshot."""
        every = self._dataset(dataset).snapshot_every_h
        if every is None or (current := self.current(dataset)) is None or self.waits_for_operator(dataset):
            return False
        return datetime.now(UTC) - datetime.fromisoformat(current.row.made) >= timedelta(hours=every)

    def make_next(self, dataset: str, *, skip_unreadable: bool = False, by_schedule: bool = False) -> None:
        """Make the next snapshot by the party itself, unless the dataset waits for its operator; the log reports it.

        Args:
            skip_unreadable: see `publish`.
            by_schedule: see `publish`.

        Raises:
            DataError, ConfigError: there is an error in the dataset, for the party's own operator.
        """
        if reason := self.waits_for_operator(dataset):
            log.warning(reason, dataset=dataset)
            return
        made = self.publish(dataset, skip_unreadable=skip_unreadable, by_schedule=by_schedule)
        log.info("dataset is published", dataset=dataset, snapshot=made.row.number, rows=made.row.rows)
        for caution in self.cautions(made):
            log.warning(caution, dataset=dataset)

    def list_unknown(self) -> Iterator[str]:
        """Yield sentences about directories with a snapshot's name that the party's database does not know, for its
        operator.
        """
        yield from find_unknown(self._directory, self._store.reader().snapshots())

    def settle(self) -> None:
        """Remove the remains of a killed publisher at a party's start, and log unknown directories."""
        try:
            if self._directory.is_dir():
                with only_publisher(self._data_dir, "unfinished snapshots", lambda _: None, max_wait_s=0.0):
                    self._remove_unfinished()
        except OSError as error:
            log.warning("the remains of an unfinished publish cannot be removed", where=str(error.filename or ""))
        except DataError:  # another process publishes, and has removed it
            log.info("another process publishes")
        for unknown in self.list_unknown():
            log.warning(unknown)

    # --- making them

    def publish(
        self,
        dataset: str,
        *,
        skip_unreadable: bool = False,
        other_people: bool = False,
        by_schedule: bool = False,
        on_waiting: Callable[[str], None] | None = None,
    ) -> Snapshot:
        """Make the next snapshot. Unless all of it is written, nothing of it is there.

        Args:
            skip_unreadable: True to leave out columns that cannot be read, except the ids. A job that needs such a
                column is refused. By default only the columns that the snapshot before left out may be unreadable.
            other_people: True if the operator declares that its people are not those of another population.
            by_schedule: True if nobody asked for it now, so that others would see a refusal. Rows that hold too little
                for the scores that their party gives are then published, with a caution.
            on_waiting: function that gets a sentence about the wait for another publisher; by default it is logged.

        Raises:
            DataError: there is an error in the rows, or on the disk; or another process publishes for too long.
            ConfigError: the rows are known under another population, or hold too little for the scores that their party
                gives.
        """
        settings = self._dataset(dataset)
        source = open_source(settings, self._base_dir, dataset, self._tolerance(dataset, skip_unreadable))
        fingerprint = source.fingerprint()  # before the rows are read, so that a change meanwhile is noticed
        try:
            make_private(self._directory)
            with only_publisher(self._data_dir, dataset, on_waiting or log.info):
                self._remove_unfinished()
                try:
                    new = Unfinished.begin(self._directory)
                    written = self._write(source, new.within)
                    digests = self._people_key.digests_of(written.ids())
                    write_digests(new.within, digests)
                    new.give_name()
                    return self._enter(
                        dataset, settings, source, fingerprint, new.id, written, digests, other_people, by_schedule
                    )
                finally:
                    with suppress(OSError, BlindfitError):  # else the next publish, or the next start, does it
                        self._remove_unfinished()
        except OSError as error:
            raise DataError(
                f"{dataset}: its snapshot in {self._directory} cannot be written: {error.strerror or error}",
                hint="check that the disk is not full, and that this user may write there",
            ) from error

    def _tolerance(self, dataset: str, skip_unreadable: bool) -> Tolerates:
        if skip_unreadable:
            row_id = self._dataset(dataset).id
            return lambda column: column != row_id
        before = self._store.reader().snapshots(dataset)
        unusable = json.loads(before[-1].meaning).get("unusable", {}) if before else {}
        return unusable.__contains__ if unusable else nothing

    def remove_older(self, dataset: str) -> list[tuple[Snapshot, int]]:
        """Remove the files of all but the newest snapshot; their charges stay in the ledger.

        Returns:
            Each removed snapshot with its size in bytes.
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
        digests: Digests,
        other_people: bool,
        by_schedule: bool,
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
                        **meaning_of(settings),
                        **_facts_of(source, written),
                        "distinct": dict(written.distinct),
                        "models_per_row": models_declared(self._settings, dataset),
                        "public": settings.public,
                    }
                ),
                source=fingerprint,
                content_sha256=written.content_sha256,
                rows=written.rows,
                other_people=int(other_people),
                made=stamp(),
            )
            refuse_another_population(row, known)
            refuse_private_rows(transaction, row, digests, self._settings)
            refuse_people_of_another(transaction, row, digests)
            if not by_schedule:
                refuse_weak_rows(row, known, self._settings)
            transaction.add_snapshot(row)
            if not settings.public:  # nobody is protected, and nothing is counted
                add_people(transaction, row.population, settings.label, digests)
            carried = carry_account(transaction, row, known)
        remarks = (*written.remarks, *([f"{carried} entries of its account are carried over"] if carried else ()))
        return replace(self._at(row), remarks=remarks)

    @cached_property
    def _people_key(self) -> PeopleKey:
        return PeopleKey.of_party(self._settings, self._base_dir)

    def _dataset(self, name: str) -> PartyDatasetSettings:
        return self._settings.datasets[name]

    def _at(self, row: SnapshotRow) -> Snapshot:
        described = self._settings.datasets.get(row.dataset)  # None if the file no longer has the dataset
        return Snapshot(row, self._directory / row.id, described.batch_rows if described else BATCH_ROWS)

    def _is_of(self, row: SnapshotRow, settings: PartyDatasetSettings) -> bool:
        """Return True if the snapshot is of the dataset as these settings describe it."""
        meaning, described = json.loads(row.meaning), meaning_of(settings)
        if any(meaning.get(name) != described.get(name) for name in {*described, *DIGEST.added}):
            return False
        if meaning.get("public") and not settings.public:
            return False  # its people were not counted
        if meaning.get("models_per_row") == models_declared(self._settings, row.dataset):
            return True
        return are_too_weak(row, self._store.reader().snapshots(), self._settings) is None  # the declaration is new


def _facts_of(source: Source, written: Written) -> dict[str, Any]:
    """Return the facts of the columns that come from the rows, not from the party's file."""
    usable = [column for column in source.record.columns if column.name not in written.problems]
    return {
        "columns": [name for name in source.feature_names if source.record.behind[name] in usable],
        "levels": {column.name: column.levels for column in usable if column.kind == "category"},
        "reference": {name: written.reference.get(name) for name in source.record.names if name in written.reference},
        "booleans": [column.name for column in usable if column.kind == "boolean"],
        "sources": [column.name for column in usable if not column.is_feature],
        "indicators": [column.name for column in usable if column.missing == "indicator"],
        "unusable": {name: problem.message for name, problem in written.problems.items()},
    }


def not_published(dataset: str) -> str:
    """Return the refusal for a proposer, in the same words for any rows."""
    return f"{dataset} is not published: the party's operator runs `blindfit snapshot PARTY.TOML {quote(dataset)}`"
