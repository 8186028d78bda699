"""The exchange between real servers over mutual TLS on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import (
    BlindfitError,
    DataError,
    LimitExceeded,
    LocalProtocolError,
    MalformedMessage,
    PeerAborted,
    PeerTimeout,
    PeerUnreachable,
    TransportError,
    UnexpectedStep,
)
from blindfit.algorithms.messages import Integer, Octets
from blindfit.algorithms.protocols.table import ACTIVE, ALL, CHUNKS, PASSIVE, Arrow, Table
from blindfit.parties.identity import connections as tls
from blindfit.parties.wire import acknowledgements, frames
from blindfit.parties.wire.exchange import ExchangeChannel
from blindfit.parties.wire.limits import Limits, server_options
from blindfit.parties.wire.link import Signal, Timeouts
from blindfit.protos import exchange_pb2 as pb
from blindfit.protos import exchange_pb2_grpc
from tests.statuses import reason_of_call
from tests.wire.site import QUICK, Site, introduce, sites

MIB = 2**20
SHORT = Timeouts(step_s=60.0, reconnect_s=3.0)


@dataclass(frozen=True, slots=True, repr=False)
class Parcel:
    number: Integer
    data: Octets


@dataclass(frozen=True, slots=True, repr=False)
class Letter:
    number: Integer


@dataclass(frozen=True, slots=True, repr=False)
class Postcard:
    """A message that no table has."""

    number: Integer


MAIL = Table(
    "mail",
    Arrow("1", ALL, ALL, Parcel, CHUNKS, "all of it"),
    Arrow("1", ALL, ALL, Letter, CHUNKS, "all of it"),
)


@contextlib.asynccontextmanager
async def pair(
    authority: Path, timeouts: Timeouts = QUICK, limits: Limits | None = None
) -> AsyncIterator[tuple[ExchangeChannel, ExchangeChannel, dict[str, Site]]]:
    async with sites(authority, "p0", "p1", limits=limits, tables=[MAIL]) as up:
        yield up["p0"].join("s", timeouts), up["p1"].join("s", timeouts), up


async def failure(awaitable: object, error: type[BlindfitError], within_s: float = 30.0) -> BlindfitError:
    async with asyncio.timeout(within_s):
        with pytest.raises(error) as caught:
            await awaitable
    return caught.value


# --- what must arrive arrives -------------------------------------------------------------------------


async def test_big_messages_in_both_directions_at_once(authority: Path) -> None:
    async with pair(authority, Timeouts(step_s=30, reconnect_s=5)) as (p0, p1, _):
        big = [bytes([i]) * (20 * MIB + i) for i in range(2)]

        async def talk(me: ExchangeChannel, peer: str, mine: bytes, theirs: bytes) -> None:
            await me.send(peer, Parcel(0, mine))
            assert (await me.receive(peer, Parcel)).data == theirs

        await asyncio.gather(talk(p0, "p1", *big), talk(p1, "p0", *reversed(big)))


async def test_many_small_messages_arrive_in_order(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):

        async def send(me: ExchangeChannel, peer: str) -> None:
            for number in range(500):
                await me.send(peer, Letter(number))

        async def receive(me: ExchangeChannel, peer: str) -> list[int]:
            return [(await me.receive(peer, Letter)).number for _ in range(500)]

        _, _, *received = await asyncio.gather(send(p0, "p1"), send(p1, "p0"), receive(p0, "p1"), receive(p1, "p0"))
        assert received == [list(range(500))] * 2


async def test_small_messages_are_acknowledged_together(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One acknowledgement for each would be half of all messages of parties that answer each other."""
    monkeypatch.setattr(acknowledgements, "GATHER_S", 1.0)
    async with pair(authority) as (p0, p1, _):
        for number in range(200):
            await p0.send("p1", Letter(number))
            await p1.receive("p0", Letter)
        outbox = p0._links["p1"]._outbox
        acknowledge, told = outbox.acknowledge, []
        monkeypatch.setattr(outbox, "acknowledge", lambda received: (told.append(received), acknowledge(received)))
        began = time.monotonic()
        for number in range(200):
            await p0.send("p1", Letter(number))
            await p1.receive("p0", Letter)
        await p0._links["p1"].flush(60)
        assert len(told) <= 2 + (time.monotonic() - began)  # one a second
        assert told[-1] == 400


