"""The Control service of one party, as a coordinator calls it. Every failed call raises a typed error."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from blindfit.algorithms.errors import BlindfitError, PeerTimeout
from blindfit.parties.identity import connections as identity
from blindfit.parties.identity.identity import Identity
from blindfit.parties.wire import error_codes, waits
from blindfit.protos import control_pb2 as pb
from blindfit.protos import control_pb2_grpc

CALL_TIMEOUT_S = 30.0
ALONE_TIMEOUT_S = 10.0  # for a call that a person waits for, without a job


@dataclass(frozen=True)
class Control:
    name: str
    address: str
    stub: control_pb2_grpc.ControlStub

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, own: Identity, name: str, address: str) -> AsyncIterator[Control]:
        """Raise TransportError: the party cannot be reached, or is another party."""
        channel = await identity.open_channel(own, name, address)
        try:
            yield cls(name, address, control_pb2_grpc.ControlStub(channel))  # type: ignore[no-untyped-call]
        finally:
            await channel.close()

    async def call(self, method: str, request: object, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        try:
            return await getattr(self.stub, method)(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise self._to_error(error, method) from None

    async def describe(self, timeout_s: float = CALL_TIMEOUT_S) -> pb.PartyDescription:
        description: pb.PartyDescription = await self.call("Describe", pb.DescribePartyRequest(), timeout_s)
        return description

    async def check(self, proposal: pb.Proposal, timeout_s: float = CALL_TIMEOUT_S) -> None:
        """Raise the party's refusal of a proposal."""
        await self.call("Check", proposal, timeout_s)

    async def cancel(self, session: str, timeout_s: float, blamed: str = "") -> pb.SessionAnswer:
        """End a session at the party.

        Args:
            blamed: party that ended the job; the others name it.
        """
        request = pb.SessionRequest(session=session, blamed=blamed)
        answer: pb.SessionAnswer = await self.call("Cancel", request, timeout_s)
        return answer

    async def events(self, session: str, timeout_s: float | None = None) -> AsyncIterator[pb.Event]:
        """Yield the party's reports about a session, until the session ends there.

        Raises:
            PeerTimeout: the session has not ended in `timeout_s` seconds.
        """
        call = self.stub.Watch(pb.SessionRequest(session=session), timeout=timeout_s)
        try:
            async for event in call:
                yield event
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise PeerTimeout(peer=self.name, step="Watch", timeout_s=timeout_s or 0) from None
            raise self._to_error(error, "Watch") from None
        finally:
            call.cancel()

    async def waits(self, session: str, members: Sequence[str]) -> waits.Report:
        """Return the party's report about its waits in a session."""
        return await waits.ask_stub(self.stub, session, members)

    def _to_error(self, error: grpc.aio.AioRpcError, step: str) -> BlindfitError:
        return error_codes.error_of_call(error, peer=self.name, address=self.address, step=step)
