"""The nodes of a small vertical world, which keep running for several jobs.

python -m tests.vertical.nodes DIRECTORY N   N small trainings; prints this process's memory in MiB after each
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from blindfit.coordinator.running.session import JobSession
from blindfit.parties.node import PartyNode, set_up_logs
from blindfit.parties.work.memory import one_heap
from tests.world.vertical import bank_and_shops

SMALL = ("taylor.batch_rows=60", "taylor.epochs=1")
ROWS = 96
NewJob = Callable[..., JobSession]


@asynccontextmanager
async def nodes_in(root: Path) -> AsyncIterator[tuple[dict[str, PartyNode], NewJob]]:
    """Yield the nodes, and a function that makes a session of a job between them."""
    world = bank_and_shops(root, rows=ROWS)
    async with world.up(world.load()) as nodes:
        yield nodes, lambda *overrides: world.session(world.load(*SMALL, *overrides), nodes)


async def many_sessions(root: Path, count: int) -> None:
    async with nodes_in(root) as (_, job):
        for _ in range(count):
            await job().run()
            gc.collect()
            status = Path("/proc/self/status").read_text().splitlines()
            print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")), flush=True)


if __name__ == "__main__":
    one_heap()
    set_up_logs("error", "text")
    asyncio.run(many_sessions(Path(sys.argv[1]), int(sys.argv[2])))
