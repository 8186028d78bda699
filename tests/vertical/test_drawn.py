"""A split is drawn anew only so often for the same snapshots: who ended draws early could choose among them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.protocols import draw
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.randomness import MOST_DRAWS, draw_together
from blindfit.parties.wire.channel import LocalNetwork
from tests.hints.following import refused
from tests.taylor.seats import first_failure

ROLES = {"bank": "active", "post": "passive"}


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[dict[str, Any]]:
    made = {name: SimpleNamespace(store=Store(tmp_path / f"{name}.sqlite")) for name in ROLES}
    yield made
    for party in made.values():
        party.store.close()


def draw_once(parties: dict[str, Any], snapshot: str = "s-1") -> PublicRandomness:
    """Both have lost the last draw unless both have it; returns what both have then."""
    network = LocalNetwork(ROLES, draw.TABLE)

    async def one(name: str) -> PublicRandomness:
        session: Any = SimpleNamespace(
            job=TaylorJob(),
            snapshots=dict.fromkeys(ROLES, snapshot),
            me=SimpleNamespace(name=name),
            channel=network.channel(name),
        )
        return await draw_together(parties[name], session, list(ROLES))

    drawn: list[PublicRandomness] = []

    async def both() -> None:
        async def keep(name: str) -> None:
            drawn.append(await one(name))

        await first_failure(*(keep(name) for name in ROLES))

    asyncio.run(both())
    (same,) = set(drawn)
    return same


def test_what_was_drawn_is_drawn_once(parties: dict[str, Any]) -> None:
    assert draw_once(parties) == draw_once(parties) != draw_once(parties, "s-2")


def test_a_draw_that_is_lost_again_and_again(parties: dict[str, Any]) -> None:
    """As a party may, or may say that it did."""
    first = draw_once(parties)
    parties["post"].store._db.execute(f"UPDATE draws SET begun = {MOST_DRAWS - 1}, key = NULL")
    assert draw_once(parties) != first
    parties["bank"].store._db.execute("UPDATE draws SET key = NULL")
    with refused("{} draws of the split were begun for these snapshots: have one of the datasets published") as told:
        draw_once(parties)
    assert told.text.startswith(f"post refuses the job: split: {MOST_DRAWS} draws of the split were begun")
    draw_once(parties, "s-2")
