"""A small measurement server in this process, and callers of every kind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from grpc_status import rpc_status

from blindfit.parties.identity.authority import issue
from blindfit.parties.identity.identity import Identity
from blindfit.parties.node import PartyNode
from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import validate
from blindfit.parties.wire.limits import Limits, channel_options
from tests.certificates import demo_authority, make_identity
from tests.statuses import reason_of

ROLES = {
    "coordinator": "coordinator",
    "shop": "active",
    "helper": "passive",
    "keys": "key-node",
    "other-meter": "measurement",
    "gone": "active",  # revoked
}
N_ROWS = 20


def settings_of(authority: Path, directory: Path) -> PartySettings:
    rows = "".join(f"{i},{i % 2}\n" for i in range(N_ROWS))
    (directory / "labels.csv").write_text("id,label\n" + rows)
    files = make_identity(authority, "meter").files
    values = {
        "name": "meter",
        "role": "measurement",
        "listen": "127.0.0.1:0",
        "identity": {
            "certificate": files.certificate,
            "key": files.key,
            "authority": files.authority,
            "revoked": authority / "crl.pem",
        },
        "peers": {name: {"role": role} for name, role in ROLES.items()},
        "policy": {"min_rows": 1},
        "populations": {"people": {"epsilon": 2.0, "delta": 1e-5}},
        "datasets": {
            "labels": {
                "url": "csv:labels.csv",
                "id": "id",
                "label": "label",
                "population": "people",
                "active_parties": ["shop"],
            }
        },
    }
    return validate(values, PartySettings, source="the test")


@contextlib.asynccontextmanager
async def metering(authority: Path, directory: Path, limits: Limits | None = None) -> AsyncIterator[PartyNode]:
    node = PartyNode(settings_of(authority, directory), directory, limits)
    await node.start()
    try:
        yield node
    finally:
        node._door.cancel()
        await node.sessions.close()
        await node.server.stop(None)
        node.party.store.close()


# --- callers --------------------------------------------------------------------------------------------


def connect(node: PartyNode, own: Identity | None, limits: Limits | None = None) -> grpc.aio.Channel:
    """Connect straight to gRPC: nothing on the caller's side refuses what the server should refuse."""
    root = make_identity(node.party.identity.files.authority.parents[1], "meter").authority_pem
    pair = (own.key_pem, own.certificate_pem) if own else (None, None)
    options = [
        *channel_options(limits or Limits()),
        ("grpc.ssl_target_name_override", "meter"),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    credentials = grpc.ssl_channel_credentials(root, *pair)
    return grpc.aio.secure_channel(f"127.0.0.1:{node.port}", credentials, options=options)


def in_plaintext(node: PartyNode) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{node.port}", options=[("grpc.use_local_subchannel_pool", 1)])


def expired(authority: Path) -> Identity:
    """Return the name of a party of the table, with a certificate that has expired."""
    files = issue(authority, "late", days=5, starts=datetime.now(UTC) - timedelta(days=10))
    own = make_identity(authority, "shop")
    return replace(own, certificate_pem=files.certificate.read_bytes(), key_pem=files.key.read_bytes())


def foreign(directory: Path) -> Identity:
    """Return the right name, from another authority."""
    return make_identity(demo_authority(directory), "shop")


async def call(
    channel: grpc.aio.Channel,
    method: str,
    *requests: bytes,
    metadata: Sequence[tuple[str, str]] = (),
    timeout_s: float = 5,
) -> str:
    """Return the result that the caller learns from the first answer: OK, the server's own code, or gRPC's status.

    This can call any method: on the wire a unary call is a stream of one message.
    """
    stream = channel.stream_stream(method)(metadata=grpc.aio.Metadata(*metadata), timeout=timeout_s)
    try:
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            for request in requests:
                await stream.write(request)
            await stream.done_writing()
        await stream.read()
    except grpc.aio.AioRpcError as error:
        if error.details() == "Internal error from Core":  # grpc.aio's own, for a write to a call that has ended
            return await call(channel, method, *requests, metadata=metadata, timeout_s=timeout_s)
        return said(error)
    finally:
        stream.cancel()
    return "OK"


def said(error: grpc.aio.AioRpcError) -> str:
    if (status := rpc_status.from_call(error)) is not None:  # the details have the same code and sentence as the call
        return reason_of(status)
    assert error.code() is not grpc.StatusCode.INTERNAL, error.details()
    return error.code().name
