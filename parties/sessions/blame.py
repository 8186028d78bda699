"""The party for which this party waits in a session, and the party to blame for a wait that failed."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    CutOff,
    PeerAborted,
    PeerTimeout,
    PeerUnreachable,
    TransportError,
    root_party,
)
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.wire import waits
from blindfit.parties.wire.link import OpenPeer
from blindfit.parties.wire.pulse import Pulse
from blindfit.protos import errors_pb2

FORGOTTEN = errors_pb2.ErrorCode.Name(errors_pb2.SESSION_UNKNOWN)
STILL_S = 5.0  # the others may have given up on a process that stood still for so long


def report_of(session: Session[JobParameters], pulse: Pulse) -> waits.Report:
    """Return for whom this party waits in a session, or waited when its part ended."""
    found, error = session.channel.waits.report(), session.error
    if isinstance(error, BlindfitError):  # from then on it waits only until the others know of the error
        blamed, step = root_party(error), getattr(error, "step", "")
        found = (waits.Wait(blamed, step),) if blamed in session.channel.peers else ()
    has_ended = session.state in ENDS
    return waits.Report(found, pulse.longest_s(session.began), error is not None and not has_ended, has_ended)


async def trace(session: Session[JobParameters], error: Exception, open_peer: OpenPeer) -> Exception:
    """Return the error, or a more exact one: for a wait that failed, ask for whom the other parties wait."""
    if isinstance(error, PeerAborted) and error.code == FORGOTTEN and _stood_still(session):
        # The others gave this party up meanwhile: a peer that ended the session for them is not the cause.
        about = {"session": error.session, "step": error.step, "lost": session.me.name}
        return PeerAborted(culprit=error.culprit, code=error.code, **about)
    if not isinstance(error, PeerTimeout | PeerUnreachable) or error.peer not in session.channel.peers:
        return error
    reports = await waits.ask_all({name: partial(_ask, session, open_peer, name) for name in session.channel.peers})
    if len(reports) > 1 and all(report.is_silent for report in reports.values()):
        return CutOff(peer=session.me.name, step=error.step)
    if isinstance(error, PeerUnreachable):
        return error
    step_s = session.job.timeouts.step_s
    root = waits.root_of(waits.Wait(error.peer, error.step), reports, step_s, session.me.name)
    return PeerTimeout(
        peer=root.party,
        step=root.step,
        timeout_s=error.timeout_s,
        through=root.through,
        found=root.found,
        still_s=root.still_s,
    )


def _stood_still(session: Session[JobParameters]) -> bool:
    return session.channel.waits.pulse.longest_s(session.began) >= STILL_S


async def _ask(session: Session[JobParameters], open_peer: OpenPeer, peer: str) -> waits.Report:
    try:
        channel = await open_peer(peer, session.channel.peers[peer])
    except (TransportError, ConfigError):
        return waits.SILENT
    try:
        return await waits.ask(channel, session.id, tuple(session.members))
    finally:
        await channel.close()


def describe_waits(session: Session[JobParameters]) -> dict[str, str]:
    """Return the waits of a session that was ended from outside, for the log."""
    found = session.channel.waits.report()
    return {"waited_for": ", ".join(f"{w.peer} at step {w.step} for {w.since_s:.0f} s" for w in found)} if found else {}
