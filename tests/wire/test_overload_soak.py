"""Row 27: hostile peers with every limit used up; the honest ones' jobs end, and the memory has a bound.

What was taken is given back to the allocator, which keeps some of it: the test prints how much.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.protocols import walr
from blindfit.parties.identity import connections as tls
from blindfit.parties.measurement.client import MeasurementClient
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2, control_pb2_grpc, exchange_pb2_grpc
from blindfit.protos import exchange_pb2 as pb
from tests.certificates import make_identity
from tests.measurement.talking import ROOT
from tests.wire.meter import N_ROWS
from tests.wire.test_limits import WATCH, proposal
from tests.wire.test_overload import idlers, swollen

MIB = 2**20
ONE = 2**16
LIMITS = Limits()
HONEST = 20  # jobs
DIFFERENT = 400  # requests of one consumer
MOST_MORE_MIB = 1024  # what two hostile peers may have unread, LIMITS.peer_bytes each
BROKEN = (grpc.aio.AioRpcError, asyncio.InvalidStateError, BlindfitError)


@dataclass
class Meter:
    authority: Path
    process: subprocess.Popen[str]
    port: int

    @property
    def memory_mib(self) -> float:
        self.process.stdin.write("memory\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    @contextlib.asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[grpc.aio.Channel]:
        async with await tls.open_channel(
            make_identity(self.authority, name), "meter", f"127.0.0.1:{self.port}"
        ) as channel:
            yield channel

    async def ask(self, name: str, release: str, epsilon: float) -> None:
        own = make_identity(self.authority, name)
        client = MeasurementClient(own, "meter", f"127.0.0.1:{self.port}", step_timeout_s=60)
        described = await client.describe("labels")
        settings = walr.ReleaseSettings("labels", described.version, epsilon=epsilon, delta=1e-6, release=release)
        rows = walr.ConsumerRows(tuple(map(str, range(N_ROWS))), np.full((N_ROWS, 2), ONE // 4, np.int32))
        await client.aggregate(rows, walr.step_1_open(rows, ONE, settings, (b"", b"")))


@pytest.fixture
def meter(authority: Path, tmp_path: Path) -> Iterator[Meter]:
    command = [sys.executable, "-m", "tests.wire.overloaded", str(authority), str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        try:
            yield Meter(authority, process, int(process.stdout.readline()))
        finally:
            process.terminate()


# --- attacks ------------------------------------------------------------------------------------------------


async def every_call(meter: Meter, stack: contextlib.AsyncExitStack) -> None:
    """Streams that are read by nobody, and calls whose request never comes; over several connections."""
    for n in range(4):
        channel = await stack.enter_async_context(meter.connected("helper"))
        calls = [channel.stream_stream(WATCH)() for _ in range(64)]
        for call in calls:
            stack.callback(call.cancel)
            if n % 2:
                with contextlib.suppress(*BROKEN):
                    await call.write(b"")


async def every_session(meter: Meter, stack: contextlib.AsyncExitStack, attack: str) -> None:
    """Sessions that never start, each with half of a message; and proposals that are none."""
    boss = await stack.enter_async_context(meter.connected("boss"))
    control = control_pb2_grpc.ControlStub(boss)
    silly = proposal(f"{attack}-silly")
    silly.parameters.CopyFrom(swollen(**{f"name-{i}": {"integer": 1} for i in range(15_000)}))
    answers = await asyncio.gather(*(control.Propose(silly) for _ in range(20)), return_exceptions=True)
    assert {answer.details() for answer in answers} == {"MALFORMED_MESSAGE"}
    asked = [proposal(f"{attack}-{n}") for n in range(LIMITS.sessions + 5)]
    for one in asked:
        next(member for member in one.members if member.role == "active").name = "rival"
    answers = await asyncio.gather(*map(control.Propose, asked), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert [error.details() for error in refused] == ["LIMIT_EXCEEDED"] * 5
    rival = await stack.enter_async_context(meter.connected("rival"))
    await asyncio.gather(*(half_a_message(rival, one.session, stack) for one in asked))
    await asyncio.sleep(1)
    for one in asked[: LIMITS.sessions]:
        await control.Cancel(control_pb2.SessionRequest(session=one.session))


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


async def different_requests(meter: Meter, attack: str) -> None:
    for n in range(DIFFERENT):
        await meter.ask("rival", f"{attack}-{n}", 1e-4 + n * 1e-9)


async def honest_jobs(meter: Meter, name: str) -> float:
    """Returns how long one took, in the mean."""
    began = time.monotonic()
    for n in range(HONEST):
        await meter.ask("shop", f"{name}-{n}", 0.01)
        async with meter.connected("coordinator") as channel:
            control = control_pb2_grpc.ControlStub(channel)
            assert (await control.Propose(proposal(f"honest-{name}-{n}"))).state == control_pb2.ACCEPTED
            await control.Cancel(control_pb2.SessionRequest(session=f"honest-{name}-{n}"))
    return (time.monotonic() - began) / HONEST


async def attacked(meter: Meter, attack: str) -> float:
    async with contextlib.AsyncExitStack() as stack, idlers(meter.port, 1600):
        await every_call(meter, stack)
        hostile = [
            asyncio.create_task(different_requests(meter, attack)),
            asyncio.create_task(every_session(meter, stack, attack)),
        ]
        took_s = await honest_jobs(meter, attack)
        await asyncio.gather(*hostile)
    return took_s


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_honest_jobs_end_and_the_memory_is_bounded(meter: Meter) -> None:
    alone_s, memory = await honest_jobs(meter, "alone"), [meter.memory_mib]
    took_s = []
    for n in range(4):
        took_s.append(await attacked(meter, f"attack-{n}"))
        memory.append(meter.memory_mib)
    jobs, used = (", ".join(f"{each:.2f}" for each in some) for some in (took_s, memory))
    print(f"a job: {alone_s:.2f} s alone, {jobs} s under attack; memory, MiB, before and after each: {used}")
    assert max(memory) < memory[0] + MOST_MORE_MIB
