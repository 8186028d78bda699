"""Parties of a chain, each a process behind wires that can be cut, and a coordinator that names a culprit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.running import session as coordinator
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.systems import SYSTEMS
from tests.blame import relay
from tests.world import World
from tests.world.world import COORDINATOR

Fault = Literal["frozen", "thawed", "killed", "silent wires", "cut wires", "cut wires but for the coordinator's"]
FAULTS: tuple[Fault, ...] = Fault.__args__  # type: ignore[attr-defined]
STEP_S, RECONNECT_S = 8.0, 6.0  # on a busy machine a healthy party takes seconds for a handshake


class Wire:
    """A TCP proxy to one party, for one other party."""

    def __init__(self, to: str) -> None:
        self._to = to.rpartition(":")
        self._open: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self._refuses = False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

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
                there, back = await asyncio.open_connection(self._to[0], int(self._to[2]))
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
class Chain(World):
    wires: dict[tuple[str, str], Wire] = field(default_factory=dict)  # by caller and called party

    async def begin(self, size: int) -> None:
        for place in range(size):
            self.key_node(f"p{place}", policy={"systems": ["relay"]}, log_format="json")
        self.at_addresses()
        for caller in (*self.roles, COORDINATOR):
            for name in self.roles.keys() - {caller}:
                wire = self.wires[caller, name] = Wire(self.settings(name).listen)
                await wire.start()
                if caller != COORDINATOR:
                    self.set(f"peers.{name}.address", wire.address, caller)
        self.job("relay", name="chain", timeouts={"step_s": STEP_S, "reconnect_s": RECONNECT_S})
        self.start_relays(*self.roles)

    def start_relays(self, *names: str) -> None:
        self.start(*names, module=("tests.blame.relay",))

    def ends(self, name: str, session: str) -> list[dict[str, str]]:
        """Return what a party's log reports about the end of a session."""
        lines = [json.loads(line) for line in self.log(name).splitlines() if line.startswith("{")]
        return [
            line
            for line in lines
            if line.get("session") == session and line["event"] in ("session failed", "session is cancelled")
        ]

    # --- faults

    def strike(self, victim: str, fault: Fault) -> None:
        if fault in ("frozen", "thawed"):
            self.processes[victim].send_signal(signal.SIGSTOP)
        elif fault == "killed":
            self.processes[victim].kill()
        for pair, wire in self.wires.items():
            if "wires" in fault and victim in pair and not (COORDINATOR in pair and "but" in fault):
                wire.cut(silently=fault == "silent wires")

    def mend(self, victim: str, fault: Fault) -> None:
        if fault == "frozen":
            self.processes[victim].send_signal(signal.SIGCONT)
        if fault == "killed":
            self.processes[victim].wait()
            self.start_relays(victim)
        for wire in self.wires.values():
            wire.mend()

    async def blamed(self, victim: str, fault: Fault, after_s: float) -> tuple[BlindfitError, str]:
        """Return the error of a job in which a party is struck, and the job's session."""
        addresses = {name: self.wires[COORDINATOR, name].address for name in self.roles}
        session = JobSession(self.load(), addresses, identity_of(self.root / "ca", COORDINATOR))
        started = asyncio.Event()
        session.on_event = lambda _party, _event: started.set()
        running = asyncio.create_task(session.run())
        await started.wait()
        await asyncio.sleep(after_s)
        self.strike(victim, fault)
        if fault == "thawed":  # once the others' deadlines have passed, and before anybody has decided
            await asyncio.sleep(STEP_S + 0.1)
            self.processes[victim].send_signal(signal.SIGCONT)
        with pytest.raises(BlindfitError) as caught:
            await running
        self.mend(victim, fault)
        return caught.value, session.id


@contextlib.asynccontextmanager
async def chain_of(root: Path, size: int) -> AsyncIterator[Chain]:
    chain = Chain(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SYSTEMS, "relay", relay.system)  # this process proposes the system
        patch.setattr(coordinator, "CANCEL_TIMEOUT_S", 0.5)  # a frozen party makes everybody wait for it
        try:
            await chain.begin(size)
            yield chain
        finally:
            chain.stop()
            for wire in chain.wires.values():
                await wire.stop()