async def test_who_closes_acknowledges_at_once(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledgements, "GATHER_S", 3600.0)
    async with pair(authority) as (p0, p1, _):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        async with asyncio.timeout(30):
            await asyncio.gather(p0.close(), p1.close())


async def test_a_stream_that_its_sender_ends_is_acknowledged_to_its_end(
    authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgements, "GATHER_S", 3600.0)
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up, asyncio.timeout(30):
        up["p1"].join("s")
        call, channel = await open_stream(up["p0"], up["p1"])
        for frame in (HELLO, CHUNK, changed(CHUNK, sequence=2)):
            await call.write(frame)
        await call.done_writing()
        told = [ack.received async for ack in call]
        assert told[-1] == 2
        await channel.close()


async def test_who_does_not_read_holds_the_sender_back(authority: Path) -> None:
    limits = Limits(chunk_bytes=8192, window_bytes=65536, connect_timeout_s=3)
    async with pair(authority, limits=limits) as (p0, p1, _):
        sent = 0

        async def send() -> None:
            nonlocal sent
            for number in range(100):
                await p0.send("p1", Parcel(number, b"x" * 8000))
                sent += 1

        sending = asyncio.create_task(send())
        async with asyncio.timeout(60):
            while sent < 16:  # two windows
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.7)
        assert sent <= 40  # messages between them, and no more
        held = p1._arrivals["p0"].inbox.held_bytes
        assert held <= 65536 + 8192 + 512
        for number in range(100):
            assert (await p1.receive("p0", Parcel)).number == number
        await sending


