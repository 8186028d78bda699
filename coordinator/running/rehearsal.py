"""A rehearsal: a job on this machine whose parties keep their state in the folder of its reports.

Ledgers, accounts, snapshots and keys start empty there, or as a copy from the rehearsal that trained the model. The
rehearsal neither reads nor writes the state in a party's own data_dir.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.rehearsal import STAMP
from blindfit.coordinator.job.folders import RUNS
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.stage import NOTE, STATE, Stage, is_stage
from blindfit.parties.files.written import read_json, write_file
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.data_dir_lock import LOCK, DataDirLock
from blindfit.parties.store.database import Store
from blindfit.parties.tables import toml_of

ENDS_S, LOOK_S = 5.0, 0.05  # for a party of an earlier command to end


@dataclass(frozen=True)
class Rehearsal:
    """Form of a rehearsal.

    Attributes:
        warn_only: True if a job that passes a limit of a budget or an account goes on with a warning.
        folders: folders that may hold the rehearsal of the training whose model the job takes; then those in `runs`.
        is_kept: True if the state stays after the job, so that a later job can go on from it.
    """

    warn_only: bool = False
    folders: tuple[Path, ...] = ()
    is_kept: bool = True

    def stage_in(self, folder: Path) -> Stage:
        """Return the stage in the folder of the reports."""
        return Stage((folder / STATE).resolve(), self.warn_only, self.is_kept)

    def set_up(self, job: Job[Any], stage: Stage) -> Job[Any]:
        """Return the job with the state of its parties on a stage, which has no state of an earlier job.

        Raises:
            ConfigError: the job takes a model, and the rehearsal that trained it is not here.
        """
        found: Path | None = None
        if taken := job.parameters.takes_models_of:
            found = self._find_training(taken, stage.folder)
        elif resumed := job.parameters.resumes:
            found = _find_session(resumed, list(job.parties), stage.folder)
        if found != stage.folder:
            _remove(stage.folder)
        write_file(stage.note, f"{STAMP}\nThis folder may be removed.\n".encode())
        if found is not None and found != stage.folder:
            _copy(found, stage.folder)
        return job.on_stage(stage)

    def _find_training(self, sessions: Sequence[str], own: Path) -> Path:
        """Return the state of the first of these sessions that is here."""
        for session in sessions:
            for folder in (*self.folders, *sorted(RUNS.glob("*"))):
                state = (folder / STATE).resolve()
                if state != own and is_stage(state) and _session_in(folder) == session:
                    return state
        raise ConfigError(
            f"no rehearsal of {sessions[-1]} is here: a rehearsal needs a rehearsed model",
            hint="rehearse its training with `blindfit run JOB.TOML --rehearse`, and name that folder: --model DIR",
        )


def _session_in(folder: Path) -> str:
    """Return the session whose report is in a folder; an empty text without a report."""
    try:
        content = read_json(folder / "report.json")
    except DataError:
        return ""
    return str(content.get("session", "")) if isinstance(content, dict) else ""


def _find_session(session: str, parties: Sequence[str], own: Path) -> Path | None:
    """Return the state of an unfinished training; None if no party here has begun it."""
    states = (own, *((folder / STATE).resolve() for folder in sorted(RUNS.glob("*"))))
    return next((state for state in states if is_stage(state) and _knows(state, parties, session)), None)


def _knows(state: Path, parties: Sequence[str], session: str) -> bool:
    for path in (state / name / "party.sqlite" for name in parties):
        with contextlib.suppress(ConfigError):  # a database of another version
            if path.is_file():
                with contextlib.closing(Store(path)) as store:
                    if store.reader().session(session) is not None:
                        return True
    return False


def _remove(state: Path) -> None:
    """Remove the state of an earlier rehearsal, its note last, so that a remaining part is known as a rehearsal's."""
    with _alone_in(state):
        for path in [path for path in state.glob("*") if path.name != NOTE]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        (state / NOTE).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy the state of all parties. Files outside of the state stay in place, and the copy names them."""
    with _alone_in(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(LOCK), dirs_exist_ok=True)
    for path in target.glob("*/party.sqlite"):
        before, after = source / path.parent.name, path.parent

        def move(name: str, before: Path = before, after: Path = after) -> str:
            place = Path(os.path.normpath(before / name))
            return name if place.is_relative_to(before) else os.path.relpath(place, after)

        with contextlib.closing(Store(path)) as store, store.transaction() as transaction:
            transaction.move_files(move)


@contextlib.contextmanager
def _alone_in(state: Path) -> Iterator[None]:
    """Wait for the parties of an earlier command that was killed: they end a moment after it.

    Raises:
        ConfigError: a party goes on.
    """
    with contextlib.ExitStack() as stack:
        give_up = time.monotonic() + ENDS_S
        for path in state.glob(f"*/{LOCK}"):
            lock = DataDirLock(path.parent, path.parent.name)
            while True:
                try:
                    lock.take()
                    break
                except ConfigError:
                    if time.monotonic() >= give_up:
                        raise
                time.sleep(LOOK_S)
            stack.callback(lock.release)
        yield


def check_apart(parties: Mapping[str, tuple[Path, PartySettings]], out: Path) -> None:
    """Check that a rehearsal writes into no folder in which a party keeps its own state.

    Args:
        parties: path and settings of each party file.

    Raises:
        ConfigError: the rehearsal would write into such a folder.
    """
    reports = [(out / name).resolve() for name in parties]
    for name, (path, settings) in parties.items():
        own = (path.parent / settings.data_dir).resolve()
        if own.is_relative_to((out / STATE).resolve()) or own in reports:
            raise ConfigError(
                f"--out {out}: {name} keeps its own state there, in data_dir = {settings.data_dir}, and a rehearsal "
                "would write into it",
                hint="name another folder: --out DIR",
            )


def on_stage(settings: PartySettings, job: Job[Any], stage: Stage) -> PartySettings:
    """Return the settings of a party that rehearses a job. No operator is asked: one person starts all parties."""
    changes: dict[str, Any] = {"data_dir": stage.folder / settings.name}
    if settings.policy.approve == "ask":
        flags = list(job.parameters.unsafe_at(settings.role))
        changes["policy"] = settings.policy.model_copy(update={"approve": "auto", "unsafe": flags})
    return settings.in_rehearsal(stage.excess_at(settings.name)).model_copy(update=changes)


def overrides_of(settings: PartySettings) -> Iterator[tuple[str, str]]:
    """Yield the options, as TOML, that give a party's process the settings of `on_stage`."""
    yield "data_dir", toml_of(str(settings.data_dir))
    yield "policy.approve", toml_of(settings.policy.approve)
    if settings.policy.unsafe:
        yield "policy.unsafe", toml_of(settings.policy.unsafe)
