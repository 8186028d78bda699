"""What a party reports of the rows or ids that it sends to a measurement server."""

from __future__ import annotations

from collections.abc import Callable

from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.sessions import Session


def reporter(session: Session[JobParameters], server: str, step: str, n_rows: int) -> Callable[[int], None]:
    """Takes how many were sent since it was last called, or -1 when the request begins, also again after a cut.

    Until the server has let the request in, nothing is sent and nothing is said to be.
    """
    sent = 0

    def on_rows(count: int) -> None:
        nonlocal sent
        if count < 0:
            sent = 0
            session.report("ask for the release", waiting_for=server)
        else:
            sent += count
            session.report(step, sent, n_rows, "rows")

    return on_rows