async def test_close_brings_what_is_on_its_way(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        for number in range(20):
            await p0.send("p1", Parcel(number, b"x" * 100_000))
        await p0.close()
        assert [(await p1.receive("p0", Parcel)).number for _ in range(20)] == list(range(20))


class Line:
    """A link whose last message needs some turns of the event loop, and may fail then."""

    def __init__(self, turns: int, error: TransportError | None = None) -> None:
        self.turns, self.error, self.is_through = turns, error, False

    async def flush(self, _timeout_s: float) -> None:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.is_through = True


async def test_a_peer_that_cannot_be_reached_takes_nothing_from_another_one(
    authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pair(authority) as (p0, _p1, _up):
        first, second = [PeerUnreachable(peer=peer, address="a:1", step="Letter") for peer in ("first", "second")]
        lines = {"first": Line(3, first), "second": Line(0, second), "slow": Line(9)}
        with monkeypatch.context() as patched:
            patched.setattr(p0, "_links", lines)
            with pytest.raises(PeerUnreachable) as caught:
                await p0.close()
        assert caught.value is first, "the first in the order of the peers, whichever failed first"
        assert lines["slow"].is_through


async def test_messages_of_another_kind_are_named(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        await p0.send("p1", Letter(1))
        error = await failure(p1.receive("p0", Parcel), UnexpectedStep)
    assert (error.culprit, error.expected, error.got) == ("p0", "Parcel", "Letter")


# --- cuts ---------------------------------------------------------------------------------------------


async def test_a_cut_that_ends_in_time_leaves_no_trace(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, up):
        for number in range(5):
            await p0.send("p1", Letter(number))
            assert (await p1.receive("p0", Letter)).number == number
            await up["p1"].cut()
        await p0.send("p1", Letter(5))
        await asyncio.sleep(SHORT.reconnect_s + 0.3)  # the old stream's clock must not end the new stream
        assert (await p1.receive("p0", Letter)).number == 5
        await p0.send("p1", Letter(6))
        assert (await p1.receive("p0", Letter)).number == 6


async def test_a_cut_after_a_long_silence_is_mended_too(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, up):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        for _ in range(2):  # the second silence has nothing acknowledged in it
            await asyncio.sleep(SHORT.reconnect_s + 0.2)
            await up["p1"].cut()
        await asyncio.sleep(0.3)
        await p0.send("p1", Letter(1))
        assert (await p1.receive("p0", Letter)).number == 1


async def test_a_peer_that_restarts_in_time_on_the_same_address(authority: Path) -> None:
    async with pair(authority) as (p0, p1, up):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        await up["p1"].stop()
        await p0.send("p1", Letter(1))
        await asyncio.sleep(0.3)
        await up["p1"].start()  # the session lived on: only the connections were cut
        assert (await p1.receive("p0", Letter)).number == 1


async def test_a_peer_that_is_gone_is_named_after_reconnect_s(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, up):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        await up["p0"].stop()
        for link in p0._links.values():
            await link.close()
        error = await failure(p1.receive("p0", Letter), PeerUnreachable)
        assert (error.peer, error.step) == ("p0", "Letter")
        assert error.address == f"127.0.0.1:{up['p0'].port}"


async def test_a_peer_that_never_was_there_is_named_by_send_and_by_receive(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, _p1, up):
        await up["p1"].stop()
        await p0.send("p1", Letter(0))
        error = await failure(p0.receive("p1", Letter), PeerUnreachable, SHORT.step_s - 1)
        assert (error.peer, error.step) == ("p1", "connect")
        assert await failure(p0.send("p1", Letter(1)), PeerUnreachable) is error
        assert await failure(p0.close(), PeerUnreachable) is error  # not delivered is not done


async def test_a_deadline_names_peer_and_step(authority: Path) -> None:
    async with pair(authority, Timeouts(step_s=0.3, reconnect_s=5)) as (p0, p1, _):
        await p1.send("p0", Letter(1))
        arrivals = p0._arrivals["p1"]
        async with asyncio.timeout(60):  # to connect takes a busy machine longer than that deadline
            await arrivals.changed.until(lambda: not arrivals.inbox.is_empty)
        await p0.receive("p1", Letter)
        error = await failure(p0.receive("p1", Parcel), PeerTimeout)
    assert (error.peer, error.step, error.timeout_s) == ("p1", "Parcel", 0.3)


async def test_a_sender_that_must_wait_too_long_names_the_step(authority: Path) -> None:
    limits = Limits(chunk_bytes=1024, window_bytes=2048, connect_timeout_s=3)
    async with pair(authority, Timeouts(step_s=0.5, reconnect_s=5), limits) as (p0, _p1, _up):

        async def send() -> None:
            while True:
                await p0.send("p1", Parcel(0, b"x" * 1000))

        error = await failure(send(), PeerTimeout)
    assert (error.peer, error.step) == ("p1", "Parcel")


# --- lost state ---------------------------------------------------------------------------------------


async def test_a_receiver_that_lost_its_session_ends_it(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, up):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        up["p1"].forget("s")
        await up["p1"].cut()
        error = await failure(p0.receive("p1", Letter), PeerAborted)
        await p1.close(error)
    assert (error.culprit, error.code) == ("p1", "SESSION_UNKNOWN")


async def test_an_attempt_for_which_no_time_is_left_says_nothing_new(authority: Path) -> None:
    """The second attempt here takes so long to connect that it is broken off."""
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        connect, attempts = up["p0"].connect, []

        async def slowly(peer: str, address: str) -> grpc.aio.Channel:
            attempts.append(peer)
            await asyncio.sleep(0 if len(attempts) == 1 else 60)
            return await connect(peer, address)

        p0 = up["p0"].join("s", SHORT)
        p0._open_peer = slowly
        await p0.send("p1", Letter(0))
        error = await failure(p0.receive("p1", Letter), PeerAborted)
    assert (error.culprit, error.code, len(attempts)) == ("p1", "SESSION_UNKNOWN", 2)


async def test_a_receiver_that_starts_the_session_anew_is_found_out(authority: Path) -> None:
    async with pair(authority) as (p0, p1, up):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        await p0._links["p1"].flush(60)  # acknowledged: otherwise it would rightly be sent again
        anew = up["p1"].join("s")
        await up["p1"].cut()
        await p0.send("p1", Letter(1))
        error = await failure(p0.receive("p1", Letter), MalformedMessage)
        assert (error.culprit, error.field) == ("p1", "received")
        assert "lost" in error.reason
        assert anew._arrivals["p0"].inbox.is_empty  # nothing was omitted silently
        await p1.close()


async def test_a_sender_that_starts_the_session_anew_is_found_out(authority: Path) -> None:
    async with pair(authority) as (p0, p1, up):
        for number in range(2):
            await p0.send("p1", Letter(number))
            await p1.receive("p0", Letter)
        for link in p0._links.values():
            await link.close()
        anew = up["p0"].join("s")
        for number in range(3):  # the first two would pass for the old ones
            await anew.send("p1", Letter(10 + number))
        error = await failure(p1.receive("p0", Letter), MalformedMessage)
        assert (error.culprit, error.field) == ("p0", "outbox")
        assert isinstance(await failure(anew.receive("p1", Letter), PeerAborted), PeerAborted)


# --- what the tables list -------------------------------------------------------------------------------


async def test_what_no_table_lists_does_not_leave(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        error = await failure(p0.send("p1", Postcard(1)), LocalProtocolError)
        assert str(error).startswith("Postcard does not go from a party that is active to one that is passive")
        assert p0.bytes_sent == 0
        assert p0.messages_sent == 0
        assert not p0._links  # not even a stream was opened
        await failure(p1.receive("p0", Postcard), LocalProtocolError, within_s=0.5)  # nobody may send it: no wait


async def test_a_message_goes_only_between_the_roles_that_the_table_names(authority: Path) -> None:
    down = Table("mail", Arrow("1", ACTIVE, PASSIVE, Letter, CHUNKS, "all of it"))
    async with sites(authority, "p0", "p1", tables=[down]) as up:
        p0, p1 = up["p0"].join("s"), up["p1"].join("s")
        await p0.send("p1", Letter(1))
        assert (await p1.receive("p0", Letter)).number == 1
        await failure(p1.send("p0", Letter(2)), LocalProtocolError)


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_what_arrives_and_no_table_lists_is_its_senders_fault(authority: Path, is_waiting: bool) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        up["p0"].listed |= {(Postcard, "active", "passive")}  # a sender that does not keep to the table
        p0, p1 = up["p0"].join("s"), up["p1"].join("s")
        receiving = asyncio.ensure_future(p1.receive("p0", Letter))
        if not is_waiting:
            receiving.cancel()
        await p0.send("p1", Postcard(1))
        told = await failure(p0.receive("p1", Letter), PeerAborted)  # refused as it comes, read or not
        assert told.culprit == "p1"
        error = await failure(receiving if is_waiting else p1.close(), UnexpectedStep)
        assert (error.culprit, error.got) == ("p0", "Postcard")


# --- the end of a session -------------------------------------------------------------------------------


async def test_a_message_that_nobody_read_is_no_good_end(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        await p0.send("p1", Letter(1))
        await p0.send("p1", Letter(2))
        await p0.close()  # only p1 may send this
        await p1.receive("p0", Letter)
        error = await failure(p1.close(), UnexpectedStep)
        assert (error.culprit, error.expected, error.got) == ("p0", "the end of the session", "Letter")
        await p1.close(error)


async def test_a_farewell_is_no_message_that_nobody_read(authority: Path) -> None:
    """A peer that fails after it has sent everything takes nothing away from a party that has finished."""
    async with pair(authority) as (p0, p1, _):
        await p0.send("p1", Letter(1))
        await p0.close(DataError("too few rows"))
        await p1.receive("p0", Letter)
        await p1.close()


async def test_an_abort_brings_its_code_and_no_text(authority: Path) -> None:
    async with sites(authority, "p0", "p1", "dealer", tables=[MAIL]) as up:
        p0, p1, dealer = (up[name].join("s") for name in up)
        await p0.send("p1", Letter(7))
        with capture_logs() as logs:
            await p0.close(DataError("secret canary", hint="secret canary"))
            assert (await p1.receive("p0", Letter)).number == 7  # earlier messages still count
            for _ in range(2):  # repeated to a party that asks again
                for peer in (p1, dealer):  # the dealer had no message from p0 before
                    error = await failure(peer.receive("p0", Letter), PeerAborted)
                    assert (error.culprit, error.code) == ("p0", "CANNOT_TAKE_PART")
                    assert "canary" not in str(error) + error.hint
        assert "canary" not in repr(logs)


async def test_a_cancelled_session_says_so(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        await p0.close(PeerAborted(culprit="boss", code="CANCELLED"))
        assert (await failure(p1.receive("p0", Letter), PeerAborted)).code == "CANCELLED"


async def test_an_abort_with_control_characters_is_made_plain(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        p0._link("p1").abort(9, "\x1b[31mred\n" + "x" * 1000, "\x1b[31mred")
        error = await failure(p1.receive("p0", Letter), PeerAborted)
        assert error.step == "\ufffd[31mred\ufffd" + "x" * 55
        assert error.lost == ""  # it does not belong to the session


async def test_an_abort_names_the_party_that_was_lost(authority: Path) -> None:
    async with sites(authority, "p0", "p1", "dealer", tables=[MAIL]) as up:
        p0, p1, _dealer = (up[name].join("s") for name in up)
        p0._link("p1").abort(9, "Letter", "dealer")
        error = await failure(p1.receive("p0", Letter), PeerAborted)
        assert (error.culprit, error.step, error.lost) == ("p0", "Letter", "dealer")


async def test_an_abort_ends_a_wait_for_something_else(authority: Path) -> None:
    async with pair(authority) as (p0, p1, _):
        waiting = asyncio.create_task(p1.wait_for(asyncio.Event().wait(), "p0", "Work", 60))
        await p0.send("p1", Letter(1))  # an unread message does not hide the abort
        await p0.close(DataError("wrong"))
        assert (await failure(waiting, PeerAborted)).code == "CANNOT_TAKE_PART"


async def test_a_wait_for_something_else_ends_with_it_or_at_its_deadline(authority: Path) -> None:
    async with pair(authority) as (_p0, p1, _):
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, done.set)
        await p1.wait_for(done.wait(), "p0", "Work", 60)
        error = await failure(p1.wait_for(asyncio.Event().wait(), "p0", "Work", 0.05), PeerTimeout)
        assert (error.peer, error.step) == ("p0", "Work")

        async def fails() -> None:
            raise DataError("wrong")

        await failure(p1.wait_for(fails(), "p0", "Work", 60), DataError)


async def test_a_closed_session_leaves_no_task_behind(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, up):
        await p0.send("p1", Letter(1))
        await p1.send("p0", Letter(1))
        await up["p1"].stop()
        closing = asyncio.create_task(p0.close())
        await asyncio.sleep(0.1)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await p0.close(PeerAborted(culprit="boss", code="CANCELLED"))
        await p1.close(DataError("gone"))
        assert [t.get_name() for t in asyncio.all_tasks() if "link" in t.get_name()] == []
        for late in (p0.send("p1", Letter(2)), p0.receive("p1", Letter)):
            await failure(late, LocalProtocolError)


@pytest.mark.parametrize("is_through", [True, False])
async def test_who_is_through_is_not_taken_for_one_who_was_lost(authority: Path, is_through: bool) -> None:
    """A party that ends a session because another was lost does not name it; a stream that has ended may
    be the reason.
    """
    async with sites(authority, "p0", "p1", "dealer", tables=[MAIL]) as up:
        p0, p1, dealer = (up[name].join("s") for name in up)
        await dealer.send("p1", Letter(0))
        await p1.receive("dealer", Letter)
        if is_through:
            await dealer.close()
        else:
            await dealer._links["p1"].close()
        arrivals = p1._arrivals["dealer"]
        async with asyncio.timeout(60):
            while arrivals.clock is None:
                await asyncio.sleep(0.01)
        await p0.close(PeerTimeout(peer="p1", step="Letter", timeout_s=1.0))
        error = await failure(p1.receive("p0", Letter), PeerAborted if is_through else PeerUnreachable)
        assert ("p0 ended the session" if is_through else "cannot reach dealer") in str(error)


async def test_who_is_through_need_not_hear_that_another_one_is(authority: Path) -> None:
    """The other party's process may have ended."""
    async with pair(authority) as (p0, p1, up):
        for sender, receiver in ((p0, p1), (p1, p0)):
            await sender.send(receiver.name, Letter(0))
            await receiver.receive(sender.name, Letter)
            await sender._links[receiver.name].flush(60)
        await p0.close()
        await up["p0"].stop()
        async with asyncio.timeout(QUICK.reconnect_s - 1):
            await p1.close()


async def test_what_nobody_will_read_is_not_acknowledged(authority: Path) -> None:
    async with pair(authority, SHORT) as (p0, p1, _):
        await p0.send("p1", Letter(0))
        await p1.receive("p0", Letter)
        await p1.close()
        await p0.send("p1", Letter(1))
        error = await failure(p0.close(), PeerAborted)
        assert (error.culprit, error.code) == ("p1", "SESSION_UNKNOWN")


async def test_nobody_else_can_be_sent_to(authority: Path) -> None:
    async with pair(authority) as (p0, _p1, _up):
        for stranger in (p0.send("dealer", Letter(1)), p0.receive("dealer", Letter)):
            await failure(stranger, LocalProtocolError)


# --- who may be in a session ------------------------------------------------------------------------------


async def test_a_stranger_learns_nothing_of_a_session(authority: Path) -> None:
    async with sites(authority, "p0", "p1", "stranger", tables=[MAIL]) as up:
        introduce({"p0": up["p0"], "p1": up["p1"]}, {n: f"127.0.0.1:{up[n].port}" for n in ("p0", "p1")})
        p1 = up["p1"].join("s", SHORT)
        said = []
        for session in ("s", "there-is-none"):
            stranger = up["stranger"].join(session, SHORT)
            await stranger.send("p1", Letter(1))
            error = await failure(stranger.receive("p1", Letter), PeerAborted)
            said.append((error.code, str(error), error.step))
        assert said[0] == said[1]
        assert said[0][0] == "SESSION_UNKNOWN"
        assert p1._arrivals["p0"].inbox.is_empty


async def open_stream(site: Site, to: Site) -> tuple[object, grpc.aio.Channel]:
    channel = await site.connect(to.name, f"127.0.0.1:{to.port}")
    return exchange_pb2_grpc.ExchangeStub(channel).Open(), channel


async def read_all(call: object) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_a_newer_stream_takes_the_place_of_an_older_one(authority: Path) -> None:
    """The older stream may wait on a dead connection, or cheat and bring its own frame in addition to
    the newer one's.
    """
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        p1 = up["p1"].join("s")
        older, first = await open_stream(up["p0"], up["p1"])
        await older.write(HELLO)
        assert (await older.read()).received == 0
        newer, second = await open_stream(up["p0"], up["p1"])
        await newer.write(HELLO)
        assert (await newer.read()).received == 0
        async with asyncio.timeout(30):
            await read_all(older)
        assert await older.code() is grpc.StatusCode.OK
        await newer.write(CHUNK)
        assert (await newer.read()).received == 1
        assert p1._arrivals["p0"].failure is None
        await first.close()
        await second.close()


HELLO = pb.Frame(session="s", sender="p0", hello=pb.Hello(outbox="outbox"))
CHUNK = pb.Frame(session="s", sender="p0", sequence=1, step="Letter", chunk=pb.Chunk(data=b"x", last=True))


def changed(frame: pb.Frame, **fields: object) -> pb.Frame:
    other = pb.Frame()
    other.CopyFrom(frame)
    other.MergeFrom(pb.Frame(**fields))
    return other


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ([], "MALFORMED_MESSAGE"),
        ([CHUNK], "MALFORMED_MESSAGE"),
        ([changed(HELLO, session="t")], "SESSION_UNKNOWN"),
        ([changed(HELLO, sender="dealer")], "MALFORMED_MESSAGE"),
        ([changed(HELLO, hello=pb.Hello(outbox="x" * 65))], "MALFORMED_MESSAGE"),
        ([HELLO, changed(CHUNK, session="t")], "MALFORMED_MESSAGE"),
        ([HELLO, changed(CHUNK, sequence=2)], "MALFORMED_MESSAGE"),
        ([HELLO, changed(CHUNK, sender="p1")], "MALFORMED_MESSAGE"),
        ([HELLO, changed(CHUNK, step="not a name")], "MALFORMED_MESSAGE"),
        ([HELLO, changed(HELLO, hello=pb.Hello(outbox="another"))], "MALFORMED_MESSAGE"),
        ([HELLO, changed(CHUNK, chunk=pb.Chunk(data=b"x" * (MIB + 1)))], "LIMIT_EXCEEDED"),
    ],
)
async def test_a_stream_that_breaks_the_rules_is_ended(authority: Path, sent: list[pb.Frame], code: str) -> None:
    async with sites(authority, "p0", "p1", "dealer", tables=[MAIL]) as up:
        p1 = up["p1"].join("s")
        call, channel = await open_stream(up["p0"], up["p1"])
        for frame in sent:
            await call.write(frame)
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_all(call)
        assert reason_of_call(caught.value) == code
        await channel.close()
        await p1.close()


async def test_a_peer_that_opens_many_streams_holds_one(authority: Path) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up:
        p1 = up["p1"].join("s", SHORT)
        channel = await up["p0"].connect("p1", f"127.0.0.1:{up['p1'].port}")
        stub = exchange_pb2_grpc.ExchangeStub(channel)
        calls = []
        for _ in range(40):
            calls.append(stub.Open())
            await calls[-1].write(HELLO)
            assert (await calls[-1].read()).received == 0
        assert [await call.read() is grpc.aio.EOF for call in calls[:-1]] == [True] * 39
        await calls[-1].write(CHUNK)
        assert (await calls[-1].read()).received == 1
        await asyncio.sleep(SHORT.reconnect_s + 0.2)
        assert p1._arrivals["p0"].failure is None  # the clocks of the older streams do not end the newest
        await channel.close()
        await failure(p1.close(), UnexpectedStep)  # nobody read that chunk


# --- a receiver that misbehaves -----------------------------------------------------------------------------


class Liar(exchange_pb2_grpc.ExchangeServicer):
    """A peer that answers with given messages to anything it receives."""

    def __init__(self, acks: list[pb.Ack | bytes]) -> None:
        self.acks = acks

    async def Open(self, request_iterator: AsyncIterator[pb.Frame], context: object) -> AsyncIterator[pb.Ack]:  # noqa: N802
        async for _ in request_iterator:
            if self.acks:
                yield self.acks.pop(0)


@contextlib.asynccontextmanager
async def lying(up: Mapping[str, Site], acks: list[pb.Ack | bytes]) -> AsyncIterator[None]:
    """Answer in the place of p1, as p0 sees it."""
    server = grpc.aio.server(options=server_options(Limits()))
    exchange_pb2_grpc.add_ExchangeServicer_to_server(Liar(acks), server)
    port = server.add_secure_port("127.0.0.1:0", tls.server_credentials(up["p1"].identity))
    up["p0"].addresses["p1"] = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("acks", "reason"),
    [
        ([5], "acknowledges what was never sent"),
        ([0, 2], "acknowledges what was never sent"),
        ([0, 1, 0], "goes back: the receiver has lost what it had received"),
        ([0, 2**64 - 1], "acknowledges what was never sent"),
        ([0, 0], "acknowledges nothing new"),  # a peer could send these for ever, and each takes time to read
        ([0, 1, 1], "acknowledges nothing new"),
    ],
)
async def test_an_acknowledgement_that_cannot_be(authority: Path, acks: list[int], reason: str) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up, lying(up, [pb.Ack(received=n) for n in acks]):
        p0 = up["p0"].join("s")
        with contextlib.suppress(MalformedMessage):
            for number in range(max(1, len(acks) - 1)):  # the first answers the opening; and 2 of 2 letters can be
                await p0.send("p1", Letter(number))
        error = await failure(p0.receive("p1", Letter), MalformedMessage)
        assert (error.culprit, error.field, error.reason) == ("p1", "received", reason)
        await p0.close(error)


async def test_a_receiver_that_never_acknowledges_is_given_up(authority: Path) -> None:
    async with sites(authority, "p0", "p1", tables=[MAIL]) as up, lying(up, []):
        p0 = up["p0"].join("s", SHORT)
        await p0.send("p1", Letter(0))
        error = await failure(p0.receive("p1", Letter), PeerUnreachable, SHORT.step_s - 1)
        assert "no answer" in str(error)


# --- parts ----------------------------------------------------------------------------------------------


async def test_a_signal_between_looking_and_waiting_is_not_lost() -> None:
    signal, seen = Signal(), []
    values: list[int] = []

    async def wait(n: int) -> None:
        await signal.until(lambda: len(values) >= n)
        seen.append(n)

    waiting = [asyncio.create_task(wait(n)) for n in (1, 2, 3)]
    for value in range(3):
        values.append(value)
        signal.notify()  # the first before anybody waits
        if value == 1:
            waiting[2].cancel()  # a waiter that leaves does not end the others
            waiting.append(asyncio.create_task(wait(3)))
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting, return_exceptions=True)
    assert sorted(seen) == [1, 2, 3]


async def test_a_bug_in_a_link_is_an_error_and_not_a_silence(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: object) -> pb.Frame:
        raise RuntimeError("secret canary")

    monkeypatch.setattr(frames.Outbox, "hello", broken)
    with capture_logs() as logs:
        async with pair(authority) as (p0, _p1, _up):
            await p0.send("p1", Letter(1))
            error = await failure(p0.receive("p1", Letter), TransportError)
    assert error.peer == "p1"
    assert "canary" not in repr(logs) + str(error)


async def test_a_message_larger_than_the_limit_is_refused_before_it_leaves(authority: Path) -> None:
    limits = Limits(chunk_bytes=1000, window_bytes=2000, max_message_bytes=3000, max_typed_message_bytes=5000)
    async with pair(authority, limits=limits) as (p0, p1, _):
        error = await failure(p0.send("p1", Parcel(1, b"x" * 5000)), LimitExceeded)
        assert (error.peer, error.step) == ("p1", "Parcel")
        await p0.send("p1", Parcel(2, b"x" * 4000))
        assert (await p1.receive("p0", Parcel)).number == 2
