"""A party that no peer reaches, for tests that call its functions in this process."""

from __future__ import annotations

from pathlib import Path

from blindfit.parties.sessions.party import Party
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store


def unconnected(settings: PartySettings, root: Path, store: Store | None = None) -> Party:
    """
    Args:
        root: the folder of the party's file.
        store: store of the party; by default a new one in its data directory.
    """
    return Party(settings, root, None, store or Store.of(settings, root))
