"""Parties in chains are frozen, killed and cut: the command, and the log of every other party, blame the right one."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from blindfit.algorithms.errors import root_party
from tests.blame.chain import FAULTS, Chain, Fault, chain_of

SOAK = 204  # for each size of chain: 68, and of them a sixth for each fault


async def check(chain: Chain, victim: str, fault: Fault, after_s: float) -> None:
    error, session = await chain.blamed(victim, fault, after_s)
    told = f"{victim} {fault} after {after_s:.2f} s: {error}"
    assert root_party(error) == victim, told
    assert victim in str(error), told
    for name in chain.roles:
        for end in chain.ends(name, session):
            if name != victim or end["event"] == "session failed":
                assert end.get("blamed") == victim, f"{told}; {name} says {end}"


async def strike(root: Path, size: int, faults: list[Fault], seed: int) -> None:
    draw = random.Random(f"{size} {seed}")
    async with chain_of(root, size) as chain:
        for fault in faults:
            await check(chain, draw.choice(list(chain.roles)), fault, draw.uniform(0.0, 1.5))


@pytest.mark.parametrize(("size", "faults"), [(5, FAULTS[:3]), (4, FAULTS[3:]), (3, FAULTS[:1])])
def test_the_party_at_fault_is_blamed(tmp_path: Path, size: int, faults: tuple[Fault, ...]) -> None:
    asyncio.run(strike(tmp_path, size, list(faults), 0))


@pytest.mark.soak
@pytest.mark.parametrize("size", [3, 4, 5])
def test_the_party_at_fault_is_blamed_in_200_of_200(tmp_path: Path, size: int) -> None:
    asyncio.run(strike(tmp_path, size, list(FAULTS) * (SOAK // 3 // len(FAULTS) + 1), 1))
