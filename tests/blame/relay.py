"""A system of no release: a token goes down a chain of parties and up again, so that each waits for the next.

As a command it is Blindfit's with this additional system: each party is a process.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from blindfit.algorithms.messages import Integer
from blindfit.algorithms.protocols.table import KEY, ROUNDS, Arrow, Table
from blindfit.coordinator.cli.main import main
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.system import Role, Summary, System
from blindfit.parties.systems import SYSTEMS
from blindfit.parties.tables import Settings


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    round: Integer


TABLE = Table("relay", Arrow("0", KEY, KEY, Token, ROUNDS, "a token"))


class RelaySettings(Settings):
    rounds: int = Field(10**6, ge=1)


class RelayJob(JobParameters):
    protocol: Literal["relay"] = "relay"
    relay: RelaySettings = RelaySettings()


class Runner:
    def __init__(self, party: Party) -> None:
        pass

    def check(self, job: RelayJob, me: Member) -> None:
        pass

    async def run(self, session: Session[RelayJob]) -> Summary:
        chain, channel = sorted(session.members), session.channel
        place = chain.index(session.me.name)
        before, after = chain[place - 1 : place] or [None], chain[place + 1 : place + 2] or [None]
        for number in range(session.job.relay.rounds):
            if before[0]:
                await channel.receive(before[0], Token)
            if after[0]:
                await channel.send(after[0], Token(number))
                await channel.receive(after[0], Token)
            if before[0]:
                await channel.send(before[0], Token(number))
        return {"rounds": session.job.relay.rounds}


def system() -> System[Any]:
    return System(RelayJob, {"key-node": Role(2, 8, Runner)}, tables=lambda: (TABLE,), recorded=False)


if __name__ == "__main__":
    SYSTEMS["relay"] = system
    main(command=(sys.executable, "-m", "tests.blame.relay"))
