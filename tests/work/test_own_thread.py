"""A computation in another thread, over the session's channel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import LocalProtocolError, PeerUnreachable
from blindfit.algorithms.messages import Channel, IntegerTensor
from blindfit.algorithms.protocols.table import ALL, CHUNKS, Arrow, Table
from blindfit.parties.wire.exchange import Encoded, ExchangeChannel
from blindfit.parties.wire.link import Timeouts
from blindfit.parties.work.own_thread import in_own_thread
from tests.certificates import demo_authority
from tests.wire.site import sites

PLENTY_S = 60.0


@dataclass(frozen=True, slots=True, repr=False)
class Numbers:
    values: IntegerTensor


TABLE = Table("numbers", Arrow("1", ALL, ALL, Numbers, CHUNKS, "all of it"))


@contextlib.asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[tuple[ExchangeChannel, ExchangeChannel]]:
    async with sites(demo_authority(folder), "p0", "p1", tables=[TABLE]) as up, asyncio.timeout(PLENTY_S):
        yield up["p0"].join("s"), up["p1"].join("s")


class Slow:
    """Stand-in for `ExchangeChannel.bring`: the first message takes long, and may never come."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._bring, self._failure, self.brought = ExchangeChannel.bring, failure, 0

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def bring(channel: ExchangeChannel, to: str, message: Encoded) -> None:
            self.brought += 1
            if self.brought == 1:
                await asyncio.sleep(0.2)
                if self._failure is not None:
                    raise self._failure
            await self._bring(channel, to, message)

        monkeypatch.setattr(ExchangeChannel, "bring", bring)


async def test_what_is_sent_is_what_it_was_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protocols add to arrays in place: a later change must not affect a message on its way."""
    Slow().put_in(monkeypatch)

    async def counting(channel: Channel) -> None:
        numbers = np.zeros(3, np.int64)
        for _ in range(20):
            await channel.send("p1", Numbers(numbers))
            numbers += 1

    async with pair(tmp_path) as (p0, p1):
        counted = asyncio.create_task(in_own_thread(p0, counting))
        received = [(await p1.receive("p0", Numbers)).values.tolist() for _ in range(20)]
        await counted
    assert received == [[number] * 3 for number in range(20)]


async def test_who_sends_beside_others_waits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow().put_in(monkeypatch)

    async def sending(channel: Channel) -> None:
        async def one(number: int) -> None:
            await channel.send("p1", Numbers(np.full(3, number)))

        await asyncio.gather(*map(one, range(4)))

    async with pair(tmp_path) as (p0, p1):
        counted = asyncio.create_task(in_own_thread(p0, sending))
        received = [(await p1.receive("p0", Numbers)).values.tolist() for _ in range(4)]
        await counted
    assert received == [[number] * 3 for number in range(4)]


async def test_it_goes_on_while_a_message_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring, gone_on, loop = ExchangeChannel.bring, asyncio.Event(), asyncio.get_running_loop()

    async def bring_then(channel: ExchangeChannel, to: str, message: Encoded) -> None:
        await gone_on.wait()
        await bring(channel, to, message)

    async def sending(channel: Channel) -> None:
        await channel.send("p1", Numbers(np.zeros(3, np.int64)))
        loop.call_soon_threadsafe(gone_on.set)

    monkeypatch.setattr(ExchangeChannel, "bring", bring_then)
    async with pair(tmp_path) as (p0, p1):
        await in_own_thread(p0, sending)
        assert (await p1.receive("p0", Numbers)).values.tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_sent", [1, 2])
async def test_a_message_that_does_not_leave_is_told_at_the_latest_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_sent: int
) -> None:
    lost = PeerUnreachable(peer="p1", address="-", step="Numbers", reason="the connection was lost")
    slow = Slow(lost)
    slow.put_in(monkeypatch)

    async def sending(channel: Channel) -> None:
        for number in range(n_sent):
            await channel.send("p1", Numbers(np.full(3, number)))

    async with pair(tmp_path) as (p0, _):
        with pytest.raises(PeerUnreachable, match="the connection was lost"):
            await in_own_thread(p0, sending)
    assert slow.brought == 1  # nothing came after it


async def test_a_message_that_does_not_leave_is_told_to_who_waits_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not blame another party for not answering."""
    Slow(PeerUnreachable(peer="p1", address="-", step="Numbers", reason="the connection was lost")).put_in(monkeypatch)

    async def asking(channel: Channel) -> None:
        await channel.send("p1", Numbers(np.zeros(3, np.int64)))
        await channel.receive("dealer", Numbers)

    async with sites(demo_authority(tmp_path), "p0", "p1", "dealer", tables=[TABLE]) as up, asyncio.timeout(PLENTY_S):
        p0 = up["p0"].join("s", Timeouts(step_s=PLENTY_S / 3))
        with pytest.raises(PeerUnreachable, match="the connection was lost"):
            await in_own_thread(p0, asking)


async def test_who_comes_later_does_not_overtake_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring, may_leave, has_left, loop = ExchangeChannel.bring, asyncio.Event(), Event(), asyncio.get_running_loop()

    async def first_waits(channel: ExchangeChannel, to: str, message: Encoded) -> None:
        await may_leave.wait()
        await bring(channel, to, message)
        loop.call_later(0.05, has_left.set)  # the future has the error

    async def sending(channel: Channel) -> None:
        await channel.send("p1", Numbers(np.full(3, 0)))
        waits = asyncio.create_task(channel.send("p1", Numbers(np.full(3, 1))))
        await asyncio.sleep(0.05)
        loop.call_soon_threadsafe(may_leave.set)
        has_left.wait()  # it computes: the waiting party has not heard of it
        await channel.send("p1", Numbers(np.full(3, 2)))
        await waits

    monkeypatch.setattr(ExchangeChannel, "bring", first_waits)
    async with pair(tmp_path) as (p0, p1):
        counted = asyncio.create_task(in_own_thread(p0, sending))
        received = [(await p1.receive("p0", Numbers)).values[0] for _ in range(3)]
        await counted
    assert received == [0, 1, 2]


async def test_errors_of_the_work_and_of_its_channel_are_raised_outside(tmp_path: Path) -> None:
    async def fails(_: Channel) -> None:
        raise ValueError("of its own")

    async def sends_to_nobody(channel: Channel) -> None:
        await channel.send("stranger", Numbers(np.zeros(3, np.int64)))

    async def sends_what_no_table_lists(channel: Channel) -> None:
        message: Any = object()
        await channel.send("p1", message)

    async with pair(tmp_path) as (p0, _):
        with pytest.raises(ValueError, match="of its own"):
            await in_own_thread(p0, fails)
        for work in (sends_to_nobody, sends_what_no_table_lists):
            with pytest.raises(LocalProtocolError):
                await in_own_thread(p0, work)
