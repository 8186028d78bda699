"""State of a party process, for the roles that it plays."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.rehearsal import FIELD, NOTHING, STAMP, WARNINGS, with_stamp
from blindfit.algorithms.workers import Workers
from blindfit.parties.files.private_files import make_private
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.files.vault import PARTY_KEY, RECEIPT_KEY, Vault, vault_of
from blindfit.parties.files.written import csv_of, encode_json
from blindfit.parties.identity.identity import Identity
from blindfit.parties.sessions import kept_files
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.rows_file import write_rows
from blindfit.parties.snapshots.snapshots import Snapshots, Writer
from blindfit.parties.store.database import Store
from blindfit.parties.store.receipts import OwnReceipts
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.work.compute import workers_of

T = TypeVar("T")


@dataclass(repr=False)
class Party:
    """A party process.

    Attributes:
        own: identity for other parties; None if nobody connects, because the process only answers what it would refuse.
        sessions: sessions, set before the process serves anybody.
        write_snapshot: function that writes the part of a dataset that its role keeps.
    """

    settings: PartySettings
    base_dir: Path
    own: Identity | None
    store: Store
    limits: Limits = field(default_factory=Limits)
    pulse: Pulse = field(default_factory=Pulse)
    write_snapshot: Writer = write_rows
    sessions: Sessions = field(init=False)
    _shared: dict[Callable[[Party], Any], Any] = field(default_factory=dict)
    _closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def identity(self) -> Identity:
        if self.own is None:
            raise LocalProtocolError("a party without an identity connects to nobody")
        return self.own

    @property
    def data_dir(self) -> Path:
        return self.base_dir / self.settings.data_dir

    def file(self, session: str, name: str, kind: str = "models") -> Path:
        """Return the path of a session's file: in the operator's folder, or in a folder for each session."""
        return self.base_dir / (self.settings.output_dir or self.data_dir / kind / session) / name

    def write(self, session: str, name: str, content: bytes, kind: str = "models") -> Path:
        """Write a whole file, which is the session's from then on: see `kept_files`."""
        path = self.file(session, name, kind)
        self.write_to(path, content, session)
        return path

    def write_report(self, session: str, report: Mapping[str, Any], kind: str = "models") -> Path:
        warnings = {WARNINGS: self.store.excess.sentences} if self.store.excess.sentences else {}
        return self.write(session, "report.json", encode_json({**self.stamp(report), **warnings}), kind)

    def write_table(self, session: str, name: str, columns: Mapping[str, Any]) -> Path:
        return self.write(session, name, csv_of(self.stamp_table(pa.table(dict(columns)))))

    def stamp(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document with the stamp of a rehearsal, if this party rehearses."""
        return with_stamp(document, self.stamp_text)

    @property
    def stamp_text(self) -> str:
        """Stamp of this party's files; it is empty unless the party rehearses."""
        return STAMP if self.settings.rehearses else ""

    def stamp_table(self, table: pa.Table) -> pa.Table:
        """Return a table with one more column, the stamp of a rehearsal, if this party rehearses."""
        if not self.settings.rehearses:
            return table
        return table.append_column(FIELD, pa.repeat(NOTHING, len(table)))

    def write_to(self, path: Path, content: bytes, session: str) -> None:
        kept_files.write(self.store, self.data_dir, session, path, content)

    def files_of(self, session: str) -> list[Path]:
        """Return the files that it has written and no later session has replaced, and the files that were noted for
        it.
        """
        return kept_files.files_of(self.store, self.data_dir, session)

    def note(self, path: Path, session: str) -> Path:
        """Note a directory, or a file that no other session writes, before it exists.

        `blindfit purge` then finds it, even if the process ends at any moment.
        """
        with self.store.transaction() as transaction:
            transaction.note_file(os.path.relpath(path, self.data_dir), session)
        return path

    @cached_property
    def vault(self) -> Vault:
        """Lock of the party's secret files. With a passphrase, it takes a quarter of a second to open."""
        return vault_of(self.settings, self.base_dir)

    @cached_property
    def secret(self) -> PartySecret:
        """Secret for values that must come out the same again, and that no other party may know."""
        make_private(self.data_dir)
        return PartySecret.load_or_create(self.data_dir / PARTY_KEY, self.vault)

    @cached_property
    def receipts(self) -> OwnReceipts:
        return OwnReceipts(self.settings.name, self.store, self.vault.signing_key(self.data_dir / RECEIPT_KEY))

    @cached_property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.settings, self.base_dir, self.store, self.write_snapshot)

    @cached_property
    def workers(self) -> Workers:
        """Workers on vectors of ciphertexts, from the first use until `close`."""
        return self._closing.enter_context(workers_of(self.settings, self.base_dir))

    def once(self, make: Callable[[Party], T]) -> T:
        """Return the result of `make`, which is made once for all roles and services."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made

    def close(self) -> None:
        self._closing.close()
