"""The engine of a vertical job's ciphertexts at one party: its check, its key, and its randomisers."""

from __future__ import annotations

from typing import TypeVar

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.engines import engine_of
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.randomisers import RandomiserPool
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.workers import THIS_PROCESS, Workers
from blindfit.parties.sessions.session import Session
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.vertical.seats import Seats


def check_engine(job: TaylorJob, party: str) -> None:
    """Check, before a session starts, that this party has the job's engine.

    Raises:
        PolicyRefused: the job's engine is not installed here; the error explains to the proposer how to install it.
    """
    try:
        engine_of(job.paillier.engine)
    except ConfigError as missing:
        raise PolicyRefused(party=party, field="paillier.engine", reason=f"{missing.message}: {missing.hint}") from None


async def receive_key(session: Session[TaylorJob], seats: Seats) -> PublicKey:
    """Return the key node's public key, checked for its use by the job's engine."""
    job = session.job
    engine = engine_of(job.paillier.engine)
    key = await taylor.run_key_exchange(
        seats.key_node, job.taylor.key_bits, session.channel, maker_trusted=engine.maker_trusted
    )
    return engine.adopt_public(key)


def randomisers_of(job: TaylorJob, public_key: PublicKey, rows: int, workers: Workers) -> Randomisers:
    """Return randomisers for batches of `rows` rows; workers make them if a batch is large enough."""
    engine = engine_of(job.paillier.engine)
    return engine.randomisers(public_key, workers=workers if rows >= engine.worker_randomisers else THIS_PROCESS)


M = TypeVar("M")


class IdleChannel:
    """A channel that makes randomisers for the next batches while its party waits for a peer."""

    def __init__(self, channel: Channel, randomisers: Randomisers) -> None:
        self._channel, self._randomisers = channel, randomisers

    async def send(self, to: str, message: object) -> None:
        await self._channel.send(to, message)

    async def receive(self, sender: str, kind: type[M]) -> M:
        if not isinstance(self._randomisers, RandomiserPool):
            return await self._channel.receive(sender, kind)
        with self._randomisers.filling():
            return await self._channel.receive(sender, kind)
