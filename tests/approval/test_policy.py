"""A party's policy bounds every proposal: epsilon, delta, and the defences that a job does without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from blindfit.algorithms.errors import ConfigError, LocalProtocolError, PolicyRefused
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.label_dp.settings import LabelDPJob
from blindfit.parties.settings import PeerSettings, PolicySettings
from blindfit.parties.systems import load_party, policy_class, system
from blindfit.parties.tables import validate
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb
from blindfit.protos.measurement_pb2 import SignedReceipt
from tests.approval.approving import ROLES, answer, settings_of, up
from tests.each_case import each_case

UNSAFE = TaylorJob(taylor={"unsafe": ["no-jitter", "leverage"], "jitter": 0.0})


@pytest.mark.parametrize("name", ROLES)
async def test_a_flag_that_a_party_does_not_list_is_refused(authority: Path, tmp_path: Path, name: str) -> None:
    """This holds for each flag: some flags expose a passive party's features."""
    async with up(authority, tmp_path, name, unsafe=["no-jitter"]) as node:
        with pytest.raises(PolicyRefused) as refused:
            await answer(node, "monday", UNSAFE)
        assert refused.value.message == (
            f"{name} refuses the job: unsafe: its policy.unsafe does not list leverage, and its operator is not asked"
        )
        assert await answer(node, "tuesday", TaylorJob(taylor={"unsafe": ["no-jitter"]})) == "ACCEPTED"
        assert await answer(node, "wednesday", TaylorJob()) == "ACCEPTED"


async def test_an_operator_who_is_asked_decides_about_flags(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "helper", approve="ask") as node:
        assert await answer(node, "monday", UNSAFE) == "HELD"


async def test_a_party_without_a_ledger_has_signed_no_receipt(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "keys") as node:
        with pytest.raises(
            PolicyRefused, match="keys refuses the job: receipt: this party keeps no ledger, and gave no receipt"
        ):
            await answer(node, "monday", TaylorJob(), SignedReceipt(statement=b"{}", signature=bytes(64)))


@pytest.mark.parametrize(
    "roles",
    [
        {"helper": "passive", "keys": "key-node"},
        {"shop": "active", "shop2": "active", "helper": "passive", "keys": "key-node"},
        {"shop": "active", "helper": "passive", "keys": "key-node", "keys2": "key-node"},
        {"shop": "active", "helper": "passive", "keys": "key-node", "meter": "measurement"},
    ],
    ids=["nobody is active", "two are active", "two have keys", "a role that it does not have"],
)
async def test_a_party_counts_itself_who_takes_part(authority: Path, tmp_path: Path, roles: dict[str, str]) -> None:
    """The coordinator's own program may have counted nothing."""
    async with up(authority, tmp_path, "helper", approve="ask") as node:
        node.settings.peers.update({name: PeerSettings(role=role) for name, role in roles.items() if name != "helper"})
        members = [pb.Member(name=name, role=role, address="a:1", dataset="rows") for name, role in roles.items()]
        asked = pb.Proposal(session="monday", protocol="taylor", members=members)
        asked.parameters.CopyFrom(codec.parameters_to_pb(TaylorJob().to_parameters()))
        with pytest.raises(PolicyRefused) as refused:
            await node.sessions.propose(asked, "coordinator")
        needs = "exactly one active and 1 to 16 passive and exactly one key-node"
        assert refused.value.message == f"helper refuses the job: parties: taylor needs {needs}"


@pytest.mark.parametrize("address", ["", "a..b:1", f"{'a' * 64}:1", "dns:///a:1"])
async def test_a_proposed_address_that_is_none_is_refused(authority: Path, tmp_path: Path, address: str) -> None:
    async with up(authority, tmp_path, "helper") as node:
        members = [pb.Member(name=n, role=role, address=address, dataset="rows") for n, role in ROLES.items()]
        asked = pb.Proposal(session="monday", protocol="taylor", members=members)
        asked.parameters.CopyFrom(codec.parameters_to_pb(TaylorJob().to_parameters()))
        with pytest.raises(PolicyRefused) as refused:
            await node.sessions.propose(asked, "coordinator")
    reason = f"the address of shop: {address!r} is not an address"
    assert refused.value.message == f"helper refuses the job: parties: {reason}"


async def test_a_party_without_a_dataset_has_published_none(authority: Path, tmp_path: Path) -> None:
    async with up(authority, tmp_path, "keys") as node:
        await answer(node, "monday", TaylorJob())
        with pytest.raises(LocalProtocolError, match="a party without a dataset reads no snapshot"):
            assert node.sessions.get("monday").published


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize(
    ("policy", "privacy", "field"),
    [
        ({}, {"epsilon": 1.0, "delta": 1.1e-5}, "privacy.delta"),
        ({"approve": "ask"}, {"epsilon": 1.0, "delta": 0.1}, "privacy.delta"),
        ({"max_delta": 1e-6}, {"epsilon": 1.0}, "privacy.delta"),
        ({"max_delta": 0.1}, {"epsilon": 1.1}, "privacy.epsilon"),
    ],
)
async def test_epsilon_and_delta_are_bounded_together(
    authority: Path, tmp_path: Path, name: str, policy: dict[str, Any], privacy: dict[str, float], field: str
) -> None:
    async with up(authority, tmp_path, name, **policy) as node:
        with pytest.raises(PolicyRefused) as refused:
            await answer(node, "monday", TaylorJob(privacy=privacy))
        assert refused.value.field == field


LINKED = {"method": "linkage", "fields": ["last_name", "birth_date:date"]}


