"""Calls of a party's services, as tests of the wire make them."""

from __future__ import annotations

import grpc
import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.wire import codec, error_codes
from blindfit.protos import control_pb2

WATCH = "/grpc.health.v1.Health/Watch"


DESCRIBE = "/blindfit.v1.Control/Describe"


def typed(error: grpc.aio.AioRpcError) -> BlindfitError:
    return error_codes.error_of_call(error, peer="meter", address="a:1", step="Call")


async def refusal(calling: object) -> BlindfitError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return typed(caught.value)


def proposal(session: str) -> control_pb2.Proposal:
    job = WalrJob(privacy=PrivacySettings(epsilon=0.5))
    return control_pb2.Proposal(
        session=session,
        protocol="walr",
        members=[
            control_pb2.Member(name="shop", role="active", address="localhost:1", dataset="rows"),
            control_pb2.Member(name="meter", role="measurement", address="localhost:2", dataset="labels"),
        ],
        parameters=codec.parameters_to_pb(job.to_parameters()),
    )


async def hold(channel: grpc.aio.Channel, count: int) -> list[grpc.aio.StreamStreamCall]:
    held = [channel.stream_stream(WATCH)() for _ in range(count)]
    for stream in held:
        await stream.write(b"")
        await stream.read()
    return held
