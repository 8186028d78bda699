"""The edge of a party: it identifies each caller, checks permission, and answers errors.

Every call of every service passes here. Only this module has a broad `except`: by default grpc.aio sends the text of an
exception to the peer. For the same reason it parses requests itself, after the caller was admitted.

It also reads requests itself. grpc.aio would wait for the single request of a call before it identifies the caller. A
call whose request never comes would then count for no caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from blindfit.algorithms.errors import (
    BlindfitError,
    CallNotAllowed,
    LimitExceeded,
    MalformedMessage,
    PeerTimeout,
    forget_frames,
    where,
)
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.turns import Turns

log = structlog.get_logger(__name__)

DATA_ROLES = frozenset({"active", "passive", "measurement", "key-node"})
ALL_ROLES = DATA_ROLES | {"coordinator"}

# Roles that may call each method. A method that is not here may be called by nobody.
ALLOWED: dict[str, frozenset[str]] = {
    "/blindfit.v1.Control/Describe": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Propose": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Check": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Reserve": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Start": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Watch": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Cancel": frozenset({"coordinator"}),
    "/blindfit.v1.Control/Waiting": ALL_ROLES,
    "/blindfit.v1.Exchange/Open": DATA_ROLES,
    "/blindfit.v1.Measurement/Describe": frozenset({"active"}),
    "/blindfit.v1.Measurement/Aggregate": frozenset({"active"}),
    "/blindfit.v1.Measurement/ReleaseLabels": frozenset({"active"}),
    "/blindfit.v1.Measurement/Budget": frozenset({"active"}),
    "/grpc.health.v1.Health/Check": ALL_ROLES,
    "/grpc.health.v1.Health/Watch": ALL_ROLES,
    "/grpc.health.v1.Health/List": ALL_ROLES,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": ALL_ROLES,
}

REQUEST_S = 10.0  # longest time that the single request of a call may take

_caller: ContextVar[str] = ContextVar("caller")


def current_caller() -> str:
    """Return the authenticated name of the caller of the current call."""
    return _caller.get()


class Guard(grpc.aio.ServerInterceptor):
    """The interceptor of every call.

    Args:
        caller_of: function from a call's context to the name in the caller's certificate; raises PeerUnauthenticated.
        roles: role of each peer that this party knows.
        check_again: check at every message of an admitted call; raises PeerUnauthenticated.
    """

    def __init__(
        self,
        party: str,
        caller_of: Callable[[Any], str],
        roles: Mapping[str, str],
        limits: Limits | None = None,
        check_again: Callable[[Any], None] = lambda _context: None,
    ) -> None:
        self._party, self._caller_of, self._roles, self._check_again = party, caller_of, roles, check_again
        self._most = (limits or Limits()).calls_of_a_peer
        self._calls: Counter[str] = Counter()
        self._turns = Turns()
        self._connections: Counter[str] = Counter()

    def is_serving(self, connection: str) -> bool:
        """Return True if a connection carries an admitted call. gRPC's name of a connection is such as
        ipv4:127.0.0.1:40000.
        """
        return connection in self._connections

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:
        handler: Any = await continuation(details)
        if handler is None:
            return handler
        method = str(details.method)
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._guard_stream(method, handler), None, handler.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(
            self._guard_unary(method, handler), None, handler.response_serializer
        )

    def _guard_unary(self, method: str, handler: Any) -> Any:
        behaviour = handler.unary_unary or handler.stream_unary

        async def serve(raw: AsyncIterator[bytes], context: Any) -> Any:
            try:
                with self._admit(method, context):
                    result = behaviour(await self._parse_request(raw, handler, method, context), context)
                    return await result if inspect.isawaitable(result) else result
            except Exception as error:  # noqa: BLE001 - the edge
                await self._abort(method, context, error)

        return serve

    def _guard_stream(self, method: str, handler: Any) -> Any:
        behaviour = handler.unary_stream or handler.stream_stream

        async def serve(raw: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            try:
                with self._admit(method, context):
                    responses = behaviour(await self._parse_request(raw, handler, method, context), context)
                    if inspect.isawaitable(responses):  # the handler writes the responses itself
                        await responses
                        return
                    async with contextlib.aclosing(responses):
                        async for response in responses:
                            self._check_again(context)
                            yield response
            except Exception as error:  # noqa: BLE001 - the edge
                await self._abort(method, context, error)

        return serve

    @contextlib.contextmanager
    def _admit(self, method: str, context: Any) -> Iterator[None]:
        """Admit a call. Raise PeerUnauthenticated, CallNotAllowed or LimitExceeded."""
        caller = self._caller_of(context)
        _caller.set(caller)
        if self._roles.get(caller) not in ALLOWED.get(method, frozenset()):
            raise CallNotAllowed(peer=self._party, method=method)
        if self._calls[caller] >= self._most:
            raise LimitExceeded(peer=self._party, step=method, limit=f"{self._most} calls at once of {caller}")
        with _count(self._calls, caller), _count(self._connections, context.peer()):
            yield

    async def _parse_request(self, raw: AsyncIterator[bytes], handler: Any, method: str, context: Any) -> Any:
        """Return a request, or the requests of a stream, from bytes.

        Raises:
            PeerTimeout, MalformedMessage: the single request did not come, or is malformed.
        """
        await self._turns.wait(_caller.get(), is_call=True)
        if handler.request_streaming:
            return self._parse_all(raw, handler, context)
        try:
            async with asyncio.timeout(REQUEST_S):
                data = await anext(aiter(raw))
        except TimeoutError:
            raise PeerTimeout(peer=_caller.get(), step=method, timeout_s=REQUEST_S) from None
        except StopAsyncIteration:
            raise MalformedMessage(culprit=_caller.get(), field="request", reason="is missing") from None
        return _parse(data, handler)

    async def _parse_all(self, raw: AsyncIterator[bytes], handler: Any, context: Any) -> AsyncIterator[Any]:
        """Yield the requests of a stream. Raise PeerUnauthenticated if the certificate was revoked after the call had
        begun.
        """
        caller = _caller.get()
        async for data in raw:
            await self._turns.wait(caller)
            self._check_again(context)
            yield _parse(data, handler)

    async def _abort(self, method: str, context: Any, error: Exception) -> None:
        if isinstance(error, grpc.aio.AbortError):
            raise error
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            log.error("no more files can be opened: raise the limit of open files (ulimit -n) of this process")
            error = LimitExceeded(peer=self._party, step=method, limit=f"files that {self._party} may have open")
        self._log(method, error)
        status = error_codes.status_of(error)
        # gRPC's call, its own error and our frames refer to each other: the received messages would stay in memory.
        forget_frames(error)
        said = rpc_status.to_status(status)
        await context.abort(said.code, said.details, trailing_metadata=said.trailing_metadata)

    def _log(self, method: str, error: Exception) -> None:
        caller = _caller.get("?")
        if isinstance(error, BlindfitError):
            said = {"reason": error.message} | ({"hint": error.hint} if error.hint else {})
            log.warning("call failed", method=method, caller=caller, error=type(error).__name__, **said)
        else:
            # The place, but not the text: the text of a foreign exception may hold data.
            log.error("call failed", method=method, caller=caller, error=type(error).__name__, where=where(error))


@contextlib.contextmanager
def _count(counter: Counter[str], key: str) -> Iterator[None]:
    counter[key] += 1
    try:
        yield
    finally:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]


def _parse(data: bytes, handler: Any) -> Any:
    try:
        return handler.request_deserializer(data)
    except DecodeError:
        raise MalformedMessage(
            culprit=_caller.get(), field="request", reason="is not the method's protobuf message"
        ) from None
