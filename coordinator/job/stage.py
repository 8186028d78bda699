"""The folder of the parties' state in a rehearsal, in place of the folders that their files name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.rehearsal import STAMP
from blindfit.parties.store.excess import Excess

STATE = "rehearsal"  # in the folder of the reports
NOTE = "README.txt"  # its first line is the stamp: no other folder of this name is removed or written to


def is_stage(folder: Path) -> bool:
    """Return True if a rehearsal made this folder. A folder behind a link belongs to somebody else."""
    with contextlib.suppress(OSError):
        note = os.open(folder / NOTE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return folder.name == STATE and not folder.is_symlink() and os.read(note, len(STAMP)) == STAMP.encode()
        finally:
            os.close(note)
    return False


def check_is_stage(data_dir: Path) -> None:
    """Check that a rehearsing party keeps its state in the folder of a rehearsal: it may pass its limits.

    Raises:
        ConfigError: the folder is not from a rehearsal.
    """
    if not is_stage(data_dir.parent):
        raise ConfigError(
            f"data_dir = {data_dir} is not the folder of a rehearsal",
            hint="start the rehearsal with `blindfit run JOB.TOML --rehearse`, which starts every party",
        )


def check_is_no_stage(data_dir: Path) -> None:
    """Check that a party of a real job does not go on from files of a rehearsal.

    Raises:
        ConfigError: the folder is from a rehearsal.
    """
    if is_stage(data_dir.resolve().parent):
        raise ConfigError(
            f"data_dir = {data_dir} is the folder of a rehearsal, and the next rehearsal there removes it",
            hint="set data_dir to another folder",
        )


@dataclass(frozen=True)
class Stage:
    """The folder of a rehearsal, and how it treats limits.

    Attributes:
        folder: folder with a folder for each party.
        warn_only: True if a job that passes a limit of a budget or an account goes on with a warning.
        is_kept: True if the folder stays after the job, so that a later job can go on from it.
    """

    folder: Path
    warn_only: bool = False
    is_kept: bool = True
    _excess: dict[str, Excess] = field(default_factory=dict, repr=False, compare=False)

    def excess_at(self, party: str) -> Excess:
        """Return what happens if the job passes a limit of a party, with the limits passed in this process."""
        return self._excess.setdefault(party, Excess(self.warn_only))

    def warnings(self) -> Iterator[tuple[str, str]]:
        """Yield each limit that the job passes with a warning in this process, and its party."""
        for party, excess in self._excess.items() if self.warn_only else ():
            yield from ((party, sentence) for sentence in excess.sentences)

    @property
    def note(self) -> Path:
        return self.folder / NOTE

    @property
    def receipts(self) -> Path:
        """File of the receipts that the coordinator keeps in a rehearsal."""
        return self.folder / "receipts.sqlite"
