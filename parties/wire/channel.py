"""Channels of one process: the in-memory one, which still serialises, for tests and for `run_locally` over messages."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from blindfit.algorithms.errors import PeerAborted, PeerTimeout
from blindfit.parties.wire import codec, error_codes

M = TypeVar("M")
Wire = Callable[[str, str, str, bytes], bytes]  # (sender, receiver, step, data) -> what arrives


def aborted_by(peer: str, code: int, step: str, session: str = "") -> PeerAborted:
    return PeerAborted(culprit=peer, code=error_codes.name_of(code), session=session, step=step)


class LocalNetwork:
    """Several seats in one process. Every message passes through the codec, and `wire`, where a test tampers."""

    def __init__(self, timeout_s: float = 10.0, wire: Wire = lambda _s, _r, _step, data: data) -> None:
        self._queues: dict[tuple[str, str], asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)
        self.timeout_s, self.wire = timeout_s, wire
        self.sent: list[tuple[str, str, str]] = []  # sender, receiver, message class: the protocol's table

    def channel(self, name: str) -> LocalChannel:
        return LocalChannel(self, name)

    def queue(self, sender: str, receiver: str) -> asyncio.Queue[bytes]:
        return self._queues[sender, receiver]


class LocalChannel:
    def __init__(self, network: LocalNetwork, name: str) -> None:
        self._network, self._name = network, name

    async def send(self, to: str, message: object) -> None:
        step = type(message).__name__
        data = self._network.wire(self._name, to, step, codec.encode(message))
        self._network.sent.append((self._name, to, step))
        self._network.queue(self._name, to).put_nowait(data)

    async def receive(self, sender: str, kind: type[M]) -> M:
        try:
            async with asyncio.timeout(self._network.timeout_s):
                data = await self._network.queue(sender, self._name).get()
        except TimeoutError:
            raise PeerTimeout(peer=sender, step=kind.__name__, timeout_s=self._network.timeout_s) from None
        return codec.decode(data, kind, culprit=sender)
