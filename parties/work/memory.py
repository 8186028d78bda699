"""How this process keeps the memory that it has freed."""

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
    """All threads allocate from one heap; to be called before there are many threads.

    By default the GNU library gives threads heaps of their own, eight for each core. What a session frees in one (a
    table of powers has 20 MB) is not used by the next session's thread, which has another, nor given back to the
    system: a party grew by 19 MiB with every session. Python's lock lets one thread allocate at a time anyway. Other
    libraries have no such heaps.
    """
    mallopt = _of_gnu("mallopt")
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


async def give_back_freed() -> None:
    """For ever: to the system, what is free between what is in use. The library by itself gives back the heap's end."""
    malloc_trim = _of_gnu("malloc_trim")
    while malloc_trim is not None:
        await asyncio.sleep(GIVE_BACK_S)
        await asyncio.to_thread(malloc_trim, 0)


def _of_gnu(name: str) -> Any:
    """Return a function of the GNU C library; None where there is another."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def on_own_pages(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """A copy, cast, that the system has back once it is let go. Freed in one heap with others, it stays the process's:
    what was allocated since lies above it."""
    if not values.size:
        return values.astype(dtype)
    kind = np.dtype(dtype)
    copied = np.frombuffer(mmap.mmap(-1, values.size * kind.itemsize), kind).reshape(values.shape)
    np.copyto(copied, values, casting="unsafe")
    return copied
