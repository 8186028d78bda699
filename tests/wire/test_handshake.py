"""Handshake: both sides name every difference before any data."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError, HandshakeMismatch, MalformedMessage
from blindfit.algorithms.messages import Channel, canonical_bytes, parameters_digest
from blindfit.algorithms.protocols import handshake
from blindfit.algorithms.protocols.handshake import Hello, digest_of_agreement, step_1_hello, step_2_compare
from blindfit.parties.wire.channel import LocalNetwork
from tests.each_case import each_case
from tests.protocols.counts import assert_as_often
from tests.wire.site import QUICK, sites

PARAMETERS = {
    "privacy.epsilon": 0.5,
    "walr.frac_bits": 16,
    "walr.intercept": True,
    "walr.solver": "newton",
    "parties": ("p0", "p1"),
}
MEMBERS = {
    "proposer": "boss",
    "role of p0": "active",
    "role of p1": "measurement",
    "dataset of p0": "visits",
    "dataset of p1": "labels",
}
ROLES = {"p0": "active", "p1": "measurement"}


def hello(name: str, **changes: object) -> Hello:
    parameters = {k: v for k, v in {**PARAMETERS, **changes}.items() if v is not None}
    return step_1_hello("walr", ROLES[name], MEMBERS, parameters)


def among(name: str, **changes: str | None) -> Hello:
    """Return the hello of a party that knows other members."""
    members = {k: v for k, v in {**MEMBERS, **{k.replace("_", " "): v for k, v in changes.items()}}.items() if v}
    return step_1_hello("walr", ROLES[name], members, PARAMETERS)


async def shake(mine: dict[str, Hello], channels: dict[str, Channel]) -> dict[str, BlindfitError | None]:
    """Return both ends' results."""
    runs = [handshake.run_party(mine[a], [(b, ROLES[b])], channels[a]) for a, b in (("p0", "p1"), ("p1", "p0"))]
    ends = await asyncio.gather(*runs, return_exceptions=True)
    return dict(zip(("p0", "p1"), ends, strict=True))


def in_memory() -> dict[str, Channel]:
    network = LocalNetwork(ROLES, handshake.TABLE, timeout_s=60)
    return {name: network.channel(name) for name in ROLES}


async def test_who_agrees_goes_on() -> None:
    network = LocalNetwork(ROLES, handshake.TABLE)
    ends = await shake({name: hello(name) for name in ROLES}, {name: network.channel(name) for name in ROLES})
    assert ends == {"p0": {"p1": ""}, "p1": {"p0": ""}}
    assert_as_often(handshake.TABLE, ROLES, network.sent)
    assert not network.unread


@pytest.mark.parametrize(
    ("snapshots", "culprit"),
    [(("aa", "aa", "bb"), "p1"), (("aa", "bb", "bb"), "p1 or p2"), (("", "bb", "bb"), "p1 or p2")],
)
async def test_a_snapshot_is_one_partys_alone(snapshots: tuple[str, str, str], culprit: str) -> None:
    """Otherwise a charge of one party would count for another."""
    roles = {"p0": "measurement", "p1": "active", "p2": "passive"}
    network = LocalNetwork(roles, handshake.TABLE, timeout_s=60)
    hellos = {
        name: step_1_hello("walr", role, MEMBERS, PARAMETERS, snapshot)
        for (name, role), snapshot in zip(roles.items(), snapshots, strict=True)
    }
    for name in ("p1", "p2"):
        await network.channel(name).send("p0", hellos[name])
    with pytest.raises(MalformedMessage) as refused:
        await handshake.run_party(hellos["p0"], [("p1", "active"), ("p2", "passive")], network.channel("p0"))
    assert (refused.value.culprit, refused.value.field) == (culprit, "snapshot")


async def test_parties_without_a_snapshot_are_not_taken_for_one() -> None:
    ends = await shake({name: hello(name) for name in ROLES}, in_memory())
    assert ends == {"p0": {"p1": ""}, "p1": {"p0": ""}}


