"""The process of all relays of a job: `python -m blindfit.coordinator.running.network.worker`.

It has its own event loop, so that no computation of the command delays a byte. It reads orders, one JSON document on
each line, and ends when the command ends.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import sys
from typing import Any

from blindfit.coordinator.job.network import Line
from blindfit.coordinator.running.network.link import Link
from blindfit.coordinator.running.network.relay import Cable, ExactSelector, Relay

Pair = frozenset[str]


class Worker:
    """The relays of one job, by the party that dials and the party that it finds there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._cables: dict[Pair, tuple[str, Cable]] = {}
        self._relays: dict[tuple[str, str], Relay] = {}

    def follow(self, order: dict[str, Any]) -> list[int]:
        """Follow an order, and return the ports of the relays that it opens.

        Args:
            order: `open`: lists of a dialling party, a dialled party, the host and port of the latter, and the link's
                latency, jitter and bandwidth; `cut`, `mend`: lists of two parties.
        """
        for pair in order.get("cut", ()):
            self._cables[frozenset(pair)][1].breaker.cut()
        for pair in order.get("mend", ()):
            self._cables[frozenset(pair)][1].breaker.mend()
        return [self._open(*relay) for relay in order.get("open", ())]

    def _open(self, dialling: str, dialled: str, host: str, port: int, *line: float) -> int:
        """Open a relay, or lead the existing relay to another address."""
        relay = self._relays.get((dialling, dialled))
        if relay is None:
            first, cable = self._cables.setdefault(
                frozenset((dialling, dialled)), (dialling, Cable(Link(Line(*line)), Link(Line(*line))))
            )
            relay = Relay((host, port), cable if first == dialling else cable.turn(), self._loop)
            self._relays[dialling, dialled] = relay
        relay.address = host, port
        return relay.port


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    worker = Worker(loop)
    while order := await reader.readline():
        sys.stdout.write(json.dumps(worker.follow(json.loads(order))) + "\n")
        sys.stdout.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command handles Ctrl-C, and ends this process last
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(ExactSelector())) as runner:
        runner.run(_serve())


if __name__ == "__main__":
    main()
