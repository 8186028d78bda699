"""If a hostile peer uses up every limit, honest jobs end in at most twice the time, and the resources come back."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from blindfit.protos import control_pb2, control_pb2_grpc
from tests.measurement.talking import ROOT
from tests.wire import hostile
from tests.wire.calls import proposal
from tests.wire.overloaded import ROWS

PIPE = subprocess.PIPE
ROUNDS, JOBS = 7, 5  # rounds of honest jobs, before each attack and under it
MOST_SLOWER = 2.0
MOST_MORE_MIB = 10.0
GIVEN_BACK_S = 60.0


@dataclass
class Meter:
    authority: Path
    process: subprocess.Popen[str]
    port: int

    @property
    def memory_mib(self) -> float:
        return float(_answer(self.process))

    @contextlib.contextmanager
    def attacked(self, attack: str) -> Iterator[None]:
        command = [sys.executable, "-m", "tests.wire.hostile", str(self.authority), str(self.port), attack]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=ROOT) as process:
            while not int(_answer(process)):
                time.sleep(0.1)
            yield
            print(f"{attack}: made {_answer(process)} times")
            process.stdin.close()


def _answer(process: subprocess.Popen[str]) -> str:
    process.stdin.write("?\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.fixture
def meter(authority: Path, tmp_path: Path) -> Iterator[Meter]:
    command = [sys.executable, "-m", "tests.wire.overloaded", str(authority), str(tmp_path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=ROOT) as process:
        try:
            yield Meter(authority, process, int(process.stdout.readline()))
        finally:
            process.terminate()


async def honest_jobs(meter: Meter, name: str) -> float:
    """Return the median time of an honest release and of a session that is proposed and withdrawn."""
    own = hostile.Attacker(meter.authority, meter.port)
    took_s = []
    for n in range(JOBS):
        began = time.monotonic()
        await hostile.ask(own.client("shop"), f"{name}-{n}", 0.01, ROWS)
        async with own.connected("coordinator") as channel:
            control = control_pb2_grpc.ControlStub(channel)
            session = f"honest-{name}-{n}"
            assert (await control.Propose(proposal(session))).state == control_pb2.ACCEPTED
            await control.Cancel(control_pb2.SessionRequest(session=session))
        took_s.append(time.monotonic() - began)
    return statistics.median(took_s)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("attack", hostile.ATTACKS)
async def test_honest_jobs_end_and_the_memory_comes_back(meter: Meter, attack: str) -> None:
    await honest_jobs(meter, "first")  # the memory that any process needs
    before, slower = meter.memory_mib, []
    for n in range(ROUNDS):  # in turn, because a machine's speed drifts
        alone_s = await honest_jobs(meter, f"alone-{n}")
        with meter.attacked(attack):
            attacked_s = await honest_jobs(meter, f"attacked-{n}")
            print(f"{alone_s * 1e3:.0f} ms alone, {attacked_s * 1e3:.0f} ms, {meter.memory_mib:.0f} MiB")
            slower.append(attacked_s / alone_s)
    kept, give_up = meter.memory_mib - before, time.monotonic() + GIVEN_BACK_S
    while kept >= MOST_MORE_MIB and time.monotonic() < give_up:
        time.sleep(1)
        kept = meter.memory_mib - before
    print(
        f"{attack}: {statistics.median(slower):.2f} times as slow ({', '.join(f'{each:.2f}' for each in slower)}); "
        f"{kept:.1f} MiB kept of {before:.0f}"
    )
    assert statistics.median(slower) <= MOST_SLOWER
    assert kept < MOST_MORE_MIB
