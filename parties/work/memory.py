"""How this process keeps the memory that it has freed."""

from __future__ import annotations

import ctypes
import sys

M_ARENA_MAX = -8  # malloc.h of the GNU C library


def one_heap() -> None:
    """All threads allocate from one heap; to be called before there are many threads.

    By default the GNU library gives threads heaps of their own, eight for each core. What a session frees in one (a
    table of powers has 20 MB) is not used by the next session's thread, which has another, nor given back to the
    system: a party grew by 19 MiB with every session. Python's lock lets one thread allocate at a time anyway. Other
    libraries have no such heaps.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
