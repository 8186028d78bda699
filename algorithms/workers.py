"""Vector work done elsewhere: tasks out, results back, in the order of the tasks.

A protocol sees only `count` and `map`; the party itself chooses the processes and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Workers(Protocol):
    """A runner of tasks, perhaps in other processes: function, arguments and results must be picklable.

    Attributes:
        count: number of tasks that run at once; a good number of tasks is this, or a few times this.
    """

    count: int

    def map(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]) -> list[R]:
        """Return [function(*task) for task in tasks]; each task runs at least once.

        Raises:
            ComputeFailed: workers died, were out of reach or too slow. What the function raises passes as it is.
        """
        ...


class ThisProcess:
    """No other process: one task after the other."""

    count = 1

    def map(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]) -> list[R]:
        return [function(*task) for task in tasks]


THIS_PROCESS = ThisProcess()

OpenWorkers = Callable[[], AbstractContextManager[Workers]]


@contextmanager
def in_this_process() -> Iterator[Workers]:
    """Open the workers of a party that has no other processes."""
    yield THIS_PROCESS


def even_slices(n: int, parts: int) -> list[slice]:
    """Return consecutive slices that cover n items: at most `parts`, not empty; sizes differ by at most one."""
    parts = min(max(parts, 1), n)
    return [slice(i * n // parts, (i + 1) * n // parts) for i in range(parts)]


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """One call on its way to a worker, and its place among the results. Its carrier need not look inside."""

    index: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> tuple[int, Any]:
        return self.index, self.function(*self.arguments)
