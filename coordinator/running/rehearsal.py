"""A rehearsal: a job on this machine whose parties keep their state in the folder of its reports.

Ledgers, accounts, snapshots and keys start empty there, or as a copy of those of the rehearsal that trained the model.
The state that a party has in its own data_dir is neither read nor written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.folders import RUNS
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.stage import STATE, Stage
from blindfit.parties.files.private_files import make_private
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.tables import toml_of


@dataclass(frozen=True)
class Rehearsal:
    """How a job is rehearsed.

    Attributes:
        warn_only: whether a job that passes a limit of a budget or an account goes on with a warning.
        folders: where the rehearsal of the training may lie whose model the job takes; then those in `runs`.
    """

    warn_only: bool = False
    folders: tuple[Path, ...] = ()

    def set_up(self, job: Job[Any], out: Path) -> Job[Any]:
        """Return the job with the state of its parties in `out`, which has none of an earlier job then.

        Raises:
            ConfigError: the job takes a model, and the rehearsal that trained it is not here.
        """
        stage = Stage((out / STATE).resolve(), self.warn_only)
        found = self._find_state(job, out)
        if found is None or found.resolve() != stage.folder:
            if stage.folder.is_dir():
                shutil.rmtree(stage.folder)
            if found is not None:
                _copy(found.resolve(), stage.folder)
        make_private(stage.folder)
        return job.on_stage(stage)

    def _find_state(self, job: Job[Any], out: Path) -> Path | None:
        taken, resumed = job.parameters.takes_models_of, job.parameters.resumes
        places = (*self.folders, out, *sorted(RUNS.glob("*"))) if taken or resumed else ()
        for session in taken or (resumed,):
            for place in places:
                if _knows(place / STATE, list(job.parties), session):
                    return place / STATE
        if taken:
            raise ConfigError(
                f"no rehearsal of {taken[-1]} is here: a rehearsal takes a model that was rehearsed",
                hint="rehearse its training with `blindfit run JOB.TOML --rehearse`, and name that folder: --model DIR",
            )
        return None


def _knows(folder: Path, parties: Sequence[str], session: str) -> bool:
    """Return whether a party that has its state in a folder has had a session."""
    for path in (folder / name / "party.sqlite" for name in parties):
        with contextlib.suppress(ConfigError):  # another version's
            if path.is_file():
                with contextlib.closing(Store(path)) as store:
                    return store.reader().session(session) is not None
    return False


def _copy(source: Path, target: Path) -> None:
    """Copy the state of all parties. Files that lie outside of it stay where they are, and the copy names them."""
    shutil.copytree(source, target)
    for path in target.glob("*/party.sqlite"):
        before, after = source / path.parent.name, path.parent

        def move(name: str, before: Path = before, after: Path = after) -> str:
            place = Path(os.path.normpath(before / name))
            return name if place.is_relative_to(before) else os.path.relpath(place, after)

        with contextlib.closing(Store(path)) as store, store.transaction() as transaction:
            transaction.move_files(move)


def on_stage(settings: PartySettings, job: Job[Any], stage: Stage) -> PartySettings:
    """Return the settings of a party that rehearses a job. Whoever starts the rehearsal approves for every operator."""
    changes: dict[str, Any] = {"data_dir": stage.folder / settings.name}
    if settings.policy.approve == "ask":
        flags = list(job.parameters.unsafe_at(settings.role))
        changes["policy"] = settings.policy.model_copy(update={"approve": "auto", "unsafe": flags})
    return settings.in_rehearsal(only_warns=stage.warn_only).model_copy(update=changes)


def overrides_of(settings: PartySettings) -> Iterator[tuple[str, str]]:
    """Yield the options, as TOML, by which a party's process gets the settings of `on_stage`."""
    yield "data_dir", toml_of(str(settings.data_dir))
    yield "policy.approve", toml_of(settings.policy.approve)
    if settings.policy.unsafe:
        yield "policy.unsafe", toml_of(settings.policy.unsafe)
