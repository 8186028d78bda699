from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.identity.connections import open_channel, server_credentials
from blindfit.parties.identity.identity import Identity
from blindfit.parties.wire.limits import Limits, channel_options, server_options
from tests.certificates import demo_authority, make_identity
from tests.each_case import each_case

SMALL = Limits(
    max_message_bytes=2000,
    chunk_bytes=1000,
    window_bytes=4000,
    max_typed_message_bytes=8000,
    max_metadata_bytes=4096,
)


class Echo(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def echo(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            return request * (2 if details.method == "/echo/Twice" else 1)

        return grpc.unary_unary_rpc_method_handler(echo)


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return make_identity(demo_authority(tmp_path), "alice")


@contextlib.asynccontextmanager
async def connected(
    identity: Identity, server_limits: Limits, client_limits: Limits
) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(options=server_options(server_limits))
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_secure_port("127.0.0.1:0", server_credentials(identity))
    await server.start()
    async with await open_channel(identity, "alice", f"127.0.0.1:{port}", client_limits) as channel:
        yield channel
    await server.stop(None)


async def code(channel: grpc.aio.Channel, size: int, method: str = "/echo/Once", metadata_bytes: int = 0) -> str:
    try:
        headers = (("x", "x" * metadata_bytes),)
        await channel.unary_unary(method)(b"x" * size, metadata=headers, timeout=60)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


async def test_a_server_takes_no_larger_message_or_metadata(identity: Identity) -> None:
    async with connected(identity, SMALL, Limits()) as channel:
        assert await code(channel, 2000) == "OK"
        assert await code(channel, 2001) == "RESOURCE_EXHAUSTED"
        assert await code(channel, 1, metadata_bytes=3000) == "OK"
        assert await code(channel, 1, metadata_bytes=4096) == "RESOURCE_EXHAUSTED"


async def test_a_client_takes_and_sends_no_larger_message(identity: Identity) -> None:
    async with connected(identity, Limits(), SMALL) as channel:
        assert await code(channel, 1000, "/echo/Twice") == "OK"
        assert await code(channel, 1001, "/echo/Twice") == "RESOURCE_EXHAUSTED"
        assert await code(channel, 2001) == "RESOURCE_EXHAUSTED"


async def test_the_defaults_carry_a_chunk_with_its_envelope(identity: Identity) -> None:
    limits = Limits()
    async with connected(identity, limits, limits) as channel:
        assert await code(channel, limits.chunk_bytes + 4096) == "OK"


async def test_two_servers_do_not_share_a_port(identity: Identity) -> None:
    first, second = (grpc.aio.server(options=server_options(Limits())) for _ in range(2))
    port = first.add_secure_port("127.0.0.1:0", server_credentials(identity))
    with pytest.raises(RuntimeError, match="Failed to bind"):
        second.add_secure_port(f"127.0.0.1:{port}", server_credentials(identity))


def test_every_default_in_grpcs_words() -> None:
    common = {
        "grpc.max_send_message_length": 4 * 2**20,
        "grpc.max_receive_message_length": 4 * 2**20,
        "grpc.max_metadata_size": 16 * 2**10,
        "grpc.absolute_max_metadata_size": 16 * 2**10,
        "grpc.keepalive_time_ms": 30_000,
        "grpc.keepalive_timeout_ms": 10_000,
        "grpc.http2.ping_timeout_ms": 10_000,  # a minute by default: a frozen peer was noticed after 90 seconds
        "grpc.keepalive_permit_without_calls": 1,
    }
    server, channel = dict(server_options(Limits())), dict(channel_options(Limits()))
    assert common.items() <= server.items()
    assert common.items() <= channel.items()
    assert server["grpc.max_concurrent_streams"] == 64
    # A client that keeps alive as it should is never taken for one that pings too often.
    assert server["grpc.http2.min_ping_interval_without_data_ms"] < channel["grpc.keepalive_time_ms"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sessions": 0}, "limits.sessions is 0: it must be positive"),
        ({"connect_timeout_s": float("nan")}, "limits.connect_timeout_s is nan: it must be positive"),
        (
            {"chunk_bytes": 4 * 2**20},
            "limits.chunk_bytes is 4194304: it must be less than limits.max_message_bytes",
        ),
        (
            {"min_ping_interval_s": 30.0},
            "limits.min_ping_interval_s is 30.0: it must be less than limits.keepalive",
        ),
    ],
)
def test_limits_that_make_no_sense(settings: dict[str, float], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Limits(**settings)
    assert str(caught.value).startswith(text)


SOUND = {
    "chunk_bytes": 10,
    "window_bytes": 20,
    "max_message_bytes": 20,
    "max_typed_message_bytes": 30,
    "peer_bytes": 40,
    "min_ping_interval_s": 1.0,
    "keepalive_time_s": 2.0,
    "reconnect_first_s": 1.0,
    "reconnect_max_s": 2.0,
}


@each_case(
    ("smaller", "larger"),
    [
        ("chunk_bytes", "max_message_bytes"),
        ("chunk_bytes", "window_bytes"),
        ("max_message_bytes", "max_typed_message_bytes"),
        ("max_typed_message_bytes", "peer_bytes"),
        ("min_ping_interval_s", "keepalive_time_s"),
        ("reconnect_first_s", "reconnect_max_s"),
    ],
)
def test_a_limit_is_less_than_the_one_that_it_must_fit_into(smaller: str, larger: str) -> None:
    Limits(**SOUND)
    with pytest.raises(ConfigError, match=rf"limits\.{smaller} is .*: it must be less than limits\.{larger}, "):
        Limits(**{**SOUND, larger: SOUND[smaller]})
