"""Where the parties of a rehearsal keep their state, in place of the folders that their files name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STATE = "rehearsal"  # in the folder of the reports


@dataclass(frozen=True)
class Stage:
    """
    Attributes:
        folder: it has a folder for each party.
        warn_only: whether a job that passes a limit of a budget or an account goes on with a warning.
    """

    folder: Path
    warn_only: bool = False

    @property
    def receipts(self) -> Path:
        """Return the file of the receipts that the coordinator keeps in a rehearsal."""
        return self.folder / "receipts.sqlite"
