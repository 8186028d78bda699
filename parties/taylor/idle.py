"""While a party waits for a peer, it makes randomisers for what it will encrypt next."""

from __future__ import annotations

from typing import TypeVar

from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.randomisers import RandomiserPool

M = TypeVar("M")


class IdleChannel:
    """A channel whose waits fill a pool of randomisers."""

    def __init__(self, channel: Channel, randomisers: Randomisers) -> None:
        self._channel, self._randomisers = channel, randomisers

    async def send(self, to: str, message: object) -> None:
        await self._channel.send(to, message)

    async def receive(self, sender: str, kind: type[M]) -> M:
        if not isinstance(self._randomisers, RandomiserPool):
            return await self._channel.receive(sender, kind)
        with self._randomisers.filling():
            return await self._channel.receive(sender, kind)
