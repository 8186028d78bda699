"""What a party keeps of a training that may have to go on: files of its own, which only their owner may read.

base.json       what holds for the whole training: the order of the rows, secrets from which randomness is drawn
                again, at a key node the private key
epoch-N.json    after epoch N; the newest few, as parties may have stopped an epoch apart
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError, PolicyRefused
from blindfit.algorithms.protocols.ready import Ready
from blindfit.parties.files import written
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.proposal import Proposed

KEPT_EPOCHS = 3
CHECK_BEGUN = "check-begun.json"
RESUMED_ALIKE = "a job is resumed with the parties, datasets and options that it began with; timeouts may differ"


class Checkpoints:
    """Of one training, named by the session that began it.

    Args:
        resume_option: the job's, for hints.
        vault: the party's.
    """

    def __init__(self, data_dir: Path, session: str, resume_option: str, vault: Vault = PLAIN) -> None:
        self.session, self.directory = session, data_dir / "checkpoints" / session
        self._resume_option, self._vault = resume_option, vault

    @classmethod
    def of(cls, data_dir: Path, job: JobParameters, session: str, vault: Vault = PLAIN) -> Checkpoints:
        """Of the training that a session's job goes on from, or begins."""
        return cls(data_dir, job.resumes or session, job.resume_option, vault)

    def begin(self, question: bytes, base: Mapping[str, Any]) -> None:
        self._write("base.json", {**base, "question": question.hex()})

    @property
    def exists(self) -> bool:
        return (self.directory / "base.json").exists() and not self.stopped_in_check

    @property
    def stopped_in_check(self) -> bool:
        """Return whether the training ended between the two halves of a check of its shares."""
        return (self.directory / CHECK_BEGUN).exists()

    def check_begun(self, begun: bool) -> None:
        """A training in shares that ends between the two is not resumed."""
        if begun:
            self._write(CHECK_BEGUN, {})
        else:
            (self.directory / CHECK_BEGUN).unlink(missing_ok=True)

    def base(self, question: bytes) -> dict[str, Any]:
        """What `begin` was given.

        Args:
            question: of the session that goes on (`Session.proposed_question`): who takes part, in which roles, with
                which datasets and options.

        Raises:
            DataError: there is no such training here, or it was of another job.
        """
        base = self._read("base.json")
        if base.get("question") != question.hex():
            raise DataError(f"the training {self.session} was of another job", hint=RESUMED_ALIKE)
        return base

    def is_of(self, question: bytes) -> bool:
        """Return whether `begin` was given this question.

        Raises:
            DataError: the checkpoint is damaged.
        """
        return self._read("base.json").get("question") == question.hex()

    def keep(self, epoch: int, go_on: bool, state: Mapping[str, Any]) -> None:
        self._write(f"epoch-{epoch}.json", {"go_on": go_on, "state": state})
        for old in sorted(self.epochs())[:-KEPT_EPOCHS]:
            (self.directory / f"epoch-{old}.json").unlink(missing_ok=True)

    def drop_after(self, epoch: int) -> None:
        """What was kept of later epochs, by another run of the training, does not fit to what comes now."""
        for later in self.epochs():
            if later > epoch:
                (self.directory / f"epoch-{later}.json").unlink(missing_ok=True)

    def epochs(self) -> tuple[int, ...]:
        """Return the epochs that training can go on after."""
        names = [path.stem.removeprefix("epoch-") for path in self.directory.glob("epoch-*.json")]
        return tuple(sorted(int(name) for name in names if name.isdigit()))

    def name_epochs(self) -> str:
        """Return the epochs as `common_epoch` reads them."""
        return ",".join(map(str, self.epochs()))

    def keep_arrays(self, epoch: int, go_on: bool, state: Mapping[str, NDArray[np.float64]]) -> None:
        self.keep(epoch, go_on, {name: array.tolist() for name, array in state.items()})

    def arrays_at(self, epoch: int) -> dict[str, NDArray[np.float64]]:
        """Raise DataError: the checkpoint does not hold numbers."""
        try:
            return {name: np.array(numbers, dtype=np.float64) for name, numbers in self.at(epoch).items()}
        except (TypeError, ValueError):
            raise make_damage_error(self._resume_option) from None

    def at(self, epoch: int) -> dict[str, Any]:
        return dict(self._read(f"epoch-{epoch}.json")["state"])

    def first_epoch(self, resumed: int, epochs: int) -> int:
        """Where to go on after the epoch `resumed` (0: none); at the end, where training had stopped there."""
        return resumed if not resumed or self._read(f"epoch-{resumed}.json")["go_on"] else epochs

    def remove(self) -> None:
        """The training is done: nothing secret of it stays, and first of all not what it could be resumed from."""
        (self.directory / "base.json").unlink(missing_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        written.write_file(self.directory / name, self._vault.sealed(name, written.encode_json(content)))

    def _read(self, name: str) -> dict[str, Any]:
        path = self.directory / name
        try:
            content = json.loads(self._vault.read(path))
        except OSError:
            raise DataError(
                f"there is no checkpoint of the training {self.session} at this party",
                hint=f"run the job without {self._resume_option}",
            ) from None
        except ValueError:
            raise DataError(f"{path} is not JSON") from None
        if not isinstance(content, dict):
            raise DataError(f"{path} is not a table")
        return content


def refuse_unknown(data_dir: Path, job: JobParameters, party: str) -> None:
    """Raise PolicyRefused: the job resumes a training of which this party has nothing; in words that the peers see."""
    checkpoints = Checkpoints.of(data_dir, job, "")
    if job.resumes and not checkpoints.exists:
        why = "it had not begun, or every party has stored its model"
        if checkpoints.stopped_in_check:
            why = "it stopped during a check of its shares, after which no training goes on"
        reason = f"there is no checkpoint of {job.resumes}: {why}; run the job without {job.resume_option}"
        raise PolicyRefused(party=party, field=job.resume_option, reason=reason)


def refuse_another_job(data_dir: Path, asked: Proposed, party: str, vault: Vault) -> None:
    """Check that a resumed job has the parties, datasets and options of the training that it goes on with.

    Raises:
        PolicyRefused: it is another job; in words that the peers see.
        DataError: the checkpoint is damaged.
    """
    job = asked.job
    if job.resumes and not Checkpoints.of(data_dir, job, "", vault).is_of(asked.question):
        reason = f"the training {job.resumes} was of another job: {RESUMED_ALIKE}"
        raise PolicyRefused(party=party, field=job.resume_option, reason=reason)


def make_damage_error(resume_option: str) -> DataError:
    return DataError("a checkpoint of the training is damaged", hint=f"run the job without {resume_option}")


def common_epoch(told: Mapping[str, Ready]) -> int:
    """Return the last epoch that every party has kept; 0 if there is none."""
    texts = [party.checkpoint.split(",") for party in told.values()]
    sets = [{int(text) for text in epochs if re.fullmatch("[0-9]{1,5}", text)} for epochs in texts]
    return max(set.intersection(*sets), default=0)


class Running:
    """One session at a time for each training: two would write over each other's checkpoints, and in shares one under
    the same MAC key could use what a failed check of the other told. After a restart no session goes on.

    Args:
        resume_option: of the jobs, for refusals.
    """

    def __init__(self, party: str, resume_option: str) -> None:
        self._party, self._resume_option, self._trainings = party, resume_option, set[str]()

    def refuse_another(self, training: str) -> None:
        """Raise PolicyRefused: a session of the training runs here."""
        if training in self._trainings:
            reason = (
                f"another session of the training {training} is still running: wait for its end, or cancel it "
                "(`blindfit cancel`)"
            )
            raise PolicyRefused(party=self._party, field=self._resume_option, reason=reason)

    @contextmanager
    def alone(self, training: str) -> Iterator[None]:
        """Around all that reads or writes what is kept of the training. Raises PolicyRefused as `refuse_another`."""
        self.refuse_another(training)
        self._trainings.add(training)
        try:
            yield
        finally:
            self._trainings.remove(training)
