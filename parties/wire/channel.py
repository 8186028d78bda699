"""Channels within one process. They serialise each message, and serve tests and `run_locally` over messages."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TypeVar

from blindfit.algorithms.errors import PeerAborted, PeerTimeout
from blindfit.algorithms.protocols.table import Gate, Table, list_arrows
from blindfit.parties.wire import codec, error_codes

M = TypeVar("M")
Wire = Callable[[str, str, str, bytes], bytes]  # (sender, receiver, step, data) -> what arrives


def make_aborted(peer: str, code: int, step: str, session: str = "", lost: str = "") -> PeerAborted:
    return PeerAborted(culprit=peer, code=error_codes.name_of(code), session=session, step=step, lost=lost)


class LocalNetwork:
    """A network of parties in one process. Every message passes through the codec, and through `wire`, where a test may
    change it.

    Args:
        roles: role of every party, by name.
        tables: messages that these parties may send each other.
    """

    def __init__(
        self,
        roles: Mapping[str, str],
        *tables: Table,
        timeout_s: float = 10.0,
        wire: Wire = lambda _s, _r, _step, data: data,
    ) -> None:
        self.roles, self.listed = roles, list_arrows(tables)
        self._queues: dict[tuple[str, str], asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)
        self.timeout_s, self.wire = timeout_s, wire
        self.sent: list[tuple[str, str, str]] = []  # sender, receiver, message class, as in the protocol's table

    def channel(self, name: str) -> LocalChannel:
        return LocalChannel(self, name)

    def queue(self, sender: str, receiver: str) -> asyncio.Queue[bytes]:
        return self._queues[sender, receiver]

    @property
    def unread(self) -> list[tuple[str, str]]:
        """Sender and receiver of messages that nobody has received."""
        return [ends for ends, queue in self._queues.items() if not queue.empty()]


class LocalChannel:
    def __init__(self, network: LocalNetwork, name: str) -> None:
        self._network, self._name = network, name
        self._gate = Gate(network.roles[name], network.roles, network.listed)

    async def send(self, to: str, message: object) -> None:
        self._gate.check_sent(message, to)
        step = type(message).__name__
        data = self._network.wire(self._name, to, step, codec.encode(message))
        self._network.sent.append((self._name, to, step))
        self._network.queue(self._name, to).put_nowait(data)

    async def receive(self, sender: str, kind: type[M]) -> M:
        self._gate.check_asked(kind, sender)
        try:
            async with asyncio.timeout(self._network.timeout_s):
                data = await self._network.queue(sender, self._name).get()
        except TimeoutError:
            raise PeerTimeout(peer=sender, step=kind.__name__, timeout_s=self._network.timeout_s) from None
        return codec.decode(data, kind, culprit=sender)
