"""A party answers a proposal that is not for it with one line that gives the reason, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, LocalProtocolError, MalformedMessage, PolicyRefused
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.admission import MOST_RECEIPTS
from blindfit.parties.sessions.state import State, next_state
from blindfit.parties.store.receipts import MOST_RECEIPT_BYTES
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb
from blindfit.protos import control_pb2_grpc
from blindfit.protos.measurement_pb2 import SignedReceipt
from tests.certificates import make_identity
from tests.statuses import reason_of_call
from tests.wire.calls import proposal
from tests.wire.meter import connect, metering, settings_of

Change = Callable[[pb.Proposal], object]


def seeded(asked: pb.Proposal) -> None:
    job = WalrJob(privacy={"epsilon": 0.5}, seed=7)
    asked.parameters.CopyFrom(codec.parameters_to_pb(job.to_parameters()))


def signed(asked: pb.Proposal, *sizes: int) -> None:
    asked.receipts.extend(SignedReceipt(statement=bytes(size)) for size in sizes)


REFUSED: dict[str, tuple[Change, str]] = {
    "not it": (lambda p: p.members.pop(), "parties: meter is not one of them, or a name occurs twice"),
    "twice": (lambda p: p.members.append(p.members[0]), "parties: meter is not one of them, or a name occurs twice"),
    "stranger": (
        lambda p: setattr(p.members[0], "name", "bank"),
        "peers: bank is not a peer with the role active here",
    ),
    "role of a peer": (
        lambda p: setattr(p.members[0], "role", "passive"),
        "peers: shop is not a peer with the role passive here",
    ),
    "another protocol": (
        lambda p: setattr(p, "protocol", "label-dp"),
        "protocol: label-dp is not a system in which it takes part",
    ),
    "no protocol": (lambda p: setattr(p, "protocol", ""), "protocol: none is not a system in which it takes part"),
    "own role": (lambda p: setattr(p.members[1], "role", "key-node"), "role: it is measurement, not key-node"),
    "dataset": (lambda p: setattr(p.members[1], "dataset", "clicks"), "dataset: it has no dataset named clicks"),
    "no dataset": (lambda p: setattr(p.members[1], "dataset", ""), "dataset: it has no dataset named (none)"),
    "seed": (
        seeded,
        "seed: the parties draw splits and batches themselves; a seed is for jobs on one machine",
    ),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED)
async def test_a_proposal_that_is_not_for_this_party(
    authority: Path, tmp_path: Path, change: Change, said: str
) -> None:
    asked = proposal("monday")
    change(asked)
    await refused(authority, tmp_path, asked, PolicyRefused, f"meter refuses the job: {said}")


@pytest.mark.parametrize("sizes", [(1,) * (MOST_RECEIPTS + 1), (MOST_RECEIPT_BYTES + 1,)])
async def test_more_receipts_than_any_job_has(authority: Path, tmp_path: Path, sizes: tuple[int, ...]) -> None:
    asked = proposal("monday")
    signed(asked, *sizes)
    said = f"has more than {MOST_RECEIPTS} receipts, or one of more than {MOST_RECEIPT_BYTES} bytes"
    await refused(
        authority, tmp_path, asked, MalformedMessage, f"coordinator sent a malformed message: receipts: {said}"
    )


async def refused(authority: Path, directory: Path, asked: pb.Proposal, kind: type[BlindfitError], said: str) -> None:
    async with metering(authority, directory) as node:
        with pytest.raises(kind) as caught:
            await node.sessions.propose(asked, "coordinator")
        assert caught.value.message == said
        assert node.party.store.reader().sessions() == []


async def test_a_coordinator_sees_and_changes_its_own_sessions_alone(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node:
        session = await node.sessions.propose(proposal("monday"), "another")
        asked = pb.SessionRequest(session="monday")
        async with connect(node, make_identity(authority, "coordinator")) as channel:
            stub = control_pb2_grpc.ControlStub(channel)
            for call in (stub.Start, stub.Cancel, lambda asked: stub.Watch(asked).read()):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call(asked)
                assert reason_of_call(caught.value) == "SESSION_UNKNOWN"
        assert session.state == "ACCEPTED"


def test_a_party_whose_certificate_is_anothers_does_not_start(authority: Path, tmp_path: Path) -> None:
    settings = settings_of(authority, tmp_path).model_copy(update={"name": "scale"})
    with pytest.raises(ConfigError, match=r"^name = scale, but .*certificate\.pem is the certificate of meter$"):
        PartyNode(settings, tmp_path)
    assert not (tmp_path / "state").exists()


def test_a_step_that_no_table_of_states_has() -> None:
    with pytest.raises(LocalProtocolError, match="a session that is DONE cannot start"):
        next_state(State.DONE, "start", "monday")
    with pytest.raises(LocalProtocolError, match="a session that is new cannot finish"):
        next_state(State.NEW, "finish", "monday")
