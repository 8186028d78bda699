"""One session at a time for each training: two would write over each other's checkpoints, and in shares one under the
same MAC key could use what a failed check of the other told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from blindfit.algorithms.errors import PolicyRefused


class Running:
    """Of this process; after a restart no session goes on.

    Args:
        resume_option: of the jobs, for refusals.
    """

    def __init__(self, party: str, resume_option: str) -> None:
        self._party, self._resume_option, self._trainings = party, resume_option, set[str]()

    def refuse_another(self, training: str) -> None:
        """Raises PolicyRefused: a session of the training runs here."""
        if training in self._trainings:
            reason = (
                f"another session of the training {training} is still running: wait for its end, or cancel it "
                "(`blindfit cancel`)"
            )
            raise PolicyRefused(party=self._party, field=self._resume_option, reason=reason)

    @contextmanager
    def alone(self, training: str) -> Iterator[None]:
        """Around all that reads or writes what is kept of the training. Raises PolicyRefused as `refuse_another`."""
        self.refuse_another(training)
        self._trainings.add(training)
        try:
            yield
        finally:
            self._trainings.remove(training)
