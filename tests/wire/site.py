"""One party's end of the wire for tests: a real server with mutual TLS and the guard, and real channels to others."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import grpc

from blindfit.algorithms.protocols.table import Table, list_arrows
from blindfit.parties.identity import connections as tls
from blindfit.parties.identity.identity import Identity
from blindfit.parties.wire.exchange import ExchangeChannel, ExchangeServicer
from blindfit.parties.wire.guard import Guard, current_caller
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.parties.wire.link import Timeouts
from blindfit.protos import exchange_pb2_grpc
from tests.certificates import make_identity
from tests.wire.proxy import Proxy

ROLES = {"p0": "active", "p1": "passive", "dealer": "key-node", "stranger": "passive", "boss": "coordinator"}
QUICK = Timeouts(step_s=60.0, reconnect_s=20.0)


class Site:
    """Server of its open sessions; `addresses` has those of the others, `tables` what sessions may carry."""

    def __init__(self, authority: Path, name: str, limits: Limits | None = None, tables: Sequence[Table] = ()) -> None:
        self.identity: Identity = make_identity(authority, name)
        self.name, self.limits = name, limits or Limits(connect_timeout_s=10.0)
        self.listed = list_arrows(tables)
        self.sessions: dict[str, ExchangeChannel] = {}
        self.addresses: dict[str, str] = {}
        self.server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self.server = grpc.aio.server(
            interceptors=(Guard(self.name, lambda context: tls.caller(context, self.identity), ROLES, self.limits),),
            options=server_options(self.limits),
            maximum_concurrent_rpcs=self.limits.calls_of(len(ROLES)),
        )
        exchange_pb2_grpc.add_ExchangeServicer_to_server(
            ExchangeServicer(self.sessions.get, current_caller), self.server
        )
        self.port = self.server.add_secure_port(f"127.0.0.1:{self.port}", tls.server_credentials(self.identity))
        await self.server.start()

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop(None)
            self.server = None

    async def connect(self, peer: str, address: str) -> grpc.aio.Channel:
        return await tls.open_channel(self.identity, peer, address, self.limits)

    async def cut(self) -> None:
        """Interrupt every connection, nothing else."""
        await self.stop()
        await self.start()

    def join(self, session: str, timeouts: Timeouts = QUICK, *, start: bool = True) -> ExchangeChannel:
        channel = ExchangeChannel(
            session, self.name, self.addresses, ROLES, self.listed, self.connect, self.limits, timeouts
        )
        if start:
            channel.start()
        self.sessions[session] = channel
        return channel

    def forget(self, session: str) -> None:
        """Remove a session, as a restart does."""
        self.sessions.pop(session)


@contextlib.asynccontextmanager
async def sites(
    authority: Path, *names: str, limits: Limits | None = None, tables: Sequence[Table] = ()
) -> AsyncIterator[dict[str, Site]]:
    """Start sites of which each can reach every other directly."""
    up = {name: Site(authority, name, limits, tables) for name in names}
    try:
        for site in up.values():
            await site.start()
        introduce(up, {name: f"127.0.0.1:{site.port}" for name, site in up.items()})
        yield up
    finally:
        channels = [channel for site in up.values() for channel in site.sessions.values()]
        await asyncio.gather(*(channel.close(asyncio.CancelledError()) for channel in channels))
        await asyncio.gather(*(site.stop() for site in up.values()))


@contextlib.asynccontextmanager
async def proxied(
    authority: Path, *names: str, schedule: random.Random, tables: Sequence[Table]
) -> AsyncIterator[dict[str, Site]]:
    """Start sites that reach each other through a bad network."""
    async with sites(authority, *names, tables=tables) as up, contextlib.AsyncExitStack() as stack:
        proxies = {n: await stack.enter_async_context(Proxy(site.port, schedule)) for n, site in up.items()}
        introduce(up, {name: f"127.0.0.1:{proxy.port}" for name, proxy in proxies.items()})
        yield up


def introduce(up: Mapping[str, Site], addresses: Mapping[str, str]) -> None:
    for name, site in up.items():
        site.addresses = {peer: address for peer, address in addresses.items() if peer != name}
