"""A measurement server behind gRPC, and its clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import grpc

from blindfit.algorithms.errors import (
    BlindfitError,
)
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum
from blindfit.parties.identity import connections as tls
from blindfit.parties.identity.identity import Identity
from blindfit.parties.measurement.calls import MeasurementCalls
from blindfit.parties.measurement.server import MeasurementServicer
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.guard import Guard, current_caller
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.protos import measurement_pb2_grpc
from tests.certificates import make_identity
from tests.measurement.house import House, one_hot

AGGREGATE = "/blindfit.v1.Measurement/Aggregate"


ROLES = {"shop": "active", "bank": "active", "organiser": "coordinator"}


class Server:
    """A house behind gRPC, stopped and started again at one address."""

    def __init__(self, house: House, identity: Identity, limits: Limits) -> None:
        self.house, self._identity, self._limits = house, identity, limits
        self.answered: list[AggregateOpen] = []
        self.port = 0

    async def start(self) -> None:
        guard = Guard("labels", lambda context: tls.caller(context, self._identity), ROLES)
        self.server = grpc.aio.server(interceptors=(guard,), options=server_options(self._limits))
        servicer = MeasurementServicer(
            self.house.service, current_caller, lambda _, request: self.answered.append(request)
        )
        measurement_pb2_grpc.add_MeasurementServicer_to_server(servicer, self.server)
        self.port = self.server.add_secure_port(f"127.0.0.1:{self.port}", tls.server_credentials(self._identity))
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop(0)

    async def restart(self, away_s: float = 0.3) -> None:
        await self.stop()
        await asyncio.sleep(away_s)
        await self.start()


class World:
    def __init__(self, house: House, authority: Path, limits: Limits) -> None:
        self.house, self._authority = house, authority
        self.server = Server(house, make_identity(authority, "labels"), limits)
        self.background: list[asyncio.Task[None]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def client(self, name: str = "shop", **settings: Any) -> MeasurementCalls:
        settings = {"step_timeout_s": 60.0, "reconnect_s": 20.0} | settings
        return MeasurementCalls(make_identity(self._authority, name), "labels", self.address, **settings)

    async def ask(self, rows: ConsumerRows | None = None, consumer: str = "shop", **changes: Any) -> NoisySum:
        rows = one_hot() if rows is None else rows
        return (await self.client(consumer).aggregate(rows, self.house.request(rows, **changes))).answer

    def meanwhile(self, work: Awaitable[None]) -> None:
        self.background.append(asyncio.ensure_future(work))

    async def channel(self, name: str = "shop", limits: Limits | None = None) -> grpc.aio.Channel:
        return await tls.open_channel(make_identity(self._authority, name), "labels", self.address, limits)

    async def status_of(self, *requests: bytes) -> tuple[grpc.StatusCode, BlindfitError]:
        """Return the answer to a foreign client that writes these bytes into one Aggregate call."""
        async with await self.channel() as channel:
            call = channel.stream_stream(AGGREGATE)()
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                for request in requests:
                    await call.write(request)
                while await call.read() is not grpc.aio.EOF:
                    pass
            error = grpc.aio.AioRpcError(
                await call.code(), grpc.aio.Metadata(), await call.trailing_metadata(), await call.details()
            )
            return error.code(), error_codes.error_of_call(error, peer="labels", address="", step="Aggregate")


@contextlib.asynccontextmanager
async def serving(house: House, authority: Path, limits: Limits | None = None) -> AsyncIterator[World]:
    world = World(house, authority, limits or Limits())
    await world.server.start()
    try:
        yield world
    finally:
        await asyncio.gather(*world.background)
        await world.server.stop()
