"""Places to run in: each coordinator has a few, and a queue of its own behind them.

A session of one coordinator takes no place of another coordinator. A place becomes free when its session has ended and
no thread works for the session any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable


class Places:
    """The places of one party.

    Args:
        running: number of sessions of one coordinator that run at once.
        is_over: function that returns True if a session has ended, with all its work.
    """

    def __init__(self, running: int, is_over: Callable[[str], bool]) -> None:
        self._running, self._is_over = running, is_over
        self._queues: defaultdict[str, list[str]] = defaultdict(list)

    def ahead_of(self, session: str, proposed_by: str) -> int:
        """Return how many sessions must end before this one has a place; it keeps its turn from the first call on."""
        queue = self._queues[proposed_by]
        queue[:] = [one for one in queue if not self._is_over(one)]
        if session not in queue:
            queue.append(session)
        return max(0, queue.index(session) + 1 - self._running)
