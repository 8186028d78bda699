"""A peer that uses up a limit learns which limit and whose, and the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, ConfigError, LimitExceeded
from blindfit.algorithms.messages import Octets
from blindfit.algorithms.protocols.table import ALL, CHUNKS, Arrow, Table
from blindfit.parties.node import PartyNode, set_up_logs
from blindfit.parties.sessions import sessions as module
from blindfit.parties.systems import read_proposed
from blindfit.parties.wire import codec, doorkeeper, guard
from blindfit.parties.wire.frames import Account, Inbox
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2, control_pb2_grpc, exchange_pb2_grpc, payload_pb2
from blindfit.protos import exchange_pb2 as pb
from tests.certificates import make_identity
from tests.each_case import each_case
from tests.wire.calls import DESCRIBE, WATCH, hold, proposal, refusal
from tests.wire.floods import idlers, swollen
from tests.wire.meter import call, connect, metering
from tests.wire.site import Site, sites

MIB = 2**20


# --- proposals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (swollen(**{f"name-{i}": {"integer": 1} for i in range(15_000)}), "has more than 512 names"),
        (swollen(protocol={"texts": payload_pb2.TextList(items=["x"] * 100_000)}), "has more than 65536 bytes"),
        (swollen(protocol={"texts": payload_pb2.TextList(items=["x"] * 2049)}), "has a list of more than 2048 items"),
        (swollen(**{"x" * 129: {"integer": 1}}), "has a name of more than 128 characters"),
        (swollen(protocol={"text": "x" * 70_000}), "has more than 65536 bytes"),
    ],
)
async def test_parameters_that_no_job_has_are_refused_before_anything_reads_them(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: payload_pb2.Parameters, reason: str
) -> None:
    read: list[object] = []
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        monkeypatch.setattr(node.sessions.admission, "read_job", lambda values: read.append(values))
        stub = control_pb2_grpc.ControlStub(channel)
        swelled = proposal("s")
        swelled.parameters.CopyFrom(parameters)
        with capture_logs() as logs:
            error = await refusal(stub.Propose(swelled))
        assert f"parameters: {reason}" in str(error)
        assert read == []
        assert all(len(repr(line)) < 3000 for line in logs)


@pytest.mark.parametrize(
    "swell",
    [
        lambda asked: asked.members.extend([control_pb2.Member(name="x")] * 65),
        lambda asked: asked.members.append(control_pb2.Member(name="x" * 257)),
        lambda asked: setattr(asked, "protocol", "x" * 257),
    ],
)
async def test_a_proposal_that_no_job_has_is_refused(authority: Path, tmp_path: Path, swell: object) -> None:
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        asked = proposal("s")
        swell(asked)
        error = await refusal(control_pb2_grpc.ControlStub(channel).Propose(asked))
        assert "has more than 64 members, or a text of more than 256 characters" in str(error)


def test_of_many_mistakes_the_first_are_told_and_near_names_are_looked_for_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    found = difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, *rest: looked.append(word) or found(word, *rest))
    unknown = {f"walr.clip-{i}": 1 for i in range(500)}
    with pytest.raises(ConfigError) as caught:
        read_proposed({"protocol": "walr", "privacy.epsilon": 1.0, "align" * 20: 1, **unknown})
    assert "and 491 more mistakes" in str(caught.value)
    assert "is not an option" in str(caught.value)
    assert len(str(caught.value)) < 4000
    assert 0 < len(looked) <= 3
    assert all(len(word) <= 64 for word in looked)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_line_of_the_log_is_cut(capfd: pytest.CaptureFixture[str], log_format: str) -> None:
    import structlog

    set_up_logs("info", log_format)
    try:
        structlog.get_logger("a").warning("call failed", reason="x" * 1_000_000)
    finally:
        structlog.reset_defaults()
    line = capfd.readouterr().err
    assert "998000 characters left out" in line
    assert len(line) < 3000


def test_a_peers_text_does_not_steer_the_terminal_that_shows_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    """structlog quotes what has a space in it, and prints the rest as it is."""
    import structlog

    set_up_logs("info", "text")
    try:
        structlog.get_logger("a").warning("call failed", reason="\x1b[2Jgone\rfor\x9bever", step="a b\x1b[0m")
    finally:
        structlog.reset_defaults()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.isprintable()
    assert "gone" in line


def test_our_own_parameters_have_the_same_limits() -> None:
    with pytest.raises(BlindfitError, match="has more than 512 names"):
        codec.parameters_to_pb({str(i): 1 for i in range(513)})


# --- sessions ---------------------------------------------------------------------------------------------


async def test_a_coordinator_that_has_its_sessions_takes_nothing_from_another(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path, Limits(sessions=2)) as node:
        for n in range(2):
            await node.sessions.propose(proposal(f"a-{n}"), "hostile")
        with pytest.raises(LimitExceeded) as refused:
            await node.sessions.propose(proposal("a-2"), "hostile")
        assert refused.value.limit == "2 sessions at once that hostile proposed"
        for n in range(2):
            assert (await node.sessions.propose(proposal(f"b-{n}"), "coordinator")).state == "ACCEPTED"


async def test_names_are_kept_for_ever_so_their_number_is_bounded(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path, Limits(proposals_a_day=3)) as node:
        for n in range(3):
            await node.sessions.propose(proposal(f"a-{n}"), "hostile")
            await node.sessions.cancel(f"a-{n}")
        with pytest.raises(LimitExceeded) as refused:
            await node.sessions.propose(proposal("a-3"), "hostile")
        assert refused.value.limit == "3 sessions a day that hostile proposed"
        await node.sessions.propose(proposal("b"), "coordinator")


async def test_ended_sessions_of_one_coordinator_do_not_push_out_anothers(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_ENDED_SESSIONS", 2)
    async with metering(authority, tmp_path) as node:
        await node.sessions.propose(proposal("mine"), "coordinator")
        await node.sessions.cancel("mine")
        for n in range(6):
            await node.sessions.propose(proposal(f"a-{n}"), "hostile")
            await node.sessions.cancel(f"a-{n}")
        assert node.sessions.get("mine").state == "ENDED"
        assert len(node.sessions._sessions) <= 4


# --- calls ------------------------------------------------------------------------------------------------


async def test_two_peers_with_every_call_leave_the_others_theirs(authority: Path, tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        node = await stack.enter_async_context(metering(authority, tmp_path))
        shop, helper, coordinator = [
            await stack.enter_async_context(connect(node, make_identity(authority, name)))
            for name in ("shop", "helper", "coordinator")
        ]
        held = [await hold(hostile, 64) for hostile in (shop, helper)]
        assert await call(coordinator, DESCRIBE, b"") == "OK"
        again = await stack.enter_async_context(connect(node, make_identity(authority, "shop")))
        stub = control_pb2_grpc.ControlStub(again)
        error = await refusal(stub.Describe(control_pb2.DescribePartyRequest()))
        assert not isinstance(error, LimitExceeded)  # not its method, for any other calls that it has open
        error = await refusal(again.unary_unary(WATCH.replace("Watch", "Check"))(b""))
        assert isinstance(error, LimitExceeded)
        assert error.limit == "64 calls at once of shop"
        assert not any(stream.done() for streams in held for stream in streams)  # a call that nobody keeps is cancelled


async def test_calls_whose_request_never_comes_are_counted_and_end(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with metering(authority, tmp_path, Limits(calls_of_a_peer=5)) as node:
        async with connect(node, make_identity(authority, "shop")) as shop:
            silent = [shop.stream_stream("/blindfit.v1.Measurement/Budget")() for _ in range(5)]
            await calls_at(node, 5)
            assert await call(shop, WATCH, b"") == "LIMIT_EXCEEDED"
            for stream in silent:
                stream.cancel()
            await calls_at(node, 0)
            with monkeypatch.context() as patch:
                patch.setattr(guard, "REQUEST_S", 0.1)
                error = await refusal(shop.stream_stream("/blindfit.v1.Measurement/Budget")().read())
            assert "waited 0.1 s for shop" in str(error)
            assert await call(shop, WATCH, b"") == "OK"


async def calls_at(node: PartyNode, count: int) -> None:
    """Wait until this many calls of shop go on."""
    async with asyncio.timeout(60):
        while node.guard._calls["shop"] != count:
            await asyncio.sleep(0.01)


async def test_a_unary_call_without_a_request_is_malformed(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "shop")) as shop:
        assert await call(shop, "/blindfit.v1.Measurement/Budget") == "MALFORMED_MESSAGE"


# --- connections ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def few_files(more: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_idle_connections_make_room(authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorkeeper, "LOOK_S", 0.1)
    async with metering(authority, tmp_path, Limits(connections=40)) as node:
        async with connect(node, make_identity(authority, "shop")) as shop:
            (busy,) = await hold(shop, 1)
            with few_files(120), capture_logs() as logs:
                async with idlers(node.port, 300):
                    async with connect(node, make_identity(authority, "coordinator")) as channel:
                        async with asyncio.timeout(60):
                            while await call(channel, DESCRIBE, b"") != "OK":
                                await asyncio.sleep(0.1)
                        asked = control_pb2_grpc.ControlStub(channel).Propose(proposal("s"))
                        assert (await asked).state == control_pb2.ACCEPTED
            told = [line for line in logs if line["event"].startswith("too many connections")]
            assert told[0]["log_level"] == "warning"
            assert told[0]["limit"] == 40
            assert told[0]["most_are_from"] == "ipv4:127.0.0.1"
            assert sum(line["closed"] for line in told) >= 10
            assert not busy.done()  # a connection that carries a call stays


@each_case(
    ("host", "name"),
    [
        ("127.0.0.1", "ipv4:127.0.0.1:5"),
        ("::ffff:10.0.0.1", "ipv4:10.0.0.1:5"),
        ("fe80::1%eth0", "ipv6:%5Bfe80::1%5D:5"),
        ("::1", "ipv6:%5B::1%5D:5"),
    ],
)
def test_a_connection_has_grpcs_name(host: str, name: str) -> None:
    assert doorkeeper.name_of(host, 5) == name


def test_open_files_are_raised_and_connections_fit_in_them() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with few_files(50):
        assert doorkeeper.raise_open_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    assert doorkeeper.fitting(Limits(connections=100), 200) == Limits(connections=100)
    with capture_logs() as logs:
        assert doorkeeper.fitting(Limits(connections=100), 150).connections == 75
    assert "ulimit -n" in logs[0]["event"]


async def test_no_more_files_is_a_clear_answer(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(24, "Too many open files")

    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        monkeypatch.setattr(node.sessions, "propose", full)
        with capture_logs() as logs:
            error = await refusal(control_pb2_grpc.ControlStub(channel).Propose(proposal("s")))
        assert isinstance(error, LimitExceeded)
        assert error.limit == "files that meter may have open"
        assert any(line["log_level"] == "error" and "ulimit -n" in line["event"] for line in logs)


# --- half-sent messages -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Parcel:
    data: Octets


MAIL = Table("mail", Arrow("1", ALL, ALL, Parcel, CHUNKS, "all of it"))


async def send_half(site: Site, to: str, session: str, mib: int) -> grpc.aio.StreamStreamCall:
    """Send chunks of a message that has no last chunk."""
    channel = await site.connect(to, site.addresses[to])
    stream = exchange_pb2_grpc.ExchangeStub(channel).Open()
    await stream.write(pb.Frame(session=session, sender=site.name, hello=pb.Hello(outbox="x")))
    await stream.read()
    for number in range(1, mib + 1):
        chunk = pb.Chunk(data=b"x" * MIB)
        await stream.write(pb.Frame(session=session, sender=site.name, sequence=number, step="Parcel", chunk=chunk))
    return stream


async def filled(account: Account, octets: int) -> None:
    async with asyncio.timeout(60):
        while account.held < octets:
            await asyncio.sleep(0.01)


async def drained(account: Account) -> None:
    async with asyncio.timeout(30):
        while account.held:
            await asyncio.sleep(0.01)


async def test_a_session_that_has_not_started_holds_little_and_loses_nothing(authority: Path) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        sender, receiver = up["p0"].join("s"), up["p1"].join("s", start=False)
        held = receiver._arrivals["p0"].inbox
        sending = asyncio.create_task(sender.send("p1", Parcel(b"x" * (16 * MIB))))
        async with asyncio.timeout(60):
            while held.held_bytes < MIB:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert held.held_bytes <= 2 * MIB + 1024
        receiver.start()
        assert len((await receiver.receive("p0", Parcel)).data) == 16 * MIB
        await sending


async def test_half_a_message_is_let_go_with_its_stream(authority: Path) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        receiver = up["p1"].join("s")
        account = receiver._arrivals["p0"].inbox.account
        stream = await send_half(up["p0"], "p1", "s", 4)
        await filled(account, 4 * MIB)
        stream.cancel()
        await drained(account)


async def test_a_session_that_is_called_off_holds_nothing(authority: Path, tmp_path: Path) -> None:
    async with metering(authority, tmp_path) as node:
        session = await node.sessions.propose(proposal("s"), "coordinator")
        inbox = session.channel._arrivals["shop"].inbox
        inbox.accept(pb.Frame(session="s", sender="shop", hello=pb.Hello(outbox="x")))
        inbox.accept(pb.Frame(session="s", sender="shop", sequence=1, step="Hello", chunk=pb.Chunk(data=b"x" * 1000)))
        assert node.sessions.admission.accounts.of("shop").held == 1000
        await node.sessions.cancel("s")
        assert node.sessions.admission.accounts.of("shop").held == 0


def test_what_one_peer_has_sent_counts_over_all_sessions() -> None:
    limits = Limits(
        max_message_bytes=64, chunk_bytes=8, window_bytes=2000, max_typed_message_bytes=100, peer_bytes=1000
    )
    account = Account("p0", limits.peer_bytes)
    inboxes = [Inbox(str(n), "p0", limits, account) for n in range(20)]
    for inbox in inboxes:
        inbox.accept(pb.Frame(session=inbox.session, sender="p0", hello=pb.Hello(outbox="x")))

    def fill() -> None:
        for inbox in inboxes:
            for number in range(1, 11):
                chunk = pb.Chunk(data=b"x" * 8)
                inbox.accept(pb.Frame(session=inbox.session, sender="p0", sequence=number, step="Parcel", chunk=chunk))

    with pytest.raises(LimitExceeded) as caught:
        fill()
    assert caught.value.limit == "1000 bytes of unread messages of p0, over all sessions"
    assert account.held == 1000
    for inbox in inboxes:
        inbox.drop_part()
    assert account.held == 0


def test_a_big_message_behind_an_unread_one_waits() -> None:
    limits = Limits(max_message_bytes=64, chunk_bytes=8, window_bytes=1000, max_typed_message_bytes=10_000)
    inbox = Inbox("s", "p0", limits, Account("p0", 100_000))
    inbox.accept(pb.Frame(session="s", sender="p0", hello=pb.Hello(outbox="x")))

    def chunks(first: int, count: int, *, last: bool) -> None:
        for number in range(first, first + count):
            chunk = pb.Chunk(data=b"x" * 8, last=last)
            inbox.accept(pb.Frame(session="s", sender="p0", sequence=number, step="Parcel", chunk=chunk))

    chunks(1, 1, last=True)
    chunks(2, 200, last=False)
    assert inbox.is_full
    assert inbox.pop() is not None
    assert not inbox.is_full  # it is the next to be read


# --- what gRPC itself refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata_bytes", "size", "limit"),
    [(20_000, 1, "size of a call's metadata"), (0, 5 * MIB, "size of one gRPC message")],
)
async def test_a_limit_of_grpc_has_a_name(
    authority: Path, tmp_path: Path, metadata_bytes: int, size: int, limit: str
) -> None:
    wide = Limits(max_message_bytes=8 * MIB, max_metadata_bytes=64 * 1024)
    async with metering(authority, tmp_path) as node:
        async with connect(node, make_identity(authority, "shop"), wide) as shop:
            asking = shop.unary_unary("/blindfit.v1.Measurement/Budget")
            error = await refusal(asking(b"x" * size, metadata=(("x", "x" * metadata_bytes),)))
    assert isinstance(error, LimitExceeded)
    assert error.limit == limit
