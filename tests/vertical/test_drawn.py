"""The same people get only so many draws of a split: a party that ended draws early could choose among them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from blindfit.algorithms.protocols import draw
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.coordinator.cli.main import app
from blindfit.parties.account.account import MOST_MEMBERSHIP
from blindfit.parties.sessions.party import Party
from blindfit.parties.systems import load_party
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.randomness import draw_together
from blindfit.parties.wire.channel import LocalNetwork
from tests.hints.following import refused
from tests.taylor.seats import first_failure
from tests.unconnected import unconnected
from tests.world import World

ROLES = {"bank": "active", "post": "passive", "shop": "passive"}
TWO = ("bank", "post")


class Parties(dict[str, Party]):
    """Parties that draw in one session after the other."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root, self.numbers = root, itertools.count()

    def draw(self, names: tuple[str, ...] = TWO, *, snapshot: str = "01") -> PublicRandomness:
        """Return the draw that all of them have in the end."""
        network, number = LocalNetwork({name: ROLES[name] for name in names}, draw.TABLE), next(self.numbers)

        async def one(name: str) -> PublicRandomness:
            session: Any = SimpleNamespace(
                id=f"session-{number}",
                job=TaylorJob(),
                snapshots=dict.fromkeys(names, snapshot),
                published=SimpleNamespace(id=snapshot),
                me=SimpleNamespace(name=name, dataset="rows"),
                channel=network.channel(name),
            )
            return await draw_together(self[name], session, list(names))

        drawn: list[PublicRandomness] = []

        async def all_of_them() -> None:
            async def keep(name: str) -> None:
                drawn.append(await one(name))

            await first_failure(*(keep(name) for name in names))

        asyncio.run(all_of_them())
        (same,) = set(drawn)
        return same

    def lose(self, name: str) -> None:
        """Remove the party's key of the draw, as a party does that has lost it or claims so."""
        self[name].store._db.execute("UPDATE draws SET key = NULL")


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[Parties]:
    world, made = World(tmp_path), Parties(tmp_path)
    for name, role in ROLES.items():
        world.party(name, role, {"id": ["a"], "x": [1.0]}, {"features": "rest"})
        made[name] = unconnected(load_party(world.path(f"{name}.toml")), tmp_path)
    yield made
    for party in made.values():
        party.store.close()


def test_what_was_drawn_is_drawn_once_for_the_same_people(parties: Parties) -> None:
    """A party that publishes a table until the draw pleases it gets the same one each time."""
    first = parties.draw()
    assert parties.draw() == parties.draw(snapshot="02") == first
    assert parties.draw(tuple(ROLES)) != first


def test_so_many_draws_and_no_more(parties: Parties) -> None:
    """The limit holds for any party that loses its draws, and any other parties."""
    drawn = []
    for number in range(MOST_MEMBERSHIP):
        drawn.append(parties.draw(TWO if number % 2 else tuple(ROLES)))
        parties.lose("bank" if number % 3 else "post")
    assert len(set(drawn)) == MOST_MEMBERSHIP
    for names, snapshot in ((TWO, "01"), (TWO, "02"), (tuple(ROLES), "01")):
        with refused(
            "{} draws of held-out rows were begun for the people of {}, and more would reveal the place of some of "
            "them: its operator can start the account again (`blindfit ledger PARTY.TOML --reset-account DATASET "
            "--reason TEXT`)"
        ) as told:
            parties.draw(names, snapshot=snapshot)
    (command,) = told.commands
    for name in TWO:
        words = {
            "PARTY.TOML": str(parties.root / f"{name}.toml"),
            "DATASET": "rows",
            "TEXT": "another contract",
        }
        done = CliRunner().invoke(app, [words.get(word, word) for word in command])
        assert done.exit_code == 0, done.output
    parties.draw()
