"""The count that other tests rely on finds one message too many, one that is missing and one out of place."""

from __future__ import annotations

import asyncio

import pytest

from blindfit.algorithms.protocols import ready
from blindfit.algorithms.protocols.ready import Ready
from blindfit.parties.wire.channel import LocalNetwork
from tests import toy
from tests.each_case import each_case
from tests.protocols.counts import assert_as_often

ROLES = {"bank": "active", "shop": "passive", "post": "passive", "keys": "key-node"}
SENT = [
    ("dealer", "p0", "TripleShare"),
    ("dealer", "p1", "TripleShare"),
    ("p0", "p1", "Masked"),
    ("p1", "p0", "Masked"),
]


def test_a_whole_run_is_as_often_as_the_table_says() -> None:
    assert_as_often(toy.TABLE, toy.ROLES, SENT)


@each_case(
    "sent",
    [
        [*SENT, SENT[0]],  # twice
        SENT[:2],  # no opening
        [*SENT, ("p0", "dealer", "Masked")],  # to nobody's knowledge
    ],
)
def test_another_count_is_noticed(sent: list[tuple[str, str, str]]) -> None:
    with pytest.raises(AssertionError):
        assert_as_often(toy.TABLE, toy.ROLES, sent)


def test_every_party_is_told_once_that_another_is_ready_and_has_stored() -> None:
    network = LocalNetwork(ROLES, ready.TABLE)

    async def party(me: str) -> dict[str, Ready]:
        others, channel = [name for name in ROLES if name != me], network.channel(me)
        told = await ready.run_party(Ready(len(me)), me, others, channel)
        await ready.run_stored(3, others, channel)
        return dict(told)

    async def all_parties() -> list[dict[str, Ready]]:
        return await asyncio.gather(*map(party, ROLES))

    assert asyncio.run(all_parties()) == [{name: Ready(len(name)) for name in ROLES}] * len(ROLES)
    assert_as_often(ready.TABLE, ROLES, network.sent)
    assert not network.unread
