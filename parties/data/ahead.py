"""Work on the next items while the caller is busy with the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

THREADS = 2  # Arrow and NumPy release the interpreter's lock; the caller, who takes the results, also works


def each_ahead(make: Callable[[Item], Made], items: Iterable[Item]) -> Generator[Made, None, None]:
    """Apply `make` to each item, in order, while the next `THREADS` results are in progress.

    Yield an error where `map` would raise it, and end there. Items are taken in the caller's thread, at most `THREADS`
    before their results are needed; `Executor.map` would take all of them at once. A single item starts no thread.
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
