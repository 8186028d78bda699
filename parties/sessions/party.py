"""What a party process has, for whoever takes a seat in it."""

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
    """
    Attributes:
        own: who it is to others; None where nobody connects to it, as it is only asked what it would refuse.
        sessions: set before the process serves anybody.
        write_snapshot: what its role keeps of a dataset.
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
        """Where a session's file goes: where the operator says, or in a folder for each session."""
        return self.base_dir / (self.settings.output_dir or self.data_dir / kind / session) / name

    def write(self, session: str, name: str, content: bytes, kind: str = "models") -> Path:
        """Return a whole file, which is the session's from then on: see `kept_files`."""
        path = self.file(session, name, kind)
        self.write_to(path, content, session)
        return path

    def write_report(self, session: str, report: Mapping[str, Any], kind: str = "models") -> Path:
        warnings = {WARNINGS: self.store.excess.sentences} if self.store.excess.sentences else {}
        return self.write(session, "report.json", encode_json({**self.stamp(report), **warnings}), kind)

    def write_table(self, session: str, name: str, columns: Mapping[str, Any]) -> Path:
        return self.write(session, name, csv_of(self.stamp_table(pa.table(dict(columns)))))

    def stamp(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document as this party writes it: with a stamp where it rehearses."""
        return with_stamp(document, self.stamp_text)

    @property
    def stamp_text(self) -> str:
        """Return the stamp of what this party writes; it is empty unless the party rehearses."""
        return STAMP if self.settings.rehearses else ""

    def stamp_table(self, table: pa.Table) -> pa.Table:
        """Return a table as this party writes it: with one more column where it rehearses."""
        if not self.settings.rehearses:
            return table
        return table.append_column(FIELD, pa.repeat(NOTHING, len(table)))

    def write_to(self, path: Path, content: bytes, session: str) -> None:
        kept_files.write(self.store, self.data_dir, session, path, content)

    def files_of(self, session: str) -> list[Path]:
        """Whole files that it has written, unless a later session has since, and what was noted for it."""
        return kept_files.files_of(self.store, self.data_dir, session)

    def noted(self, path: Path, session: str) -> Path:
        """A directory, or a file that no other session writes, before anything is there: `blindfit purge` finds it,
        whenever the process ends."""
        with self.store.transaction() as transaction:
            transaction.note_file(os.path.relpath(path, self.data_dir), session)
        return path

    @cached_property
    def vault(self) -> Vault:
        """What locks the party's secret files; to open it takes a quarter of a second where there is a passphrase."""
        return vault_of(self.settings, self.base_dir)

    @cached_property
    def secret(self) -> PartySecret:
        """Of what must come out the same again, without anybody else knowing it."""
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
        """Whoever does the work on vectors of ciphertexts; from the first use until `close`."""
        return self._closing.enter_context(workers_of(self.settings, self.base_dir))

    def shared(self, make: Callable[[Party], T]) -> T:
        """What `make` makes, once for all the seats and services that ask for it."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made

    def close(self) -> None:
        self._closing.close()
