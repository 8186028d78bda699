"""Every limit of a running party is passed once: a typed error for the caller, and the server still serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from blindfit.algorithms.errors import LimitExceeded, PeerUnreachable, TransportError
from blindfit.parties.measurement import server as measurement
from blindfit.parties.node import PartyNode
from blindfit.parties.wire import exchange
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2, control_pb2_grpc
from tests.certificates import make_identity
from tests.statuses import reason_of_call
from tests.wire.calls import DESCRIBE, hold, proposal, refusal, typed
from tests.wire.meter import call, connect, metering

LIMITS = Limits(
    max_message_bytes=100_000,
    chunk_bytes=50_000,
    window_bytes=100_000,
    max_typed_message_bytes=200_000,
    max_metadata_bytes=8192,
    concurrent_streams=4,
    calls_of_a_peer=6,
    sessions=2,
    connect_timeout_s=5.0,
)


@contextlib.asynccontextmanager
async def coordinated(
    authority: Path, directory: Path, limits: Limits = LIMITS
) -> AsyncIterator[tuple[PartyNode, grpc.aio.Channel]]:
    """Yield a party and a coordinator's connection, which must be served to the end."""
    async with metering(authority, directory, limits) as node:
        async with connect(node, make_identity(authority, "coordinator")) as channel:
            yield node, channel
        async with connect(node, make_identity(authority, "coordinator")) as channel:
            assert await call(channel, DESCRIBE, b"") == "OK"


async def test_a_message_too_large(authority: Path, tmp_path: Path) -> None:
    async with coordinated(authority, tmp_path) as (_, channel):
        propose = control_pb2_grpc.ControlStub(channel).Propose
        error = await refusal(propose(control_pb2.Proposal(session="x" * 100_001)))
        assert isinstance(error, LimitExceeded)
        assert await call(channel, DESCRIBE, b"") == "OK"  # even on the same connection


async def test_metadata_too_large(authority: Path, tmp_path: Path) -> None:
    async with coordinated(authority, tmp_path) as (_, channel):
        describe = control_pb2_grpc.ControlStub(channel).Describe
        request = control_pb2.DescribePartyRequest()
        assert isinstance(await refusal(describe(request, metadata=(("x", "x" * 8192),))), LimitExceeded)
        assert await call(channel, DESCRIBE, b"", metadata=[("x", "x" * 4000)]) == "OK"


async def test_too_many_streams_on_a_connection_wait(authority: Path, tmp_path: Path) -> None:
    async with coordinated(authority, tmp_path) as (_, channel):
        held = await hold(channel, 4)
        describe = control_pb2_grpc.ControlStub(channel).Describe
        error = await refusal(describe(control_pb2.DescribePartyRequest(), timeout=0.3))
        assert isinstance(error, TransportError)
        held[0].cancel()
        assert await call(channel, DESCRIBE, b"") == "OK"


async def test_too_many_sessions(authority: Path, tmp_path: Path) -> None:
    async with coordinated(authority, tmp_path) as (_, channel):
        stub = control_pb2_grpc.ControlStub(channel)
        for session in ("a", "b"):
            assert (await stub.Propose(proposal(session))).state == control_pb2.ACCEPTED
        error = await refusal(stub.Propose(proposal("c")))
        assert isinstance(error, LimitExceeded)
        assert error.limit == "2 sessions at once that coordinator proposed"
        await stub.Cancel(control_pb2.SessionRequest(session="a"))
        assert (await stub.Propose(proposal("c"))).state == control_pb2.ACCEPTED


@pytest.mark.parametrize(
    ("method", "module", "deadline"),
    [
        ("/blindfit.v1.Exchange/Open", exchange, "HELLO_S"),
        ("/blindfit.v1.Measurement/Aggregate", measurement, "STEP_TIMEOUT_S"),
    ],
)
async def test_a_stream_that_says_nothing(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, module: object, deadline: str
) -> None:
    monkeypatch.setattr(module, deadline, 0.2)
    async with coordinated(authority, tmp_path) as (node, _):
        async with connect(node, make_identity(authority, "shop")) as shop:
            stream = shop.stream_stream(method)(timeout=60)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stream.read()
            assert reason_of_call(caught.value) == "PEER_TIMEOUT"
            assert typed(caught.value).timeout_s == 0.2


async def test_a_connection_that_never_shakes_hands(authority: Path, tmp_path: Path) -> None:
    async with coordinated(authority, tmp_path) as (node, _):
        connections = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(50)]
        async with asyncio.timeout(LIMITS.connect_timeout_s + 60):
            for reader, _writer in connections:
                await reader.read()  # until the server hangs up
        for _reader, writer in connections:
            writer.close()


async def test_a_client_that_pings_too_often(authority: Path, tmp_path: Path) -> None:
    eager = Limits(keepalive_time_s=0.05, min_ping_interval_s=0.01)
    async with coordinated(authority, tmp_path) as (node, _):
        async with connect(node, make_identity(authority, "shop"), eager) as shop:
            (held,) = await hold(shop, 1)
            async with asyncio.timeout(60):
                error = await refusal(held.read())
            assert isinstance(error, PeerUnreachable)
