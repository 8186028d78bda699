"""Reasons for a party to refuse a job, by its policy or otherwise, and who changes what to pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.node import PartyNode
from blindfit.parties.settings import PeerSettings
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb
from tests.approval.approving import ROLES, answer, up
from tests.certificates import demo_authority
from tests.hints.following import Told, refused, says


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("authority"))


def job(**tables: Any) -> TaylorJob:
    return TaylorJob.model_validate(tables)


PRIVATE = {"privacy": {"epsilon": 0.5}}
CASES: list[tuple[JobParameters, str, str, dict[str, Any], JobParameters | None]] = [
    (
        job(privacy={"epsilon": 1.5}),
        says("{} is more than its max_epsilon = {}"),
        says("operator raise policy.max_epsilon"),
        {"max_epsilon": 2.0},
        job(privacy={"epsilon": 1.0}),
    ),
    (
        job(privacy={"epsilon": 0.5, "delta": 1e-4}),
        says("{} is more than its max_delta = {}"),
        says("operator raise policy.max_delta"),
        {"max_delta": 1e-3},
        job(privacy={"epsilon": 0.5, "delta": 1e-5}),
    ),
    (
        job(taylor={"unsafe": ["leverage"]}),
        says("its policy.unsafe does not list {}, and its operator is not asked"),
        says("operator add it to policy.unsafe, or do without it in the job"),
        {"unsafe": ["leverage"]},
        job(),
    ),
    (
        job(seed=3),
        says("a seed is for jobs on one machine"),
        says("operator set policy.accept_seed = true"),
        {"accept_seed": True},
        job(),
    ),
    (
        job(align={"min_common": 10}),
        says("{} is less than its {} = {}: set align.min_common = {}, or more"),
        "set align.min_common = 20, or more",
        {},
        job(align={"min_common": 20}),
    ),
]


@pytest.mark.parametrize(("asked", "why", "what", "policy", "other"), CASES, ids=lambda value: "")
async def test_what_a_policy_does_not_allow(
    authority: Path,
    tmp_path: Path,
    asked: JobParameters,
    why: str,
    what: str,
    policy: dict[str, Any],
    other: JobParameters | None,
) -> None:
    """The job is changed, or the policy."""
    async with up(authority, tmp_path, "shop") as node:
        with refused(why) as told:
            await answer(node, "monday", asked)
        assert Told(what).is_in(told.text)
        if other is not None:
            assert await answer(node, "tuesday", other) == "ACCEPTED"
    if policy:
        async with up(authority, tmp_path, "shop", **policy) as node:
            assert await answer(node, "wednesday", asked) == "ACCEPTED"


async def test_a_system_that_a_party_takes_no_part_in(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "helper", systems=["falcon"]) as node:
        with refused("operator add it to policy.systems"):
            await answer(node, "monday", job())
    async with up(authority, tmp_path, "helper", systems=["falcon", "taylor"]) as node:
        assert await answer(node, "tuesday", job()) == "ACCEPTED"


async def propose(node: PartyNode, session: str, members: dict[str, tuple[str, str]], address: str = "a:1") -> str:
    """Args:
    members: the role and dataset of each.
    """
    listed = [pb.Member(name=name, role=role, address=address, dataset=rows) for name, (role, rows) in members.items()]
    asked = pb.Proposal(session=session, protocol="taylor", members=listed)
    asked.parameters.CopyFrom(codec.parameters_to_pb(job().to_parameters()))
    return (await node.sessions.propose(asked, "coordinator")).state


RIGHT = {name: (role, "" if role == "key-node" else "rows") for name, role in ROLES.items()}


async def test_what_the_job_says_of_a_party(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "helper") as node:
        with refused("correct parties.{party}.dataset in the job") as told:
            await propose(node, "s1", {**RIGHT, "helper": ("passive", "rowz")})
        assert "correct parties.helper.dataset in the job" in told.text
        with refused("correct parties.{party}.role in the job"):
            await propose(node, "s2", {"helper": ("active", "rows"), "keys": RIGHT["keys"]})
        with refused("correct [parties] in the job"):
            await propose(node, "s3", {name: member for name, member in RIGHT.items() if name != "keys"})
        with refused("correct [parties] in the job"):
            await propose(node, "s4", RIGHT, address="nowhere")
        with refused("its name does not consist of 1 to 64 letters, digits, _, . and -"):
            await propose(node, "not a name", RIGHT)
        assert await propose(node, "s5", RIGHT) == "ACCEPTED"


async def test_a_party_that_is_not_known(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "helper") as node:
        known = dict(node.settings.peers)
        node.settings.peers.pop("keys")
        with refused("add it to [peers], with its role"):
            await propose(node, "s1", RIGHT)
        node.settings.peers.update(known | {"keys": PeerSettings(role="key-node")})
        assert await propose(node, "s2", RIGHT) == "ACCEPTED"


def test_a_refusal_that_no_policy_decides_names_none() -> None:
    """The reason contains the advice."""
    assert PolicyRefused(party="bank", field="label bits", reason="set this").hint == ""
