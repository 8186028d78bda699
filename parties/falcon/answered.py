"""The same question has the same answer: weights that were opened once are not opened again for it, rounded anew.

A question is the job, who takes part, their snapshots, and the split and the batches that they have drawn. What its
training ended in lies at each party; where every data party still has it, a job that asks again gets it, and nothing is
computed, opened or counted.
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
    """What a party has of a training, beside its part of the model.

    Attributes:
        session: of the training.
        evaluation: the active party's.
        selection: what the grid points are worth, where the job has a grid.
    """

    session: str
    epochs: int
    evaluation: dict[str, Any] | None
    selection: dict[str, Any] | None = None


class Answers:
    """Args:
    drawn: a name of what the data parties have drawn.
    """

    def __init__(self, party: Party, session: Session[FalconJob], drawn: str) -> None:
        digest = parameters_digest({"question": session.question.hex(), "drawn": drawn}).hex()
        self._party, self._path = party, party.data_dir / "answers" / f"{digest}.json"

    def find(self) -> Answer | None:
        """None where the question was not answered, or its model is no longer there."""
        try:
            answer = Answer(**json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return answer if has_model(self._party, answer.session) else None

    def keep(self, answer: Answer) -> None:
        self._party.write_to(self._path, encode_json(asdict(answer)), answer.session)


def tell_checkpoints(answer: Answer | None, epochs_kept: str) -> str:
    """What `Ready` tells of checkpoints: the epochs that a training can go on from, or that it is answered."""
    return epochs_kept if answer is None else f"answered in {answer.session} after {answer.epochs}"


def epochs_answered(told: Iterable[Ready]) -> int:
    """Those of the training in which all data parties have the answer; 0 where they have not.

    Args:
        told: by the data parties.
    """
    texts = {ready.checkpoint for ready in told}
    found = re.fullmatch(rf"answered in {SESSION.strip('^$')} after (\d{{1,5}})", next(iter(texts)))
    return int(found.group(1)) if found and len(texts) == 1 else 0
