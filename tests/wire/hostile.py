"""Peers in a separate process that use up every limit of a server until standard input ends. The answer to each line of
input is the number of attacks until then.

python -m tests.wire.hostile AUTHORITY PORT ATTACK
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import numpy as np

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.protocols import walr
from blindfit.parties.identity import connections as tls
from blindfit.parties.measurement.calls import MeasurementCalls
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2, control_pb2_grpc, exchange_pb2_grpc, measurement_pb2, measurement_pb2_grpc
from blindfit.protos import exchange_pb2 as pb
from tests.certificates import make_identity
from tests.wire.calls import WATCH, proposal
from tests.wire.floods import idlers, swollen
from tests.wire.meter import N_ROWS

MIB = 2**20
ONE, COLUMNS = 2**16, 8
LIMITS = Limits()
IDLE = 1600  # connections
AT_ONCE = 16  # requests: of more uploads at once than 20, the rest are refused
BROKEN = (grpc.aio.AioRpcError, asyncio.InvalidStateError, BlindfitError)


class Attacker:
    """Args:
    authority: folder of the authority whose certificates the server trusts.
    """

    def __init__(self, authority: Path, port: int) -> None:
        self._authority, self.address, self.port = authority, f"127.0.0.1:{port}", port
        self.made, self.stops = 0, False

    @contextlib.asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[grpc.aio.Channel]:
        async with await tls.open_channel(make_identity(self._authority, name), "meter", self.address) as channel:
            yield channel

    def client(self, name: str) -> MeasurementCalls:
        return MeasurementCalls(make_identity(self._authority, name), "meter", self.address, step_timeout_s=120)


async def ask(client: MeasurementCalls, release: str, epsilon: float, n_rows: int = N_ROWS) -> None:
    described = await client.describe("labels")
    settings = walr.ReleaseSettings("labels", described.snapshot, epsilon=epsilon, delta=1e-6, release=release)
    rows = walr.ConsumerRows(tuple(map(str, range(n_rows))), np.full((n_rows, COLUMNS), ONE // 4, np.int32))
    await client.aggregate(rows, walr.step_1_open(rows, ONE, settings, (b"", b"")))


# --- attacks ------------------------------------------------------------------------------------------------


async def connections(attacker: Attacker) -> None:
    """Open connections that send nothing."""
    while True:
        async with idlers(attacker.port, IDLE):
            attacker.made += 1
            await asyncio.sleep(5)


async def calls(attacker: Attacker) -> None:
    """Open streams that nobody reads, and calls whose request never comes, over several and ever new connections."""
    async with contextlib.AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(attacker.connected("helper")) for _ in range(4)]
        while True:
            held = [channel.stream_stream(WATCH)() for channel in channels for _ in range(LIMITS.calls_of_a_peer)]
            for call in held[::2]:
                with contextlib.suppress(*BROKEN):
                    await call.write(b"")
            await asyncio.sleep(0.1)
            for call in held:
                call.cancel()
            attacker.made += 1


async def sessions(attacker: Attacker) -> None:
    """Open sessions that never start, each with half of a message, and send invalid proposals."""
    async with attacker.connected("boss") as boss, attacker.connected("rival") as rival:
        control = control_pb2_grpc.ControlStub(boss)
        for _ in itertools.count():
            await asyncio.gather(*(control.Propose(silly()) for _ in range(20)), return_exceptions=True)
            asked = [proposal(f"hostile-{secrets.token_hex(8)}") for _ in range(LIMITS.sessions + 5)]
            for one in asked:
                next(member for member in one.members if member.role == "active").name = "rival"
            await asyncio.gather(*map(control.Propose, asked), return_exceptions=True)
            async with contextlib.AsyncExitStack() as stack:
                await asyncio.gather(*(half_a_message(rival, one.session, stack) for one in asked))
            for one in asked:
                with contextlib.suppress(*BROKEN):
                    await control.Cancel(control_pb2.SessionRequest(session=one.session))
            attacker.made += 1


def silly() -> control_pb2.Proposal:
    made = proposal(f"silly-{secrets.token_hex(8)}")
    made.parameters.CopyFrom(swollen(**{f"name-{i}": {"integer": 1} for i in range(15_000)}))
    return made


async def half_a_message(channel: grpc.aio.Channel, session: str, stack: contextlib.AsyncExitStack) -> None:
    stream = exchange_pb2_grpc.ExchangeStub(channel).Open()
    stack.callback(stream.cancel)
    with contextlib.suppress(TimeoutError, *BROKEN):
        async with asyncio.timeout(5):
            await stream.write(pb.Frame(session=session, sender="rival", hello=pb.Hello(outbox="x")))
            for number in range(1, 200):
                chunk = pb.Chunk(data=bytes(MIB))
                await stream.write(
                    pb.Frame(session=session, sender="rival", sequence=number, step="Hello", chunk=chunk)
                )


async def requests(attacker: Attacker) -> None:
    """Send different requests, each of which is charged and kept, as many at once as the limits allow."""

    async def one_after_the_other() -> None:
        client = attacker.client("rival")
        while not attacker.stops:
            await ask(client, secrets.token_hex(8), 1e-4 + secrets.randbelow(10**6) * 1e-12)
            attacker.made += 1

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


async def refusals(attacker: Attacker) -> None:
    """Make calls that are refused and cost the caller nothing."""

    async def one_after_the_other() -> None:
        async with attacker.connected("rival") as channel:
            stub = measurement_pb2_grpc.MeasurementStub(channel)
            while True:
                with contextlib.suppress(*BROKEN):
                    await stub.Describe(measurement_pb2.DescribeDatasetRequest(dataset="of others"))
                attacker.made += 1

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


ATTACKS: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    attack.__name__: attack for attack in (connections, calls, sessions, requests, refusals)
}


async def until_told(attacker: Attacker, attack: str) -> None:
    making = asyncio.ensure_future(ATTACKS[attack](attacker))
    while await asyncio.to_thread(sys.stdin.readline):
        if making.done():
            making.result()
        print(attacker.made, flush=True)
    attacker.stops = True
    if attack != "requests":  # uploads that are broken off count, and soon it could make no more
        making.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await making


if __name__ == "__main__":
    os.nice(19)  # an attacker has other machines: on this one it takes what nobody else needs
    folder, listening, chosen = sys.argv[1:]
    asyncio.run(until_told(Attacker(Path(folder), int(listening)), chosen))
