"""The same question has the same answer: weights that were opened once are never rounded and opened again for it.

A question consists of the job, its parties, their snapshots, and the split and batches that they have drawn. The result
of its training lies at each party. If every data party still has it, a job with the same question gets it, and nothing
is computed, opened or counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols.ready import Ready
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.falcon.shared_weights import has_model
from blindfit.parties.files.written import encode_json
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import SESSION


@dataclass(frozen=True, repr=False)
class Answer:
    """A party's result of a training, without its part of the model.

    Attributes:
        session: session of the training.
        evaluation: evaluation of the active party.
        selection: figures of the grid points, if the job has a grid.
    """

    session: str
    epochs: int
    evaluation: dict[str, Any] | None
    selection: dict[str, Any] | None = None


class Answers:
    """The stored answers of a party.

    Args:
        drawn: name of the data parties' draw.
    """

    def __init__(self, party: Party, session: Session[FalconJob], drawn: str) -> None:
        digest = parameters_digest({"question": session.question.hex(), "drawn": drawn}).hex()
        self._party, self._path = party, party.data_dir / "answers" / f"{digest}.json"

    def find(self) -> Answer | None:
        """Return the answer; None if the question was not answered, or its model is no longer there."""
        try:
            answer = Answer(**json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return answer if has_model(self._party, answer.session) else None

    def keep(self, answer: Answer) -> None:
        self._party.write_to(self._path, encode_json(asdict(answer)), answer.session)


def tell_checkpoints(answer: Answer | None, epochs_kept: str) -> str:
    """Return the checkpoints for `Ready`: the epochs after which a training can continue, or its answer."""
    return epochs_kept if answer is None else f"answered in {answer.session} after {answer.epochs}"


def epochs_answered(told: Iterable[Ready]) -> int:
    """Return the number of epochs of the training to which all data parties have the answer; 0 if they do not.

    Args:
        told: reports of the data parties.
    """
    texts = {ready.checkpoint for ready in told}
    found = re.fullmatch(rf"answered in {SESSION.strip('^$')} after (\d{{1,5}})", next(iter(texts)))
    return int(found.group(1)) if found and len(texts) == 1 else 0
