"""The parties of a job file as real nodes of this process: over mutual TLS, with their own files, all logs at hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from blindfit.coordinator.job.job import Job, load_job
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity import authority
from blindfit.parties.node import PartyNode
from blindfit.parties.systems import load_party
from tests.certificates import quick_connections


@dataclass
class Nodes:
    """
    Args:
        root: where the job's and the parties' files are.
        overrides: of every party's file.
    """

    root: Path
    overrides: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.certificates = self.root / "nodes-authority"
        if not self.certificates.exists():
            authority.create_authority(self.certificates, "test-authority")

    def run(
        self, *overrides: str, job: str = "job.toml", beside: Callable[[dict[str, PartyNode]], None] = lambda _: None
    ) -> JobSession:
        """Runs a job to its end; `beside` is called once the parties are up.

        Raises:
            BlindfitError: as the coordinator gets to know it.
        """
        parsed = load_job(self.root / job, list(overrides))
        with quick_connections(self.certificates):
            return asyncio.run(self._run(parsed, beside))

    async def _run(self, job: Job, beside: Callable[[dict[str, PartyNode]], None]) -> JobSession:
        async with self._up(job) as nodes:
            beside(nodes)
            addresses = {name: f"127.0.0.1:{node.port}" for name, node in nodes.items()}
            session = JobSession(job, addresses, identity_of(self.certificates, self._issued("coordinator")))
            await session.run()
            return session

    @contextlib.asynccontextmanager
    async def _up(self, job: Job) -> AsyncIterator[dict[str, PartyNode]]:
        nodes: dict[str, PartyNode] = {}
        try:
            for name, party in job.parties.items():
                files = authority.PartyFiles.in_folder(self.certificates / self._issued(name))
                paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
                identity = ", ".join(f"{what} = {json.dumps(str(path))}" for what, path in paths.items())
                given = ["listen=127.0.0.1:0", f"identity={{{identity}}}", *self.overrides]
                nodes[name] = PartyNode(load_party(self.root / str(party.config), given), self.root)
                await nodes[name].start()
            yield nodes
        finally:
            for node in nodes.values():
                await node.stop()

    def _issued(self, name: str) -> str:
        if not (self.certificates / name).exists():
            authority.issue(self.certificates, name, ["localhost"])
        return name
