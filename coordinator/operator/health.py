"""`blindfit health`: ask a party on this machine by grpc.health.v1, with its own certificate, whether it serves.

A health check runs every few seconds, and importing all of Blindfit takes seconds on a small machine. So this module
imports little and runs by itself, for containers: `python -m blindfit.coordinator.operator.health PARTY.TOML`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when gRPC is imported

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blindfit.algorithms.errors import BlindfitError, ConfigError, TransportError
from blindfit.parties.files.private_files import read_passphrase
from blindfit.parties.identity.connections import open_channel
from blindfit.parties.identity.identity import Identity, load_identity
from blindfit.parties.wire.addresses import split_address
from blindfit.parties.wire.limits import Limits

TIMEOUT_S = 5.0
STEP = "Health/Check"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - what a party listens on -> where it answers


async def ask(own: Identity, listen: str) -> None:
    """Return if the party that listens there serves.

    Raises:
        ConfigError: the party has no fixed port, or does not have itself as a peer.
        TransportError: the party cannot be reached, is another party, or does not serve.
    """
    name, address = own.name, address_of(listen)
    async with await open_channel(own, name, address, Limits(connect_timeout_s=TIMEOUT_S)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise _to_error(error.code(), name) from None
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise TransportError(f"{name} does not serve", peer=name, step=STEP)


def _to_error(code: grpc.StatusCode, name: str) -> ConfigError | TransportError:
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return ConfigError(
            f"{name} is running, but refuses a health check from itself",
            hint=f"give its party file [peers.{name}] with its own role",
        )
    return TransportError(f"{name} is running, but its health check ended with {code.name}", peer=name, step=STEP)


def address_of(listen: str) -> str:
    """Return the address at which a party on this machine answers: 0.0.0.0:7100 -> 127.0.0.1:7100."""
    if listen.endswith(":0"):
        raise ConfigError(f"listen = {listen}: each start takes another port", hint='set listen = "0.0.0.0:7100"')
    host, port = split_address(listen)
    return f"{ANY_ADDRESS.get(host, f'[{host}]' if ':' in host else host)}:{port}"


def check(path: Path) -> None:
    """Check a party that has started, so its file is assumed to be valid."""
    values = tomllib.loads(path.read_text("utf-8-sig"))
    asyncio.run(ask(_identity(values["identity"], path.parent), values.get("listen", "127.0.0.1:0")))


def _identity(table: Mapping[str, str], base_dir: Path) -> Identity:
    paths = {name: base_dir / path for name, path in table.items()}
    secret = paths.pop("passphrase_file", None)
    return load_identity(**paths, passphrase=read_passphrase(secret) if secret else None)


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except BlindfitError as error:
        sys.exit(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
