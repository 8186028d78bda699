"""Every party of a vertical project as a node of this process: real sessions over TLS, and a coordinator.

python -m tests.vertical.nodes DIRECTORY N   N small trainings; prints this process's memory in MiB after each
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity import authority
from blindfit.parties.node import PartyNode, set_up_logs
from blindfit.parties.systems import load_party
from blindfit.parties.work.memory import one_heap
from tests.vertical.project import ROLES, Project

SMALL = ("taylor.batch_rows=60", "taylor.epochs=1")
ROWS = 96


@dataclass(frozen=True)
class Nodes:
    root: Path
    by_name: dict[str, PartyNode]

    def job(self, *overrides: str) -> JobSession:
        addresses = {name: f"127.0.0.1:{node.port}" for name, node in self.by_name.items()}
        job = load_job(self.root / "job.toml", [*SMALL, *overrides])
        return JobSession(job, addresses, identity_of(self.root / "ca", "coordinator"))


@asynccontextmanager
async def nodes_in(root: Path) -> AsyncIterator[Nodes]:
    Project.make(root, rows=ROWS)
    authority.create_authority(root / "ca", "test-authority")
    for name in (*ROLES, "coordinator"):
        authority.issue(root / "ca", name, ["localhost"])
    nodes = {name: _node(root, name) for name in ROLES}
    try:
        for node in nodes.values():
            await node.start()
        yield Nodes(root, nodes)
    finally:
        for node in nodes.values():
            await node.stop()


def _node(root: Path, name: str) -> PartyNode:
    files = authority.PartyFiles.in_folder(root / "ca" / name)
    paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
    table = ", ".join(f"{key} = {json.dumps(str(path))}" for key, path in paths.items())
    return PartyNode(load_party(root / f"{name}.toml", ["listen=127.0.0.1:0", f"identity={{{table}}}"]), root)


async def many_sessions(root: Path, count: int) -> None:
    async with nodes_in(root) as nodes:
        for _ in range(count):
            await nodes.job().run()
            gc.collect()
            status = Path("/proc/self/status").read_text().splitlines()
            print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")), flush=True)


if __name__ == "__main__":
    one_heap()
    set_up_logs("error", "text")
    asyncio.run(many_sessions(Path(sys.argv[1]), int(sys.argv[2])))
