"""How a protocol has vector work done elsewhere: tasks out, results back, in the order of the tasks.

A protocol sees nothing but `count` and `map`; which processes, on which machines, is the party's own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Workers(Protocol):
    """Runs tasks, perhaps in other processes: function, arguments and results must be picklable.

    Attributes:
        count: how many tasks run at once; a good number of tasks is this, or a few times this.
    """

    count: int

    def map(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]) -> list[R]:
        """[function(*task) for task in tasks], each task at least once.

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
    """OpenWorkers of a party that has no others."""
    yield THIS_PROCESS


def even_slices(n: int, parts: int) -> list[slice]:
    """Consecutive slices that cover n items: at most `parts`, none empty, their sizes differing by one at most."""
    parts = min(max(parts, 1), n)
    return [slice(i * n // parts, (i + 1) * n // parts) for i in range(parts)]


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """One call on its way to a worker, and its place among the results. What carries it need not look inside."""

    index: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> tuple[int, Any]:
        return self.index, self.function(*self.arguments)