@each_case(
    ("protocol", "align", "policy", "refused"),
    [
        ("taylor", {"min_common": 19}, {}, "19 is less than its policy.min_common = 20: set"),
        ("predict", {"min_common": 19}, {}, "19 is less than its policy.min_common = 20: set"),
        ("falcon", {"min_common": 99}, {"min_common": 100}, "99 is less than its policy.min_common = 100: set"),
        (
            "taylor",
            {**LINKED, "min_common": 99},
            {},
            "99 is less than its policy.taylor.min_linked = 100: set align.min_common = 100",
        ),
        (
            "taylor",
            {**LINKED, "min_common": 99},
            {"min_common": 1},
            "99 is less than its policy.taylor.min_linked",
        ),
        ("taylor", {"min_common": 20}, {}, ""),
        ("taylor", {"min_common": 1}, {"min_common": 1}, ""),
        ("taylor", LINKED, {}, ""),
        ("taylor", {**LINKED, "min_common": 2}, {"taylor": {"min_linked": 2}}, ""),
        ("predict", {}, {"taylor": {"min_linked": 1000}}, ""),
    ],
)
def test_so_few_common_rows(protocol: str, align: dict[str, Any], policy: dict[str, Any], refused: str) -> None:
    more = {"predict": {"session": "s"}} if protocol == "predict" else {}
    job = validate({"protocol": protocol, "align": align, **more}, system(protocol).job, source="the test")
    for role in ("active", "passive"):
        found = list(job.refusals(policy_class(("taylor",)).model_validate(policy), role))
        assert [field for field, _ in found] == ["align.min_common"] * bool(refused)
        assert not found or found[0][1].startswith(refused)
    assert not list(job.refusals(policy_class(("taylor",)).model_validate(policy), "key-node"))


@pytest.mark.parametrize(("name", "accepted"), [("shop", False), ("helper", False), ("keys", True)])
async def test_every_data_party_has_a_say_in_how_few(
    authority: Path, tmp_path: Path, name: str, accepted: bool
) -> None:
    async with up(authority, tmp_path, name) as node:
        asked = answer(node, "monday", TaylorJob(align={"min_common": 1}))
        if accepted:
            assert await asked == "ACCEPTED"
            return
        with pytest.raises(PolicyRefused, match=f"{name} refuses the job: align.min_common: 1 is less than its policy"):
            await asked


@pytest.mark.parametrize(
    ("job", "refused"),
    [
        (WalrJob(privacy={"epsilon": 1.0, "delta": 1e-9}), ["privacy.delta"]),
        (LabelDPJob(privacy={"epsilon": 1.0}), []),  # the delta of its mechanism is 0, for any [privacy]
        (LabelDPJob(privacy={"epsilon": 1.0}, label_dp={"mechanism": "gaussian"}), ["privacy.delta"]),
        (TaylorJob(), []),
    ],
)
def test_pure_differential_privacy_alone(job: JobParameters, refused: list[str]) -> None:
    policy = PolicySettings(max_delta=0.0)
    assert [field for field, _ in policy.refusals(job.epsilon, job.delta, job.unsafe)] == refused


# --- the file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            {"systems": ["taylor", "dp_lr"]},
            "policy.systems: 'dp_lr' is not one of walr, label-dp, dp-lr, taylor, falcon, predict, evaluate",
        ),
        (
            {"systems": ["label-dp"], "unsafe": ["leverage"]},
            "without the protocol taylor or falcon, policy.unsafe does nothing, remove it",
        ),
        (
            {"systems": ["taylor"], "unsafe": ["jitter"]},
            "policy.unsafe: 'jitter' is not one of class-weights, label-bits, leverage,",
        ),
        (
            {"systems": ["taylor"], "unsafe": ["leverage"], "approve": "ask"},
            'unsafe does nothing with approve = "ask"',
        ),
        (
            {"systems": ["taylor"], "min_common": 5},
            "policy.min_common is an option of an active party or a passive party, remove it",
        ),
        ({"systems": ["taylor"], "taylor": {"min_linked": 0}}, "policy.taylor.min_linked: must be at least 1"),
        ({"systems": ["taylor"], "max_delta": 0.5}, "policy.max_delta: must be below 0.5"),
        (
            {"systems": ["taylor"], "max_delta": -1e-9},
            "policy.max_delta: must be at least 0",
        ),
    ],
)
def test_an_option_that_is_wrong_or_in_vain(tmp_path: Path, policy: dict[str, Any], said: str) -> None:
    values = {
        "name": "notary",
        "role": "key-node",
        "identity": {"certificate": "c", "key": "k", "authority": "a"},
        "peers": {"coordinator": {"role": "coordinator"}},
        "policy": policy,
    }
    (tmp_path / "party.toml").write_text(tomli_w.dumps(values))
    with pytest.raises(ConfigError) as refused:
        load_party(tmp_path / "party.toml")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("protocol", "policy", "said"),
    [
        (
            "falcon",
            {"taylor": {"min_linked": 5}},
            "without the protocol taylor, policy.taylor.min_linked does nothing",
        ),
        (
            "walr",
            {"min_common": 5},
            "without the protocol taylor or falcon or predict, policy.min_common does nothing",
        ),
        ("taylor", {"taylor": {"min_linked": 5}}, ""),
        ("predict", {"min_common": 5}, ""),
    ],
)
def test_how_few_rows_may_be_common_where_none_are_aligned(
    authority: Path, tmp_path: Path, protocol: str, policy: dict[str, Any], said: str
) -> None:
    settings = settings_of(authority, tmp_path, "helper", {"systems": [protocol], **policy})
    (tmp_path / "party.toml").write_text(tomli_w.dumps(settings.model_dump(mode="json", exclude_unset=True)))
    if not said:
        assert load_party(tmp_path / "party.toml")
        return
    with pytest.raises(ConfigError, match=said):
        load_party(tmp_path / "party.toml")
