"""Work on the next items while the caller is busy with the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

THREADS = 2  # Arrow and NumPy let go of the interpreter's lock; whoever takes the results has work of its own


def each_ahead(make: Callable[[Item], Made], items: Iterable[Item]) -> Generator[Made, None, None]:
    """`map`, in order, with the next `THREADS` results under way; the first error ends it where `map` would raise it.

    Items are taken in the caller's thread, and no more than `THREADS` before their time, where `Executor.map` would
    take them all. One alone starts no thread.
    """
    taken = iter(items)
    first = list(islice(taken, 2))
    if len(first) < 2:
        yield from map(make, first)
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="ahead") as pool:
        for item in chain(first, taken):
            waiting.append(pool.submit(make, item))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
