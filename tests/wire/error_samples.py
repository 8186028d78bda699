"""One error of every class that crosses the wire."""

from __future__ import annotations

from blindfit.algorithms import errors as e
from blindfit.algorithms.errors import DuplicateId, UnknownId

# One of each class that can leave a party, and the class that its peer sees (None: the same).
SAMPLES: list[tuple[e.BlindfitError, type[e.BlindfitError] | None]] = [
    (e.HandshakeMismatch(culprit="p1", field="rows", ours="1", theirs="2"), None),
    (e.PeerAborted(culprit="p2", code="DATA", step="Masked"), None),
    (e.BudgetExhausted(population="p", spent=0.5, budget=1.0, requested=0.75), None),
    (e.UnsupportedEvent("x"), None),
    (e.RequestConflict("x"), None),
    (e.LedgerBehind(population="p", ledger_position=3, receipt_position=5), None),
    (e.LedgerUnavailable("x"), None),
    (e.TooFewRows(rows=5, least=100), None),
    (e.CannotAnswer(party="p1"), None),
    (e.PolicyRefused(party="p1", field="privacy.epsilon", reason="too much"), None),
    (e.PeerTimeout(peer="p2", step="Masked", timeout_s=1.5), None),
    (e.PeerTimeout(peer="p3", step="Masked", timeout_s=1.5, through=("p2", "p4"), found="silent"), None),
    (e.PeerTimeout(peer="p3", step="Masked", timeout_s=60.0, found="still", still_s=61.5), None),
    (e.CutOff(peer="p1", step="Masked"), None),
    (e.PeerUnreachable(peer="p2", address="host:1", step="Masked"), None),
    (e.PeerUnauthenticated(peer="p2", reason="expired"), None),
    (e.CallNotAllowed(peer="p1", method="/a/B"), None),
    (e.LimitExceeded(peer="p1", step="Open", limit="size"), None),
    (e.CannotTakePart("p1"), None),
    (e.ScoresOutOfRange(epoch=3), None),
    (e.MacCheckFailed(), e.PeerAborted),
    (e.SharesDoNotFit(), e.PeerAborted),
    # Errors that depend on the party's own rows, files and machine.
    (e.DataError("x"), e.CannotTakePart),
    (e.ConfigError("x"), e.CannotTakePart),
    (e.RangeError("x"), e.CannotTakePart),
    (e.ComputeFailed(backend="loky", reason="x"), e.CannotTakePart),
    # The peer found fault with us: our own mistake, or a peer of another make.
    (e.MalformedMessage(culprit="p1", field="d", reason="is short", step="Masked"), e.PeerAborted),
    (e.UnexpectedStep(culprit="p1", expected="A", got="B"), e.PeerAborted),
    (e.SessionUnknown("x"), e.PeerAborted),
    (e.ProtocolError("x", step="Masked"), e.PeerAborted),
    (e.LocalProtocolError("x", step="Masked"), e.PeerAborted),
    (e.PeerError("x", culprit="p1", step="Masked"), e.PeerAborted),
    (DuplicateId(4), e.DataError),
    (UnknownId(4, 2), e.DataError),
]
