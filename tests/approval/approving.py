"""Parties whose operators approve jobs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.node import PartyNode
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import SYSTEMS, party_class
from blindfit.parties.tables import validate
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb
from blindfit.protos.measurement_pb2 import SignedReceipt
from tests.certificates import make_identity

ROLES = {"shop": "active", "helper": "passive", "keys": "key-node"}


def settings_of(authority: Path, directory: Path, name: str, policy: dict[str, Any]) -> PartySettings:
    files = make_identity(authority, name).files
    (directory / "rows.csv").write_text("id,label,x\n" + "".join(f"{i},{i % 2},{i % 5}\n" for i in range(20)))
    label = {"label": "label", "population": "people"} if name == "shop" else {"models_per_row": "unlimited"}
    values: dict[str, Any] = {
        "name": name,
        "role": ROLES[name],
        "identity": {"certificate": files.certificate, "key": files.key, "authority": files.authority},
        "peers": {"coordinator": {"role": "coordinator"}, **{n: {"role": r} for n, r in ROLES.items() if n != name}},
        "policy": {"systems": ["taylor"], **policy},
    }
    if name != "keys":
        values["datasets"] = {"rows": {"url": "csv:rows.csv", "id": "id", "features": "rest", **label}}
    if name == "shop":
        values["populations"] = {"people": {"epsilon": 2.0, "delta": 1e-3}}
    return validate(values, party_class(tuple(SYSTEMS)), source="the test")


@contextlib.asynccontextmanager
async def up(authority: Path, directory: Path, name: str, **policy: Any) -> AsyncIterator[PartyNode]:
    node = PartyNode(settings_of(authority, directory, name, policy), directory)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def answer(node: PartyNode, session: str, job: JobParameters, *receipts: SignedReceipt) -> str:
    datasets = {"shop": "rows", "helper": "rows", "keys": ""}
    members = [pb.Member(name=n, role=role, address="a:1", dataset=datasets[n]) for n, role in ROLES.items()]
    asked = pb.Proposal(session=session, protocol=job.protocol, members=members, receipts=receipts)
    asked.parameters.CopyFrom(codec.parameters_to_pb(job.to_parameters()))
    return (await node.sessions.propose(asked, "coordinator")).state
