"""Another thread asks that a job ends: before it runs, while it runs, and afterwards."""

from __future__ import annotations

import asyncio
import threading

import pytest

from blindfit.coordinator.running.watcher import Stop

LONG_S = 20.0  # a wish that is heard ends the wait at once


async def _work(stop: Stop) -> None:
    with stop.cancels(asyncio.current_task()):  # type: ignore[arg-type]
        async with asyncio.timeout(LONG_S):
            await asyncio.Event().wait()


def test_a_wish_from_before_the_job_is_heard() -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_work(stop))
    with pytest.raises(KeyboardInterrupt):
        stop.check()


def test_a_wish_of_another_thread_is_heard_at_once() -> None:
    stop = Stop()
    threading.Timer(0.05, stop.ask).start()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_work(stop))


def test_a_wish_after_the_end_does_nothing() -> None:
    stop = Stop()

    async def short() -> str:
        with stop.cancels(asyncio.current_task()):  # type: ignore[arg-type]
            return "done"

    assert asyncio.run(short()) == "done"
    stop.ask()
    assert stop.is_asked
