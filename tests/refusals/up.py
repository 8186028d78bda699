"""Answers of `check` and `submit` with running parties, in this process."""

from __future__ import annotations

import asyncio

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.parties import ask_parties
from tests.certificates import quick_connections
from tests.world import World


def answers(world: World, *sets: str, first_snapshots: bool = True) -> tuple[str, str]:
    """Return the first refusal of `check`, and how `submit` ends; "" for no refusal.

    Args:
        first_snapshots: True if the parties publish what was never published, as at their start.
    """
    return asyncio.run(_answers(world, world.load(*sets), first_snapshots=first_snapshots))


async def _answers(world: World, job: Job, *, first_snapshots: bool) -> tuple[str, str]:
    with quick_connections(world.root / "ca"):
        async with world.up(job, first_snapshots=first_snapshots) as nodes:
            parties = {
                name: {"role": party.role, "dataset": party.dataset, "address": f"127.0.0.1:{nodes[name].port}"}
                for name, party in job.parties.items()
            }
            files = {kind: str(world.root / path) for kind, path in world._identity("coordinator").items()}
            asked = Job({**job.parameters.to_tables(), "parties": parties, "coordinator": files}, folder=world.root)
            findings = await ask_parties(asked)
            kept = [row for node in nodes.values() for row in node.party.store.reader().sessions()]
            assert kept == []  # nothing of a job that is only checked
            try:
                await world.session(asked, nodes).run()
            except BlindfitError as error:
                said = str(error)
            else:
                said = ""
            return next((finding.text for finding in findings if finding.refuses), ""), said
