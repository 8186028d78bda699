"""Choice of the error that names the party to blame, from all parties' reports about the end of a job.

A party fails for its own reason, or because it has lost another party, or because another party has ended the session.
Its own reason counts first. If there is no such reason, the party at the end of all waits is to blame
(parties/wire/waits.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blindfit.algorithms.errors import BlindfitError, PeerAborted, PeerTimeout, PeerUnreachable, root_party
from blindfit.parties.wire import waits
from blindfit.protos import errors_pb2

PASSED_ON = errors_pb2.ErrorCode.Name(errors_pb2.PEER_ABORTED)  # for an abort that answers another abort
LOSSES = frozenset(
    map(errors_pb2.ErrorCode.Name, (errors_pb2.PEER_TIMEOUT, errors_pb2.PEER_UNREACHABLE, errors_pb2.CUT_OFF))
)

Ended = Mapping[str, BlindfitError]  # the error of each party that has failed


def of(first: BlindfitError, ended: Ended, reports: waits.Reports, step_s: float) -> BlindfitError:
    """Return the error that names the party to blame.

    Args:
        first: first error that the coordinator received.
        reports: reports of each party about its waits.
        step_s: deadline of a step.
    """
    if own := first_hand(ended):
        return own
    if isinstance(first, PeerAborted) and not any(map(_is_loss, ended.values())):
        return _behind(first, ended)
    return _blame(first, ended, reports, step_s)


def first_hand(ended: Ended) -> BlindfitError | None:
    """Return the first error about a party itself, or about the coordinator's connection to it."""
    return next((error for name, error in ended.items() if _is_first_hand(error, name)), None)


def echoes(ended: Ended) -> bool:
    """Return True if an error only reports that another party has ended, which has not reported yet."""
    aborts = [error for error in ended.values() if isinstance(error, PeerAborted)]
    return any(not abort.lost and abort.culprit not in ended for abort in aborts)


def _is_first_hand(error: BlindfitError, name: str) -> bool:
    if isinstance(error, PeerAborted):
        return False
    return not isinstance(error, PeerTimeout | PeerUnreachable) or error.peer == name


def _is_loss(error: BlindfitError) -> bool:
    """Return True if a party has given up another party, itself or because a peer did."""
    return isinstance(error, PeerTimeout | PeerUnreachable) or (isinstance(error, PeerAborted) and error.code in LOSSES)


def _blame(first: BlindfitError, ended: Ended, reports: waits.Reports, step_s: float) -> BlindfitError:
    claims = {name: root_party(error) or name for name, error in ended.items()}
    # A chain of waits ends at a party that another party has lost: the lost party may wait for others too.
    lost = {root_party(error) for error in ended.values()}
    known = {name: replace(report, waits=()) if name in lost else report for name, report in reports.items()}
    for name, report in reports.items():
        if name not in claims and report.waits:
            claims[name] = waits.root_of(report.waits[0], known, step_s, name).party
    blamed = waits.most_blamed(claims, reports, step_s) or root_party(first)
    tellers = [*([ended[blamed]] if blamed in ended else []), first, *ended.values()]
    told = [error for error in tellers if root_party(error) == blamed]
    for kind in (PeerTimeout, PeerUnreachable, BlindfitError):  # the first kind shows which party waits for which
        if telling := [error for error in told if isinstance(error, kind)]:
            return telling[0]
    return _find_waiting(blamed, reports, step_s) or first


def _find_waiting(blamed: str, reports: waits.Reports, step_s: float) -> PeerTimeout | None:
    """Return an error about a wait for the party to blame, if no party has given it up yet."""
    waiting = [(name, wait) for name, report in reports.items() for wait in report.waits if wait.peer == blamed]
    if not waiting:
        return None
    (waiter, wait), *_ = waiting
    root = waits.root_of(wait, reports, step_s, waiter)
    found, still_s = (root.found, root.still_s) if root.party == blamed else ("", 0.0)
    return PeerTimeout(
        peer=blamed, step=wait.step, timeout_s=round(wait.since_s, 1), found=found, still_s=still_s, by=waiter
    )


def _behind(error: PeerAborted, said: Mapping[str, BlindfitError]) -> PeerAborted:
    """Return the abort at the end of a chain: a party that ended because another did names that party, and so on.

    Two parties may name each other: a call gave the reason to the first party, and the second only learnt that the
        first
    party ended.
    """
    passed: set[str] = set()
    while error.culprit not in passed:
        passed.add(error.culprit)
        reason = said.get(error.culprit)
        if isinstance(reason, PeerAborted) and (
            reason.culprit == error.culprit or reason.culprit not in passed or error.code == PASSED_ON
        ):
            error = reason
    return error
