"""Every identity calls every method of a running party: exactly the cells of the table pass."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from blindfit.algorithms.errors import RangeError
from blindfit.parties.identity.authority import revoke
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.wire import guard
from blindfit.parties.wire.guard import ALLOWED
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2, control_pb2_grpc, exchange_pb2, measurement_pb2
from tests.certificates import make_identity
from tests.wire.meter import ROLES, call, connect, expired, foreign, in_plaintext, metering

DESCRIPTORS = (control_pb2, exchange_pb2, measurement_pb2, health_pb2, reflection_pb2)
SERVICES = [service for module in DESCRIPTORS for service in module.DESCRIPTOR.services_by_name.values()]
METHODS = [f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods]
CANARY = "secret canary"


@contextlib.asynccontextmanager
async def callers(node: PartyNode, authority: Path, elsewhere: Path) -> AsyncIterator[dict[str, grpc.aio.Channel]]:
    channels = {name: connect(node, make_identity(authority, name)) for name in [*ROLES, "unknown", "meter"]}
    revoke(authority, "gone")
    channels["expired"] = connect(node, expired(authority))
    channels["foreign"] = connect(node, foreign(elsewhere))
    channels["no certificate"] = connect(node, None)
    channels["plaintext"] = in_plaintext(node)
    try:
        yield channels
    finally:
        await asyncio.gather(*(channel.close() for channel in channels.values()))


def expected(name: str, method: str) -> str:
    if name in ("expired", "foreign", "no certificate", "plaintext"):
        return "UNAVAILABLE"  # not even a connection
    if name == "gone":
        return "PEER_UNAUTHENTICATED"
    return "passes" if ROLES.get(name) in ALLOWED[method] else "CALL_NOT_ALLOWED"


async def test_exactly_the_cells_of_the_table_pass(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node, callers(node, authority, tmp_path / "else") as channels:
        wrong = {}
        for name, channel in channels.items():
            answers = await asyncio.gather(*(call(channel, method, b"") for method in METHODS))
            for method, answer in zip(METHODS, answers, strict=True):
                refused = answer in ("CALL_NOT_ALLOWED", "PEER_UNAUTHENTICATED", "UNAVAILABLE", "UNIMPLEMENTED")
                if (answer if refused else "passes") != expected(name, method):
                    wrong[name, method] = answer
        assert wrong == {}


def test_the_table_lists_every_method_that_is_served_and_no_other() -> None:
    assert ALLOWED.keys() >= set(METHODS)
    assert ALLOWED.keys() - set(METHODS) <= {"/grpc.health.v1.Health/List"}  # older versions of the service lack it


async def test_the_server_serves_the_services_of_the_table(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node:
        async with connect(node, make_identity(authority, "coordinator")) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            stream = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
            listed = {s.name for s in (await stream.read()).list_services_response.service}
            assert listed == {service.full_name for service in SERVICES}
            assert await call(channel, "/blindfit.v1.Control/Unheard", b"") == "UNIMPLEMENTED"
            assert await call(channel, "/blindfit.v1.Unheard/Of", b"") == "UNIMPLEMENTED"


@pytest.mark.parametrize("junk", [b"\xff\xff\xff", b"\x0a\xff"])
async def test_a_request_that_does_not_parse_is_malformed_for_callers_and_unread_for_others(
    authority: Path, tmp_path: Path, junk: bytes
) -> None:
    async with metering(authority, tmp_path) as node:
        coordinator, shop = (connect(node, make_identity(authority, n)) for n in ("coordinator", "shop"))
        assert await call(coordinator, "/blindfit.v1.Control/Propose", junk) == "MALFORMED_MESSAGE"
        assert await call(coordinator, "/blindfit.v1.Control/Watch", junk) == "MALFORMED_MESSAGE"
        assert await call(shop, "/blindfit.v1.Exchange/Open", junk) == "MALFORMED_MESSAGE"
        assert await call(shop, "/blindfit.v1.Measurement/Aggregate", junk) == "MALFORMED_MESSAGE"
        assert await call(shop, "/blindfit.v1.Control/Propose", junk) == "CALL_NOT_ALLOWED"
        assert await call(shop, "/blindfit.v1.Control/Check", junk) == "CALL_NOT_ALLOWED"
        assert await call(coordinator, "/blindfit.v1.Control/Describe", b"") == "OK"
        await asyncio.gather(coordinator.close(), shop.close())


# --- messages when something breaks -----------------------------------------------------------------------


def broken(*_: object, **__: object) -> None:
    try:
        raise KeyError(CANARY)
    except KeyError as cause:
        raise ValueError(CANARY) from cause


async def broken_stream(*_: object) -> AsyncIterator[control_pb2.Event]:
    yield control_pb2.Event(state=control_pb2.RUNNING)
    raise ExceptionGroup(CANARY, [ValueError(CANARY)])


@pytest.mark.parametrize(
    ("caller", "method", "owner", "name"),
    [
        ("coordinator", "/blindfit.v1.Control/Propose", Sessions, "propose"),
        ("coordinator", "/blindfit.v1.Control/Watch", Sessions, "get"),
        ("shop", "/blindfit.v1.Exchange/Open", Sessions, "channel_of"),
        ("shop", "/blindfit.v1.Measurement/Budget", MeasurementService, "dataset"),
    ],
)
async def test_a_foreign_exception_leaves_without_a_word(
    authority: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    caller: str,
    method: str,
    owner: type,
    name: str,
) -> None:
    monkeypatch.setattr(owner, name, broken)
    hello = exchange_pb2.Frame(session="s", sender="shop", hello=exchange_pb2.Hello(outbox="x"))
    request = hello.SerializeToString() if method.endswith("Open") else b""
    with capture_logs() as logs:
        async with metering(authority, tmp_path) as node:
            async with connect(node, make_identity(authority, caller)) as channel:
                stream = channel.stream_stream(method)()
                await stream.write(request)
                await stream.done_writing()
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stream.read()
            monkeypatch.undo()
    error = caught.value
    assert error.code() is grpc.StatusCode.INTERNAL
    assert error.details() == "This party failed, and the reason is private. Its operator's log has the reason."
    sent = [*(error.initial_metadata() or ()), *(error.trailing_metadata() or ())]
    heard = repr([error, error.debug_error_string(), sent, logs, caplog.text, capfd.readouterr()])
    assert "canary" not in heard
    assert "KeyError" not in repr([error, sent])
    failures = [entry for entry in logs if entry["event"] == "call failed"]
    assert failures[0]["error"] == "ValueError"
    assert "test_guard.py" in failures[0]["where"]  # the operator learns where


async def test_an_exception_in_the_middle_of_a_stream_leaves_without_a_word(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with metering(authority, tmp_path) as node:
        monkeypatch.setattr(node.sessions, "watch", broken_stream)
        monkeypatch.setattr(node.sessions, "get", lambda _: type("Session", (), {"proposed_by": "coordinator"}))
        with capture_logs() as logs:
            async with connect(node, make_identity(authority, "coordinator")) as channel:
                stream = control_pb2_grpc.ControlStub(channel).Watch(control_pb2.SessionRequest(session="s"))
                assert (await stream.read()).state == control_pb2.RUNNING
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stream.read()
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert (caught.value.details() or "").startswith("This party failed, and the reason is private.")
        assert "canary" not in repr([caught.value, *caught.value.trailing_metadata(), logs, caplog.text])


def test_where_names_places_and_no_values() -> None:
    with pytest.raises(ValueError, match=CANARY) as caught:
        broken()
    assert guard.where(caught.value).count("test_guard.py:") == 2
    assert CANARY not in guard.where(caught.value)


# --- one caller cannot take everything -----------------------------------------------------------------------


async def test_a_caller_with_too_many_calls_is_refused_and_others_are_served(authority: Path, tmp_path: Path) -> None:
    watch = "/grpc.health.v1.Health/Watch"
    async with metering(authority, tmp_path, Limits(calls_of_a_peer=5)) as node:
        shop, coordinator = (connect(node, make_identity(authority, n)) for n in ("shop", "coordinator"))
        held = [shop.stream_stream(watch)() for _ in range(5)]
        for stream in held:
            await stream.write(b"")
            await stream.read()
        assert await call(shop, watch, b"") == "LIMIT_EXCEEDED"
        assert await call(coordinator, watch, b"") == "OK"
        for stream in held:
            stream.cancel()
        async with asyncio.timeout(60):
            while await call(shop, watch, b"") != "OK":
                await asyncio.sleep(0.02)
        await asyncio.gather(shop.close(), coordinator.close())


def test_the_log_says_what_to_do_about_a_refusal() -> None:
    """The command `blindfit run` reads reason and hint there."""
    with capture_logs() as logs:
        edge = guard.Guard("meter", lambda _context: "shop", {})
        edge._log("Propose", RangeError("it is too large", hint="lower it"))
        edge._log("Propose", RangeError("it is too large"))
    assert [(entry["reason"], entry.get("hint")) for entry in logs] == [
        ("it is too large", "lower it"),
        ("it is too large", None),
    ]
