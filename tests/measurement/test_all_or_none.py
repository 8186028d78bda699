"""Servers that are asked at once: a failure or a cancellation never waits for a silent server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from blindfit.algorithms.errors import DataError, PeerUnreachable
from blindfit.parties.measurement.calls import MeasurementCalls
from blindfit.parties.measurement.codec import ServerSide
from blindfit.parties.measurement.servers import all_or_none
from blindfit.parties.wire.together import failures_of
from tests.certificates import demo_authority, make_identity
from tests.measurement.house import House, one_hot
from tests.measurement.serving import serving

FOR_EVER_S = 86_400.0  # longer than any test may take: a test that waits for a silent server does not end


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("together"))


@contextlib.asynccontextmanager
async def asked_in_vain(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> AsyncIterator[tuple[Awaitable[object], asyncio.Event]]:
    """Yield a request that waits at a step of a server, and an event that is set when it has come so far."""
    rows, waits, hung_up = one_hot(), asyncio.Event(), asyncio.Event()
    if step == "connect":
        writers: list[asyncio.StreamWriter] = []

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            waits.set()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as silent:
            address = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
            me = make_identity(authority, "shop")
            client = MeasurementCalls(me, "labels", address, step_timeout_s=FOR_EVER_S, reconnect_s=FOR_EVER_S)
            yield client.aggregate(rows, house.request(rows)), waits
        for writer in writers:
            writer.close()  # otherwise the thread that shakes hands lasts as long as it may
        return
    send = ServerSide.send

    async def stall(side: ServerSide, to: str, message: object) -> None:
        if type(message).__name__ == step:
            waits.set()
            await hung_up.wait()
        await send(side, to, message)

    monkeypatch.setattr(ServerSide, "send", stall)
    async with serving(house, authority) as world:
        client = world.client(step_timeout_s=FOR_EVER_S, reconnect_s=FOR_EVER_S)
        yield client.aggregate(rows, house.request(rows)), waits
        hung_up.set()


@pytest.mark.parametrize("step", ["connect", "Opened", "NoisySum"])
async def test_a_failure_of_one_server_does_not_wait_for_another_that_is_silent(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async with asked_in_vain(house, authority, monkeypatch, step) as (asked, waits):

        async def fail() -> None:
            await waits.wait()
            raise DataError("the other server has failed")

        with pytest.raises(DataError, match="the other server has failed"):
            await all_or_none([asked, fail()])


@pytest.mark.parametrize("step", ["connect", "Opened", "NoisySum"])
async def test_who_cancels_does_not_wait_for_a_server_that_is_silent_and_nothing_goes_on(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A session's deadline and an operator cancel in the same way."""
    ended: list[str] = []

    async def note_end(asked: Awaitable[object]) -> None:
        try:
            await asked
        finally:
            ended.append(step)

    async with asked_in_vain(house, authority, monkeypatch, step) as (asked, waits):
        asking = asyncio.create_task(all_or_none([note_end(asked)]))
        await waits.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert ended == [step]


async def test_failures_come_in_the_order_of_the_tasks_and_cancelled_tasks_are_none() -> None:
    begun = asyncio.Event()

    async def fail(what: str) -> None:
        await begun.wait()
        raise DataError(what)

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(work) for work in (fail("first"), wait(), fail("second"))]
    assert [str(failure) for failure in await failures_of(tasks)] == ["first", "second"]
    assert tasks[1].cancelled()


async def test_of_several_failures_one_that_says_more_than_that_a_peer_has_gone_is_raised() -> None:
    async def fail(error: Exception) -> None:
        raise error

    gone = PeerUnreachable(peer="labels", address="a:1", step="Describe", reason="it hung up")
    with pytest.raises(DataError, match="no rows"):
        await all_or_none([fail(gone), fail(DataError("no rows"))])
    with pytest.raises(PeerUnreachable):
        await all_or_none([fail(gone), fail(gone)])
