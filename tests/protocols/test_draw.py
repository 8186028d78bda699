"""Data parties draw together: nobody chooses the result, and the drawn value is used again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from blindfit.algorithms.errors import MalformedMessage, PolicyRefused
from blindfit.algorithms.protocols import draw
from blindfit.algorithms.protocols.draw import Commitment, Known, Opening
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.wire.channel import LocalNetwork
from tests.each_case import each_case
from tests.taylor.seats import first_failure

ROLES = {"bank": "active", "post": "passive", "shop": "passive"}
CONTEXT = b"their snapshots"


class Run:
    """One run between all; `cheats` changes what a party sends."""

    def __init__(
        self, known: Mapping[str, PublicRandomness] = {}, cheats: Any = None, context: bytes = CONTEXT
    ) -> None:
        network, self.begun, self.sent = LocalNetwork(ROLES, draw.TABLE), 0, []
        self.drawn: dict[str, PublicRandomness] = {}

        async def one(name: str) -> None:
            channel, plain = network.channel(name), network.channel(name).send

            async def send(to: str, message: object) -> None:
                self.sent.append(type(message))
                await plain(to, cheats(name, message) if cheats else message)

            channel.send = send  # type: ignore[method-assign]
            others = [other for other in ROLES if other != name]
            self.drawn[name] = await draw.run_data_party(
                known.get(name), CONTEXT, name, others, channel, begin=self._begin
            )

        async def run() -> None:
            await first_failure(*(one(name) for name in ROLES))

        asyncio.run(run())

    def _begin(self) -> None:
        self.begun += 1

    @property
    def key(self) -> PublicRandomness:
        (key,) = set(self.drawn.values())
        return key


def test_all_draw_the_same_and_nobody_the_same_again() -> None:
    first, second = Run(), Run()
    assert first.key != second.key
    assert (first.begun, len(first.drawn)) == (3, 3)


def test_what_was_drawn_is_used_again() -> None:
    first = Run()
    again = Run(first.drawn)
    assert (again.key, again.begun) == (first.key, 0)
    assert set(again.sent) == {Known}


@pytest.mark.parametrize("lost", [("bank",), ("post", "shop")])
def test_what_one_has_lost_is_drawn_anew(lost: tuple[str, ...]) -> None:
    first = Run()
    again = Run({name: key for name, key in first.drawn.items() if name not in lost})
    assert again.key != first.key
    assert again.begun == 3


def test_different_keys_are_drawn_anew() -> None:
    keys = {name: PublicRandomness(bytes([place]) * 32) for place, name in enumerate(ROLES)}
    assert Run(keys).key not in keys.values()


def test_another_opening_than_was_committed_to_is_noticed() -> None:
    """A party that could open last and choose would choose the held-out rows."""

    def cheats(name: str, message: object) -> object:
        return Opening(b"x" * 32) if name == "shop" and isinstance(message, Opening) else message

    with pytest.raises(MalformedMessage, match="shop sent a malformed message: drawn: is not what it committed to"):
        Run(cheats=cheats)


def test_anothers_commitment_cannot_be_copied() -> None:
    """With the same part twice, which cancel each other, the sum would be known beforehand."""
    banks = draw.step_2_commit("bank", CONTEXT, b"b" * 32)
    with pytest.raises(MalformedMessage, match="shop sent a malformed message: drawn: is not what it committed to"):
        draw.step_4_key(CONTEXT, {"bank": b"b" * 32, "shop": b"b" * 32}, {"bank": banks, "shop": banks})


@each_case(
    ("kind", "changes", "field"),
    [(Known, {"digest": b"x"}, "digest"), (Opening, {"drawn": b"x"}, "drawn"), (Commitment, {"digest": b"x"}, "drawn")],
)
def test_what_is_malformed_is_refused(kind: type, changes: dict[str, Any], field: str) -> None:
    def cheats(name: str, message: Any) -> object:
        return replace(message, **changes) if name == "shop" and isinstance(message, kind) else message

    with pytest.raises(MalformedMessage) as refused:
        Run(cheats=cheats)
    assert (refused.value.culprit, refused.value.field) == ("shop", field)


def test_a_party_that_has_seen_too_many_draws_begins_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(self: Run) -> None:
        raise PolicyRefused(party="bank", field="split", reason="16 draws were begun")

    monkeypatch.setattr(Run, "_begin", too_many)
    with pytest.raises(PolicyRefused):
        Run()


# --- what follows from it ---------------------------------------------------------------------------------


def test_a_row_is_chosen_by_its_id_alone() -> None:
    key = PublicRandomness(b"k" * 32)
    names = [f"p{i}" for i in range(2000)]
    chosen = dict(zip(names, key.choose("split", names, 0.2), strict=True))
    shuffled = names[1000:] + names[:999]
    assert [chosen[name] for name in shuffled] == key.choose("split", shuffled, 0.2).tolist()
    assert 300 < sum(chosen.values()) < 500  # 5.6 standard deviations
    assert chosen != dict(zip(names, key.choose("another", names, 0.2), strict=True))
    assert key.choose("split", names, 0.0).sum() == 0
