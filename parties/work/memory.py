"""Use of freed memory in this process."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

M_ARENA_MAX = -8  # malloc.h of the GNU C library
GIVE_BACK_S = 10.0


def one_heap() -> None:
    """Let all threads allocate from one heap. Call it before there are many threads.

    By default the GNU library gives threads their own heaps, eight for each core. The memory that a session frees in
    one heap (a table of powers has 20 MB) is not used by the next session's thread, which has another heap. Nor is it
    given back to the system: a party grew by 19 MiB with every session. Python's lock lets only one thread allocate at
    a time anyway. Other libraries have no such heaps.
    """
    mallopt = _of_gnu("mallopt")
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


async def give_back_freed() -> None:
    """Give free memory back to the system, for ever, also between used memory. The library itself only gives back a
    heap's end.
    """
    malloc_trim = _of_gnu("malloc_trim")
    while malloc_trim is not None:
        await asyncio.sleep(GIVE_BACK_S)
        await asyncio.to_thread(malloc_trim, 0)


def _of_gnu(name: str) -> Any:
    """Return a function of the GNU C library; None for another C library."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def on_own_pages(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return a copy in another type, which goes back to the system when it is dropped.

    Freed in a heap with other memory, it would stay with the process, because later allocations lie above it.
    """
    if not values.size:
        return values.astype(dtype)
    kind = np.dtype(dtype)
    copied = np.frombuffer(mmap.mmap(-1, values.size * kind.itemsize), kind).reshape(values.shape)
    np.copyto(copied, values, casting="unsafe")
    return copied