@pytest.mark.parametrize(
    ("field", "value", "theirs"),
    [
        ("privacy.epsilon", 0.25, "0.25"),
        ("privacy.epsilon", None, "missing"),
        ("walr.frac_bits", 17, "17"),
        ("walr.frac_bits", 16.0, "16.0"),
        ("walr.intercept", False, "False"),
        ("walr.intercept", 1, "1"),
        ("walr.solver", "lbfgs", "'lbfgs'"),
        ("walr.solver", "x\x1b[31m" + "y" * 500, "'x\\x1b[31m" + "y" * 110),
        ("parties", ("p1", "p0"), "('p1', 'p0')"),
        ("parties", (), "()"),
        ("unheard.of", 1, "1"),
    ],
)
async def test_a_parameter_that_differs_is_named_on_both_sides(field: str, value: object, theirs: str) -> None:
    ends = await shake({"p0": hello("p0"), "p1": hello("p1", **{field: value})}, in_memory())
    assert [type(end) for end in ends.values()] == [HandshakeMismatch] * 2
    ours = repr(PARAMETERS[field]) if field in PARAMETERS else "missing"
    assert (ends["p0"].culprit, ends["p0"].field, ends["p0"].ours, ends["p0"].theirs) == ("p1", field, ours, theirs)
    assert (ends["p1"].culprit, ends["p1"].field, ends["p1"].ours, ends["p1"].theirs) == ("p0", field, theirs, ours)
    assert ends["p0"].hint


@pytest.mark.parametrize(
    ("field", "value", "ours", "theirs"),
    [
        ("dataset_of_p0", "others", "'visits'", "'others'"),
        ("dataset_of_p1", "others", "'labels'", "'others'"),
        ("role_of_p0", "passive", "'active'", "'passive'"),
        ("proposer", "another", "'boss'", "'another'"),
        ("dataset_of_p2", "rows", "missing", "'rows'"),
        ("dataset_of_p0", None, "'visits'", "missing"),
    ],
)
async def test_members_that_differ_are_named_on_both_sides(field: str, value: str, ours: str, theirs: str) -> None:
    ends = await shake({"p0": hello("p0"), "p1": among("p1", **{field: value})}, in_memory())
    words = field.replace("_", " ")
    assert ends["p0"].message == f"p1 disagrees on {words}: ours is {ours}, theirs is {theirs}"
    assert ends["p1"].message == f"p0 disagrees on {words}: ours is {theirs}, theirs is {ours}"


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"version": "2"}, ["protocol version"] * 2),
        ({"protocol": "taylor"}, ["protocol"] * 2),
        ({"role": "passive"}, ["role of p1", None]),
    ],
)
async def test_version_protocol_and_role(change: dict[str, str], fields: list[str | None]) -> None:
    ends = await shake({"p0": hello("p0"), "p1": replace(hello("p1"), **change)}, in_memory())
    assert [getattr(end, "field", None) for end in ends.values()] == fields


async def test_another_version_is_one_line_on_both_sides_even_if_all_else_differs(authority: Path) -> None:
    """A version mismatch is reported before all other differences."""
    other = replace(hello("p1", **{"privacy.epsilon": 9.0, "new": 1}), version="2", protocol="new", digest=b"new")
    async with sites(authority, "p0", "p1", tables=[handshake.TABLE]) as up:
        channels = {name: site.join("s", QUICK) for name, site in up.items()}
        ends = await shake({"p0": hello("p0"), "p1": other}, channels)
    assert ends["p0"].message == "p1 disagrees on protocol version: ours is '1', theirs is '2'"
    assert ends["p1"].message == "p0 disagrees on protocol version: ours is '2', theirs is '1'"


@each_case("digest", [b"", b"x" * 32, parameters_digest(PARAMETERS), digest_of_agreement({}, PARAMETERS)])
def test_a_hash_that_is_not_that_of_members_and_parameters(digest: bytes) -> None:
    with pytest.raises(MalformedMessage) as caught:
        step_2_compare(hello("p0"), replace(hello("p1"), digest=digest), peer="p1", peer_role="measurement")
    assert (caught.value.culprit, caught.value.field) == ("p1", "digest")


@each_case("snapshot", ["/etc", "ABC", "a" * 10_000, "a\n"])
def test_a_snapshot_that_is_no_id_of_one(snapshot: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        step_2_compare(hello("p0"), replace(hello("p1"), snapshot=snapshot), peer="p1", peer_role="measurement")
    assert str(caught.value) == "p1 sent a malformed message: snapshot: is not an id of a snapshot"


def test_equal_numbers_of_other_bytes_are_noticed() -> None:
    theirs = hello("p1", **{"privacy.epsilon": -0.0})
    with pytest.raises(HandshakeMismatch, match="hash of the parameters"):
        step_2_compare(hello("p0", **{"privacy.epsilon": 0.0}), theirs, peer="p1", peer_role="measurement")


def test_other_parameters_have_other_canonical_bytes() -> None:
    sets = [
        {},
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": ("1",)},
        {"a": ("", "1")},
        {"a": ("1", "")},
        {"a1": ""},
        {"a": "1", "b": ""},
        {"a": "1b"},
        {"ab": "1"},
    ]
    assert len({canonical_bytes(parameters) for parameters in sets}) == len(sets)
    assert canonical_bytes({"a": 1, "b": 2}) == canonical_bytes({"b": 2, "a": 1})
