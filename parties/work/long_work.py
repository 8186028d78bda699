"""A long computation gets its own thread, so that it takes none that others need, and ends when nobody waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from blindfit.algorithms.errors import ComputeFailed, LocalProtocolError
from blindfit.parties.work.counted_threads import CountingThreads

T = TypeVar("T")
HINT = "raise timeouts.session_s"
StillWanted = Callable[[], None]


async def while_wanted(work: Callable[[StillWanted], T], max_s: float) -> T:
    """Return the result of a computation.

    Args:
        work: function that gets a check, and calls it before each long step. The check raises LocalProtocolError as
            soon as the caller here is cancelled, because the session has ended.

    Raises:
        ComputeFailed: the computation takes longer than `max_s`.
    """
    ended = threading.Event()

    def still_wanted() -> None:
        if ended.is_set():
            raise LocalProtocolError("nobody waits for the result any more: the session has ended")

    pool = CountingThreads(1, thread_name_prefix="long work")
    running = pool.submit(contextvars.copy_context().run, work, still_wanted)
    pool.shutdown(wait=False)
    try:
        async with asyncio.timeout(max_s):
            return await asyncio.wrap_future(running)
    except TimeoutError:
        raise ComputeFailed(backend="local", reason=f"not done in {max_s:g} s", hint=HINT) from None
    finally:
        ended.set()
