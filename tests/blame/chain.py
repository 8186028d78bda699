"""Parties of a chain, each a process behind wires that can be cut, and a coordinator that says whom it blames."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import tomli_w

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running import session as coordinator
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity import authority
from blindfit.parties.systems import SYSTEMS
from tests.blame import relay
from tests.command import Forked

Fault = Literal["frozen", "thawed", "killed", "silent wires", "cut wires", "cut wires but for the coordinator's"]
FAULTS: tuple[Fault, ...] = Fault.__args__  # type: ignore[attr-defined]
ROOT = Path(__file__).parents[2]
COORDINATOR = "coordinator"
STEP_S, RECONNECT_S = 8.0, 6.0  # on a busy machine a party that is well takes seconds for a handshake


class Wire:
    """A TCP proxy to one party, for one other."""

    def __init__(self) -> None:
        self.port = self.to = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self._refuses = False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self, *, silently: bool) -> None:
        self._passes.clear()
        self._refuses = not silently
        if not silently:
            for writer in list(self._open):
                writer.transport.abort()

    def mend(self) -> None:
        self._passes.set()
        self._refuses = False

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._refuses:
                return
            with contextlib.suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", self.to)
                self._open.add(back)
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._pump(reader, back))
                        group.create_task(self._pump(there, writer))
                except* OSError:
                    pass
                finally:
                    self._open.discard(back)
                    back.transport.abort()
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._passes.wait()
            sink.write(data)
            await sink.drain()
        raise ConnectionResetError  # ends the other half too


@dataclass
class Chain:
    root: Path
    size: int
    processes: dict[str, Forked] = field(default_factory=dict)
    wires: dict[tuple[str, str], Wire] = field(default_factory=dict)  # by who calls, and whom

    @property
    def names(self) -> list[str]:
        return [f"p{place}" for place in range(self.size)]

    async def start(self) -> None:
        authority.create_authority(self.root / "ca", "test-authority")
        for name in (*self.names, COORDINATOR):
            authority.issue(self.root / "ca", name, ["localhost"])
        for caller in (*self.names, COORDINATOR):
            for name in self.names:
                if name != caller:
                    self.wires[caller, name] = Wire()
                    await self.wires[caller, name].start()
        for name in self.names:
            (self.root / f"{name}.toml").write_text(tomli_w.dumps(self._file(name)))
        parties = {name: {"role": "key-node"} for name in self.names}
        timeouts = {"step_s": STEP_S, "reconnect_s": RECONNECT_S}
        job = {"protocol": "relay", "name": "chain", "parties": parties, "timeouts": timeouts}
        (self.root / "job.toml").write_text(tomli_w.dumps(job))
        await self.start_parties(*self.names)

    def _file(self, name: str) -> dict[str, object]:
        identity = {kind: f"ca/{name}/{kind}.pem" for kind in ("certificate", "key", "authority")}
        peers = {
            peer: {"role": "key-node", "address": f"127.0.0.1:{self.wires[name, peer].port}"}
            for peer in self.names
            if peer != name
        }
        about = {"name": name, "role": "key-node", "data_dir": f"state/{name}", "log_format": "json"}
        policy = {"systems": ["relay"]}
        return {**about, "identity": identity, "policy": policy, "peers": {**peers, COORDINATOR: {"role": COORDINATOR}}}

    async def start_parties(self, *names: str) -> None:
        for name in names:
            (self.root / f"{name}.port").unlink(missing_ok=True)
            words = [sys.executable, "-m", "tests.blame.relay", "party", str(self.root / f"{name}.toml")]
            with (self.root / f"{name}.log").open("ab") as log:
                self.processes[name] = Forked(
                    [*words, "--ready-file", str(self.root / f"{name}.port")], cwd=ROOT, stdout=log, stderr=log
                )
        for name in names:
            while not (port := self._port(name)):
                assert self.processes[name].poll() is None, self.log(name)
                await asyncio.sleep(0.02)
            for (_, to), wire in self.wires.items():
                if to == name:
                    wire.to = port

    def _port(self, name: str) -> int:
        path = self.root / f"{name}.port"
        return int(text) if path.exists() and (text := path.read_text().strip()) else 0

    def log(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text(errors="replace")

    def ends(self, name: str, session: str) -> list[dict[str, str]]:
        """What a party's log says of the end of a session."""
        lines = [json.loads(line) for line in self.log(name).splitlines() if line.startswith("{")]
        return [
            line
            for line in lines
            if line.get("session") == session and line["event"] in ("session failed", "session is cancelled")
        ]

    async def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        for wire in self.wires.values():
            await wire.stop()

    # --- faults

    def strike(self, victim: str, fault: Fault) -> None:
        if fault in ("frozen", "thawed"):
            self._signal(victim, signal.SIGSTOP)
        elif fault == "killed":
            self.processes[victim].kill()
        for pair, wire in self.wires.items():
            if "wires" in fault and victim in pair and not (COORDINATOR in pair and "but" in fault):
                wire.cut(silently=fault == "silent wires")

    async def mend(self, victim: str, fault: Fault) -> None:
        if fault == "frozen":
            self._signal(victim, signal.SIGCONT)
        if fault == "killed":
            self.processes[victim].wait()
            await self.start_parties(victim)
        for wire in self.wires.values():
            wire.mend()

    def _signal(self, victim: str, number: int) -> None:
        os.kill(self.processes[victim].pid, number)

    async def blamed(self, victim: str, fault: Fault, after_s: float) -> tuple[BlindfitError, str]:
        """What a job ends with in which a party is struck, and the job's session."""
        job = load_job(self.root / "job.toml")
        addresses = {name: f"127.0.0.1:{self.wires[COORDINATOR, name].port}" for name in self.names}
        session = JobSession(job, addresses, identity_of(self.root / "ca", COORDINATOR))
        started = asyncio.Event()
        session.on_event = lambda _party, _event: started.set()
        running = asyncio.create_task(session.run())
        await started.wait()
        await asyncio.sleep(after_s)
        self.strike(victim, fault)
        if fault == "thawed":  # once the others' deadlines have passed, and before anybody has decided
            await asyncio.sleep(STEP_S + 0.1)
            self._signal(victim, signal.SIGCONT)
        with pytest.raises(BlindfitError) as caught:
            await running
        await self.mend(victim, fault)
        return caught.value, session.id


@contextlib.asynccontextmanager
async def chain_of(root: Path, size: int) -> AsyncIterator[Chain]:
    chain = Chain(root, size)
    root.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SYSTEMS, "relay", relay.system)  # which this process proposes
        patch.setattr(coordinator, "CANCEL_TIMEOUT_S", 0.5)  # which a frozen party makes everybody wait
        try:
            await chain.start()
            yield chain
        finally:
            await chain.stop()


if __name__ == "__main__":  # python -m tests.blame.chain ROOT SIZE VICTIM FAULT

    async def once() -> None:
        root, size, victim, fault = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
        async with chain_of(root, size) as chain:
            began = time.monotonic()
            error, session = await chain.blamed(victim, fault, 0.5)  # type: ignore[arg-type]
            print(f"{time.monotonic() - began:.1f} s:", error)
            for name in chain.names:
                print(name, chain.ends(name, session))

    asyncio.run(once())
