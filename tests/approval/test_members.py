"""A coordinator that names other members to each of two parties: both of them notice before any data."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import HandshakeMismatch
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import validate
from blindfit.protos import control_pb2 as pb
from tests.certificates import make_identity
from tests.wire.calls import proposal
from tests.wire.meter import settings_of


def shop_settings(authority: Path, directory: Path) -> PartySettings:
    files = make_identity(authority, "shop").files
    dataset = {"url": "csv:rows.csv", "id": "id", "features": "rest"}
    (directory / "rows.csv").write_text("id,x\n" + "".join(f"{i},{i % 5}\n" for i in range(20)))
    values = {
        "name": "shop",
        "role": "active",
        "data_dir": "shop",
        "identity": {"certificate": files.certificate, "key": files.key, "authority": files.authority},
        "peers": {"meter": {"role": "measurement"}, "coordinator": {"role": "coordinator"}},
        "datasets": {"rows": dataset, "others": dataset},
    }
    return validate(values, PartySettings, source="the test")


async def ended(node: PartyNode, asked: pb.Proposal, by: str = "coordinator") -> Session[Any]:
    session = await node.sessions.propose(asked, by)
    await node.sessions.start(session.id)
    async with asyncio.timeout(60):
        while session.state == "RUNNING":
            await asyncio.sleep(0.01)
    return session


@pytest.mark.parametrize(
    ("change", "by", "field", "shops", "meters"),
    [
        ({"dataset": "others"}, "coordinator", "dataset of shop", "'others'", "'rows'"),
        ({}, "another", "proposer", "'another'", "'coordinator'"),
    ],
)
async def test_another_membership_is_one_line_on_both_sides(
    authority: Path, tmp_path: Path, change: dict[str, str], by: str, field: str, shops: str, meters: str
) -> None:
    shop = PartyNode(shop_settings(authority, tmp_path), tmp_path)
    meter = PartyNode(settings_of(authority, tmp_path), tmp_path)
    nodes = (shop, meter)
    await asyncio.gather(*(node.start() for node in nodes))
    try:
        told = {node: proposal("monday") for node in nodes}
        for asked in told.values():
            for member, node in zip(asked.members, nodes, strict=True):
                member.address = f"127.0.0.1:{node.port}"
        for name, value in change.items():
            setattr(told[shop].members[0], name, value)
        ends = await asyncio.gather(ended(shop, told[shop], by), ended(meter, told[meter]))
    finally:
        await asyncio.gather(*(node.stop() for node in nodes))
    assert [session.state for session in ends] == ["FAILED", "FAILED"]
    assert [type(session.error) for session in ends] == [HandshakeMismatch] * 2
    assert ends[0].error.message == f"meter disagrees on {field}: ours is {shops}, theirs is {meters}"
    assert ends[1].error.message == f"shop disagrees on {field}: ours is {meters}, theirs is {shops}"
