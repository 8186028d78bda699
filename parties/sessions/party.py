"""What a party process has, for whoever takes a seat in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from blindfit.algorithms.workers import Workers
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.identity.connections import Identity
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.rows_file import write_rows
from blindfit.parties.snapshots.snapshots import Snapshots, Writer
from blindfit.parties.store.store import Store
from blindfit.parties.wire.limits import Limits
from blindfit.parties.work.compute import workers_of

T = TypeVar("T")


@dataclass(repr=False)
class Party:
    """
    Attributes:
        sessions: set before the process serves anybody.
        write_snapshot: what its role keeps of a dataset.
    """

    settings: PartySettings
    base_dir: Path
    identity: Identity
    store: Store
    limits: Limits = field(default_factory=Limits)
    write_snapshot: Writer = write_rows
    sessions: Sessions = field(init=False)
    _shared: dict[Callable[[Party], Any], Any] = field(default_factory=dict)
    _closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def data_dir(self) -> Path:
        return self.base_dir / self.settings.data_dir

    def directory(self, session: str, kind: str = "models") -> Path:
        """Where a session's files go: where the operator says, or a folder for each session."""
        return self.base_dir / (self.settings.output_dir or self.settings.data_dir / kind / session)

    @cached_property
    def secret(self) -> PartySecret:
        """Of what must come out the same again, without anybody else knowing it."""
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return PartySecret.load_or_create(self.data_dir / "secret.key")

    @cached_property
    def snapshots(self) -> Snapshots:
        """Of its datasets."""
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
