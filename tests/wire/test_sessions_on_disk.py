"""Sessions on the disk: a name is used only once, and only the process with the port ends what ran before."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, ConfigError, PolicyRefused
from blindfit.parties.node import PartyNode
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.wire import error_codes
from blindfit.protos import control_pb2 as pb
from blindfit.protos import control_pb2_grpc
from tests.wire.calls import proposal
from tests.wire.meter import connect, make_identity, metering, settings_of


async def told(stub: control_pb2_grpc.ControlStub, name: str) -> BlindfitError:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Propose(proposal(name))
    return error_codes.error_of_call(refused.value, peer="meter", address="a:1", step="Propose")


async def test_a_name_is_used_once_also_after_a_restart(authority: Path, tmp_path: Path) -> None:
    own = make_identity(authority, "coordinator")
    for start in range(2):
        async with metering(authority, tmp_path) as node, connect(node, own) as channel:
            stub = control_pb2_grpc.ControlStub(channel)
            if start == 0:
                await stub.Propose(proposal("monday"))
                await stub.Cancel(pb.SessionRequest(session="monday"))
            refused = await told(stub, "monday")
            assert isinstance(refused, PolicyRefused)
            assert "there was a session of this name" in str(refused)
            assert (await stub.Propose(proposal(f"other-{start}"))).state == pb.ACCEPTED


@pytest.mark.parametrize("name", ["", "x" * 65, "a/b", "..", "a b"])
async def test_a_name_that_is_none(authority: Path, tmp_path: Path, name: str) -> None:
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        assert "its name does not consist of 1 to 64" in str(await told(control_pb2_grpc.ControlStub(channel), name))


async def test_a_second_start_by_mistake_changes_nothing(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        await control_pb2_grpc.ControlStub(channel).Propose(proposal("waits"))
        settings = settings_of(authority, tmp_path).model_copy(update={"listen": f"127.0.0.1:{node.port}"})
        twin = PartyNode(settings, tmp_path)
        with pytest.raises(ConfigError, match="the address cannot be bound"):
            await twin.start()
        twin.party.store.close()
        row = node.party.store.reader().session("waits")
        assert row is not None
        assert row.state == "ACCEPTED"


@pytest.mark.parametrize(("state", "then"), [("RUNNING", "FAILED"), ("HELD", "FAILED"), ("DONE", "DONE")])
async def test_what_a_killed_process_left_has_failed(authority: Path, tmp_path: Path, state: str, then: str) -> None:
    store = Store(tmp_path / "state" / "party.sqlite")
    with store.transaction() as transaction:
        transaction.add_session(SessionRow("monday", "walr", "coordinator", "", state, "then", b"a proposal"))
    store.close()
    with capture_logs() as logs:
        async with metering(authority, tmp_path) as node:
            row = node.party.store.reader().session("monday")
    assert row is not None
    assert row.state == then
    told = [(log["session"], log["state"]) for log in logs if log["event"] == "the process ended before its session"]
    assert told == ([("monday", state)] if then == "FAILED" else [])
