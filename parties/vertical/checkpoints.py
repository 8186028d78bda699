"""Files that a party keeps of a training, so that the training can be resumed; only their owner may read them.

| base.json    | facts of the whole training: the order of the rows, the secrets from which
|              | randomness is drawn again, and the private key at a key node
| epoch-N.json | state after epoch N; the newest few, as parties may have stopped an epoch apart
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
    """The files of one training, which is named by the session that began it.

    Args:
        resume_option: option of the job that resumes a training, for hints.
        vault: vault of the party.
    """

    def __init__(self, data_dir: Path, session: str, resume_option: str, vault: Vault = PLAIN) -> None:
        self.session, self.directory = session, data_dir / "checkpoints" / session
        self._resume_option, self._vault = resume_option, vault

    @classmethod
    def of(cls, data_dir: Path, job: JobParameters, session: str, vault: Vault = PLAIN) -> Checkpoints:
        """Return the files of the training that a session's job resumes or begins."""
        return cls(data_dir, job.resumes or session, job.resume_option, vault)

    def begin(self, question: bytes, base: Mapping[str, Any]) -> None:
        self._write("base.json", {**base, "question": question.hex()})

    @property
    def exists(self) -> bool:
        return (self.directory / "base.json").exists() and not self.stopped_in_check

    @property
    def stopped_in_check(self) -> bool:
        """True if the training ended between the two halves of a check of its shares."""
        return (self.directory / CHECK_BEGUN).exists()

    def check_begun(self, begun: bool) -> None:
        """Record that a check has begun or ended. A training in shares that ends in between is not resumed."""
        if begun:
            self._write(CHECK_BEGUN, {})
        else:
            (self.directory / CHECK_BEGUN).unlink(missing_ok=True)

    def base(self, question: bytes) -> dict[str, Any]:
        """Return the facts that `begin` stored.

        Args:
            question: question of the session that resumes the training (`Session.proposed_question`): its parties,
                their roles, datasets and options.

        Raises:
            DataError: there is no such training here, or it was of another job.
        """
        base = self._read("base.json")
        if base.get("question") != question.hex():
            raise DataError(f"the training {self.session} was of another job", hint=RESUMED_ALIKE)
        return base

    def is_of(self, question: bytes) -> bool:
        """Return True if `begin` got this question.

        Raises:
            DataError: the checkpoint is damaged.
        """
        return self._read("base.json").get("question") == question.hex()

    def keep(self, epoch: int, go_on: bool, state: Mapping[str, Any]) -> None:
        self._write(f"epoch-{epoch}.json", {"go_on": go_on, "state": state})
        for old in sorted(self.epochs())[:-KEPT_EPOCHS]:
            (self.directory / f"epoch-{old}.json").unlink(missing_ok=True)

    def drop_after(self, epoch: int) -> None:
        """Remove later epochs: another run of the training kept them, and they do not fit this run."""
        for later in self.epochs():
            if later > epoch:
                (self.directory / f"epoch-{later}.json").unlink(missing_ok=True)

    def epochs(self) -> tuple[int, ...]:
        """Return the epochs after which training can continue."""
        names = [path.stem.removeprefix("epoch-") for path in self.directory.glob("epoch-*.json")]
        return tuple(sorted(int(name) for name in names if name.isdigit()))

    def name_epochs(self) -> str:
        """Return the epochs in the form that `common_epoch` reads."""
        return ",".join(map(str, self.epochs()))

    def keep_arrays(self, epoch: int, go_on: bool, state: Mapping[str, NDArray[np.float64]]) -> None:
        self.keep(epoch, go_on, {name: array.tolist() for name, array in state.items()})

    def arrays_at(self, epoch: int) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of an epoch. Raise DataError if the checkpoint does not hold numbers."""
        try:
            return {name: np.array(numbers, dtype=np.float64) for name, numbers in self.at(epoch).items()}
        except (TypeError, ValueError):
            raise make_damage_error(self._resume_option) from None

    def at(self, epoch: int) -> dict[str, Any]:
        return dict(self._read(f"epoch-{epoch}.json")["state"])

    def first_epoch(self, resumed: int, epochs: int) -> int:
        """Return the epoch after which to continue: `resumed` (0 for the start), or the last epoch if the training had
        stopped there.
        """
        return resumed if not resumed or self._read(f"epoch-{resumed}.json")["go_on"] else epochs

    def remove(self) -> None:
        """Remove the files when the training is done: no secret of it stays. The file that allows a resumption is
        removed first.
        """
        (self.directory / "base.json").unlink(missing_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        written.write_file(self.directory / name, self._vault.seal(name, written.encode_json(content)))

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
    """Raise PolicyRefused if the job resumes a training that this party has no files of; the peers see the text."""
    checkpoints = Checkpoints.of(data_dir, job, "")
    if job.resumes and not checkpoints.exists:
        why = "it had not begun, or every party has stored its model"
        if checkpoints.stopped_in_check:
            why = "it stopped during a check of its shares, after which no training goes on"
        reason = f"there is no checkpoint of {job.resumes}: {why}; run the job without {job.resume_option}"
        raise PolicyRefused(party=party, field=job.resume_option, reason=reason)


def refuse_another_job(data_dir: Path, asked: Proposed, party: str, vault: Vault) -> None:
    """Check that a resumed job has the parties, datasets and options of the training that it resumes.

    Raises:
        PolicyRefused: it is another job; the peers see the text.
        DataError: the checkpoint is damaged.
    """
    job = asked.job
    if job.resumes and not Checkpoints.of(data_dir, job, "", vault).is_of(asked.question):
        reason = f"the training {job.resumes} was of another job: {RESUMED_ALIKE}"
        raise PolicyRefused(party=party, field=job.resume_option, reason=reason)


def make_damage_error(resume_option: str) -> DataError:
    return DataError("a checkpoint of the training is damaged", hint=f"run the job without {resume_option}")


def common_epoch(told: Mapping[str, Ready]) -> int:
    """Return the last epoch that every party has kept; 0 if they share no epoch."""
    texts = [party.checkpoint.split(",") for party in told.values()]
    sets = [{int(text) for text in epochs if re.fullmatch("[0-9]{1,5}", text)} for epochs in texts]
    return max(set.intersection(*sets), default=0)


class Running:
    """Limit each training to one running session.

    Two sessions would overwrite each other's checkpoints. In shares, a second session under the same MAC key could use
    the result of the first one's failed check. After a restart of the process no session continues.

    Args:
        resume_option: option of the jobs that resumes a training, for refusals.
    """

    def __init__(self, party: str, resume_option: str) -> None:
        self._party, self._resume_option, self._trainings = party, resume_option, set[str]()

    def refuse_another(self, training: str) -> None:
        """Raise PolicyRefused if a session of the training runs here."""
        if training in self._trainings:
            reason = (
                f"another session of the training {training} is still running: wait for its end, or cancel it "
                "(`blindfit cancel`)"
            )
            raise PolicyRefused(party=self._party, field=self._resume_option, reason=reason)

    @contextmanager
    def alone(self, training: str) -> Iterator[None]:
        """Reserve a training for all work that reads or writes its files. Raise PolicyRefused as `refuse_another`
        does.
        """
        self.refuse_another(training)
        self._trainings.add(training)
        try:
            yield
        finally:
            self._trainings.remove(training)
