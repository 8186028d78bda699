"""Requests of an active party's session to its measurement server."""

from __future__ import annotations

from collections.abc import Callable

from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.calls import MeasurementCalls
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session


def client_of(party: Party, session: Session[JobParameters], server: str) -> MeasurementCalls:
    """Return a client of a server of the session, with the job's deadlines."""
    timeouts = session.job.timeouts
    return MeasurementCalls(
        party.identity,
        server,
        session.channel.peers[server],
        limits=party.limits,
        step_timeout_s=timeouts.step_s,
        reconnect_s=timeouts.reconnect_s,
        waits=session.channel.waits,
    )


def reporter(session: Session[JobParameters], step: str, n_rows: int, server: str) -> Callable[[int], None]:
    """Return a function that takes the number of rows sent since its last call, or -1 when the request begins or begins
    again.

    Until the server has admitted the request, nothing is sent, and the function reports nothing as sent.
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
