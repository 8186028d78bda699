"""What a party process has, for whoever takes a seat in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from blindfit.algorithms.workers import Workers
from blindfit.parties.identity.connections import Identity
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.store import Store
from blindfit.parties.wire.limits import Limits
from blindfit.parties.work.compute import workers_of

T = TypeVar("T")


@dataclass(repr=False)
class Party:
    """
    Attributes:
        sessions: set before the process serves anybody.
    """

    settings: PartySettings
    base_dir: Path
    identity: Identity
    store: Store
    limits: Limits = field(default_factory=Limits)
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
