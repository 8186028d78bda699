"""The part of a key node in the trainings of a system: the steps that all such systems have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols import ready
from blindfit.algorithms.protocols.ready import Stored
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member, Proposed
from blindfit.parties.sessions.session import Session
from blindfit.parties.vertical.checkpoints import Checkpoints, Running, refuse_another_job, refuse_unknown
from blindfit.parties.vertical.seats import Seats, refuse_dataset

J = TypeVar("J", bound=TrainingParameters)


class KeyNodeSeat(ABC, Generic[J]):
    resume_option: str  # option of the system's jobs

    def __init__(self, party: Party) -> None:
        self._party, self._running = party, Running(party.settings.name, self.resume_option)

    def check(self, job: J, me: Member) -> None:
        """Refuse what can be refused before a session starts. A key node holds no rows."""
        refuse_dataset(me)
        self._running.refuse_another(job.resumes)
        refuse_unknown(self._party.data_dir, job, me.name)

    def check_members(self, asked: Proposed) -> None:
        refuse_another_job(self._party.data_dir, asked, self._party.settings.name, self._party.vault)

    async def run(self, session: Session[J]) -> dict[str, ParameterValue]:
        with self._running.alone(session.job.resumes or session.id):
            checkpoints = Checkpoints.of(self._party.data_dir, session.job, session.id, self._party.vault)
            self._party.note(checkpoints.directory, session.id)
            return await self._train(session, Seats.of(session), checkpoints)

    @abstractmethod
    async def _train(self, session: Session[J], seats: Seats, checkpoints: Checkpoints) -> dict[str, ParameterValue]:
        """Take part in a training; return the figures that the coordinator may see."""

    async def _finish(self, session: Session[J], seats: Seats, checkpoints: Checkpoints, epochs: int) -> None:
        """Remove the files that allow a resumption, once every data party has its part of the model."""
        session.channel.require_all_read(but=Stored)  # while the training could still be resumed
        await ready.run_stored(epochs, seats.chain, session.channel)
        checkpoints.remove()
