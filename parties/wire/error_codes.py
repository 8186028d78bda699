"""Translate errors to gRPC statuses with `google.rpc` details, and back: one table, used only at the edge.

A status has three parts. Its code is gRPC's. Its sentence for people has the problem and the remedy. Its details can be
decoded by every gRPC library: an ErrorInfo (`reason` is an ErrorCode, `metadata` holds the public fields), and perhaps
the wrong field of a request, an exhausted quota, or the time of another attempt.

Only the fields named here cross the wire. Every error that only a party's own operator may know leaves as one code. An
exception of another library leaves as INTERNAL, with a fixed sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2 as details_pb
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from blindfit.algorithms import errors as e
from blindfit.algorithms.errors import DuplicateId, UnknownId
from blindfit.algorithms.texts import printable
from blindfit.protos import errors_pb2 as pb

DOMAIN = "blindfit"  # domain of every ErrorInfo
MAX_FIELD_BYTES = 512
MAX_SENTENCE_BYTES = 600  # each byte may take three in a header
MAX_DETAILS = 8
RETRY_S = 30
SEPARATOR = ", "  # between several names

Code = grpc.StatusCode
FieldValue = str | int | float | tuple[str, ...]
Fields = Mapping[str, str]
Details = Callable[[Fields], Any]  # a message of google.rpc, whose package has no types


def _field_of(name: str, text: str) -> Details:
    """Return a maker of the detail that names a wrong field. `name` and `text` are formats of the public fields."""

    def violation(f: Fields) -> Any:
        said = details_pb.BadRequest.FieldViolation(field=name.format(**f), description=text.format(**f))
        return details_pb.BadRequest(field_violations=[said])

    return violation


def _describe_quota(subject: str, text: str) -> Details:
    def violation(f: Fields) -> Any:
        said = details_pb.QuotaFailure.Violation(subject=subject.format(**f), description=text.format(**f))
        return details_pb.QuotaFailure(violations=[said])

    return violation


def _later(_: Fields) -> Any:
    again = details_pb.RetryInfo()
    again.retry_delay.seconds = RETRY_S
    return again


@dataclass(frozen=True, slots=True)
class _Row:
    """The translation of one class of errors.

    Attributes:
        fields: attributes of the error that cross the wire.
        rebuild: function that makes the error that the caller sees, from its peer's name and these fields as texts.
        says: the problem and the remedy, as formats of the fields, for a reader who does not know Blindfit.
        details: makers of the details in addition to the ErrorInfo.
    """

    code: pb.ErrorCode
    status: grpc.StatusCode
    fields: tuple[str, ...]
    rebuild: Callable[[str, Fields], e.BlindfitError]
    says: tuple[str, str]
    details: tuple[Details, ...] = ()


def _rebuild_malformed(peer: str, f: Fields) -> e.BlindfitError:
    # The peer reports that *we* sent a malformed message: our own mistake, or a peer of another make.
    return e.PeerAborted(culprit=peer, code=f"it could not accept {f['field']}: {f['reason']}", step=f["step"])


def _timeout(peer: str, f: Fields) -> e.BlindfitError:
    return e.PeerTimeout(
        peer=f["peer"],
        step=f["step"],
        timeout_s=float(f["timeout_s"]),
        through=[name for name in f["through"].split(SEPARATOR) if name],
        found=f["found"] if f["found"] in e.WAITED_IN_VAIN else "",
        still_s=float(f["still_s"]),
        by=peer,
    )


_TABLE: dict[type[BaseException], _Row] = {
    e.MalformedMessage: _Row(
        pb.MALFORMED_MESSAGE,
        Code.INVALID_ARGUMENT,
        ("field", "reason", "step"),
        _rebuild_malformed,
        ("The message is malformed: {field}: {reason}.", "Correct this field and send the message again."),
        (_field_of("{field}", "{reason}"),),
    ),
    e.UnexpectedStep: _Row(
        pb.UNEXPECTED_STEP,
        Code.FAILED_PRECONDITION,
        ("expected", "got"),
        lambda peer, f: e.PeerAborted(culprit=peer, code=f"expected {f['expected']}, got {f['got']}"),
        ("{got} came where {expected} was expected.", "Send the messages of a call in their documented order."),
    ),
    e.HandshakeMismatch: _Row(
        pb.HANDSHAKE_MISMATCH,
        Code.FAILED_PRECONDITION,
        ("field", "ours", "theirs"),
        lambda peer, f: e.HandshakeMismatch(culprit=peer, field=f["field"], ours=f["theirs"], theirs=f["ours"]),
        (
            "The parties disagree on {field}: this party has {ours}, the caller has {theirs}.",
            "Run the same version of Blindfit at both parties, and propose the same job to both.",
        ),
    ),
    e.PeerAborted: _Row(
        pb.PEER_ABORTED,
        Code.ABORTED,
        ("culprit", "code", "step", "lost"),
        lambda _, f: e.PeerAborted(culprit=f["culprit"], code=f["code"], step=f["step"], lost=f["lost"]),
        ("{culprit} ended the session with {code}.", "The log of {culprit} has the reason."),
    ),
    e.BudgetExhausted: _Row(
        pb.BUDGET_EXHAUSTED,
        Code.RESOURCE_EXHAUSTED,
        ("population", "spent", "budget", "requested"),
        lambda _, f: e.BudgetExhausted(
            population=f["population"],
            spent=float(f["spent"]),
            budget=float(f["budget"]),
            requested=float(f["requested"]),
        ),
        (
            "The release does not fit in the budget of the population {population}: epsilon {spent} of {budget} is "
            "spent, and the release asks for epsilon {requested}.",
            "Ask for a smaller epsilon.",
        ),
        (
            _describe_quota(
                "population {population}", "epsilon {spent} of {budget} is spent, {requested} was asked for"
            ),
        ),
    ),
    e.UnsupportedEvent: _Row(
        pb.UNSUPPORTED_EVENT,
        Code.INVALID_ARGUMENT,
        (),
        lambda peer, _: e.UnsupportedEvent(
            f"the accountant of {peer} cannot bound this release together with those before it",
            hint="its own log has the reason; a release for other neighbours needs a population of its own",
        ),
        (
            "The accountant cannot bound this release together with the earlier releases of its population.",
            "Ask the server's operator, whose log has the reason.",
        ),
    ),
    e.RequestConflict: _Row(
        pb.REQUEST_CONFLICT,
        Code.ALREADY_EXISTS,
        (),
        lambda peer, _: e.RequestConflict(
            f"{peer} has answered another request with this request id", hint="take another request id"
        ),
        ("The request id was used before, with other content.", "Choose another request id."),
    ),
    e.LedgerBehind: _Row(
        pb.LEDGER_BEHIND,
        Code.FAILED_PRECONDITION,
        ("population", "ledger_position", "receipt_position"),
        lambda _, f: e.LedgerBehind(
            population=f["population"],
            ledger_position=int(f["ledger_position"]),
            receipt_position=int(f["receipt_position"]),
        ),
        (
            "The receipt proves entry {receipt_position} of the ledger of {population}, but the ledger has "
            "{ledger_position} entries: it was restored from a backup, or replaced. Nothing was released.",
            "The server's operator must run `blindfit ledger party.toml --acknowledge REASON`.",
        ),
    ),
    e.LedgerUnavailable: _Row(
        pb.LEDGER_UNAVAILABLE,
        Code.UNAVAILABLE,
        (),
        lambda peer, _: e.LedgerUnavailable(
            f"the database of {peer} could not be used: the step that needed it released nothing and charged nothing",
            hint=f"its operator must look at the disk of {peer}",
        ),
        (
            "The server could not use its database, so this call released nothing and charged nothing.",
            "Send the same request again later; if it fails again, the server's operator must look at the disk.",
        ),
        (_later,),
    ),
    e.TooFewRows: _Row(
        pb.TOO_FEW_ROWS,
        Code.FAILED_PRECONDITION,
        ("rows", "least"),
        lambda _, f: e.TooFewRows(rows=int(f["rows"]), least=int(f["least"])),
        ("{rows} rows are fewer than {least}, the least that the policy requires.", "Ask about more rows."),
    ),
    e.CannotAnswer: _Row(
        pb.CANNOT_ANSWER,
        Code.FAILED_PRECONDITION,
        ("party",),
        lambda _, f: e.CannotAnswer(party=f["party"]),
        (
            "{party} cannot answer this request, and the reason is private.",
            "Agree with {party} which rows may be asked for, or ask its operator, whose log has the reason.",
        ),
    ),
    e.PolicyRefused: _Row(
        pb.POLICY_REFUSED,
        Code.PERMISSION_DENIED,
        ("party", "field", "reason"),
        lambda _, f: e.PolicyRefused(party=f["party"], field=f["field"], reason=f["reason"]),
        (
            "{party} refuses the request: {field}: {reason}.",
            "Change the request, or ask the operator of {party} to change the policy.",
        ),
    ),
    e.PeerTimeout: _Row(
        pb.PEER_TIMEOUT,
        Code.DEADLINE_EXCEEDED,
        ("peer", "step", "timeout_s", "through", "found", "still_s"),
        _timeout,
        ("{peer} did not do step {step} in {timeout_s} s.", "Look at what {peer} does, and try again."),
    ),
    e.PeerUnreachable: _Row(
        pb.PEER_UNREACHABLE,
        Code.UNAVAILABLE,
        ("peer", "address", "step"),
        lambda peer, f: e.PeerUnreachable(
            peer=f["peer"], address=f["address"], step=f["step"], reason=f"reported by {peer}"
        ),
        ("{peer} cannot be reached at {address}.", "Start {peer}, or repair the network between the two."),
    ),
    e.CutOff: _Row(
        pb.CUT_OFF,
        Code.UNAVAILABLE,
        ("peer", "step"),
        lambda _, f: e.CutOff(peer=f["peer"], step=f["step"]),
        ("{peer} is cut off: it reaches no other party.", "Look at the network of {peer}."),
    ),
    e.PeerUnauthenticated: _Row(
        pb.PEER_UNAUTHENTICATED,
        Code.UNAUTHENTICATED,
        ("peer", "reason"),
        lambda peer, f: e.PeerUnauthenticated(peer=f["peer"], reason=f"{f['reason']} (reported by {peer})"),
        ("The connection with {peer} is not authenticated: {reason}.", "Show a valid certificate of the authority."),
    ),
    e.CallNotAllowed: _Row(
        pb.CALL_NOT_ALLOWED,
        Code.PERMISSION_DENIED,
        ("method",),
        lambda peer, f: e.CallNotAllowed(peer=peer, method=f["method"]),
        (
            "The caller may not call {method}.",
            "The server's operator names its peers, and the role of each, in [peers] of its party file.",
        ),
    ),
    e.LimitExceeded: _Row(
        pb.LIMIT_EXCEEDED,
        Code.RESOURCE_EXHAUSTED,
        ("step", "limit"),
        lambda peer, f: e.LimitExceeded(peer=peer, step=f["step"], limit=f["limit"]),
        ("The call exceeds a limit: {limit}.", "Send less, or fewer calls at once."),
        (_describe_quota("{step}", "{limit}"),),
    ),
    DuplicateId: _Row(
        pb.DUPLICATE_ID,
        Code.INVALID_ARGUMENT,
        ("position",),
        lambda peer, f: e.DataError(
            f"{peer} refuses the request: row {f['position']} has an id that came before",
            hint="remove the duplicate: every id may occur once",
        ),
        ("Row {position} of the request has an id that came before.", "Remove duplicate ids."),
        (_field_of("ids", "row {position}, counted from 1, has an id that came before"),),
    ),
    UnknownId: _Row(
        pb.UNKNOWN_ID,
        Code.INVALID_ARGUMENT,
        ("position", "count"),
        lambda peer, f: e.DataError(
            f"{peer} does not know the id of row {f['position']} ({f['count']} such rows in all)",
            hint="send only ids that its dataset holds",
        ),
        (
            "Row {position} of the request has an id that the dataset does not have ({count} such rows in all).",
            "Send only ids that the dataset has.",
        ),
        (_field_of("ids", "row {position}, counted from 1, has an id that the dataset does not have"),),
    ),
    e.MacCheckFailed: _Row(
        pb.MAC_CHECK_FAILED,
        Code.DATA_LOSS,
        (),
        lambda peer, _: _rebuild_aborted(peer, "MAC_CHECK_FAILED", "MAC check"),
        ("The opened values do not fit their MACs, so nothing is kept.", "Compare what runs at each party."),
    ),
    e.ScoresOutOfRange: _Row(
        pb.SCORES_OUT_OF_RANGE,
        Code.FAILED_PRECONDITION,
        ("epoch", "point", "fold"),
        lambda _, f: e.ScoresOutOfRange(
            epoch=int(f["epoch"]), point=int(f.get("point", "0")), fold=int(f.get("fold", "0"))
        ),
        ("Scores or weights left their range in epoch {epoch}.", "Lower the learning rate, or regularise more."),
    ),
    e.CannotTakePart: _Row(
        pb.CANNOT_TAKE_PART,
        Code.FAILED_PRECONDITION,
        ("party",),
        lambda peer, f: e.CannotTakePart(f.get("party", peer)),
        ("This party cannot take part, and the reason is private.", "Ask its operator, whose log has the reason."),
    ),
    e.SessionUnknown: _Row(
        pb.SESSION_UNKNOWN,
        Code.NOT_FOUND,
        (),
        lambda peer, _: _rebuild_aborted(peer, "SESSION_UNKNOWN"),
        ("There is no such session, or the caller has no part in it.", "Check the name of the session."),
    ),
    e.ProtocolError: _Row(
        pb.PROTOCOL,
        Code.FAILED_PRECONDITION,
        ("step",),
        lambda peer, f: _rebuild_aborted(peer, "PROTOCOL", f["step"]),
        ("The protocol cannot go on.", "The log of this party has the reason."),
    ),
}
_OWN = _TABLE[e.CannotTakePart]  # for every error that only a party's own operator may know
_BY_NAME = {str(pb.ErrorCode.Name(row.code)): row for row in _TABLE.values()}

_WITHOUT_A_ROW = {
    pb.INTERNAL: (Code.INTERNAL, "This party failed, and the reason is private. Its operator's log has the reason."),
    pb.CANCELLED: (Code.CANCELLED, "The session was cancelled. Submit the job again."),
}


def _rebuild_aborted(peer: str, code: str, step: str = "") -> e.BlindfitError:
    return e.PeerAborted(culprit=peer, code=code, step=step)


def _row_of(error: BaseException) -> _Row | None:
    if isinstance(error, e.BlindfitError) and error.told == "own":
        return _OWN
    return next((_TABLE[cls] for cls in type(error).__mro__ if cls in _TABLE), None)


def code_of(error: BaseException) -> pb.ErrorCode:
    row = _row_of(error)
    return row.code if row else pb.INTERNAL


def status_of(error: BaseException) -> Status:
    """Return the public part of an error: its code, its public fields, and a sentence made of these."""
    row = _row_of(error)
    if row is None:
        return status_of_code(pb.INTERNAL)
    given = {name: getattr(error, name) for name in row.fields if hasattr(error, name)}
    shown = {name: f"{value:.6g}" if isinstance(value, float) else _text(value) for name, value in given.items()}
    info = details_pb.ErrorInfo(
        reason=name_of(row.code), domain=DOMAIN, metadata={name: _text(value) for name, value in given.items()}
    )
    return _status(row.status, " ".join(row.says).format(**shown), info, *(make(shown) for make in row.details))


def status_of_code(code: pb.ErrorCode) -> Status:
    """Return the status of an end that has no error of its own."""
    status, sentence = _WITHOUT_A_ROW[code]
    return _status(status, sentence, details_pb.ErrorInfo(reason=name_of(code), domain=DOMAIN))


def _status(code: grpc.StatusCode, sentence: str, *details: Any) -> Status:
    status = Status(code=code.value[0], message=_cut(sentence, MAX_SENTENCE_BYTES))
    for detail in details:
        status.details.add().Pack(detail)
    return status


def _text(value: FieldValue) -> str:
    if isinstance(value, tuple):
        value = SEPARATOR.join(value)
    return _cut(printable(value), MAX_FIELD_BYTES) if isinstance(value, str) else _cut(repr(value), MAX_FIELD_BYTES)


def _cut(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode(errors="ignore")


def name_of(code: int) -> str:
    return str(pb.ErrorCode.Name(code)) if code in pb.ErrorCode.values() else "UNKNOWN"


def error_of(status: Status, *, peer: str) -> e.BlindfitError:
    """Return the typed error that a peer reported; a report that does not fit the table becomes its code."""
    info = _info_of(status)
    if info is None:
        return _rebuild_aborted(peer, "UNKNOWN")
    row = _BY_NAME.get(info.reason)
    if row is None:
        return _rebuild_aborted(peer, info.reason if info.reason in pb.ErrorCode.keys() else "UNKNOWN")  # noqa: SIM118 - no dict
    fields = {name: _text(value) for name, value in info.metadata.items() if name in row.fields}
    try:
        return row.rebuild(peer, fields)
    except (KeyError, ValueError, OverflowError):  # a field is missing, or is not a number
        return _rebuild_aborted(peer, info.reason)


def _info_of(status: Status) -> details_pb.ErrorInfo | None:
    """Return the ErrorInfo of a Blindfit server; None if no such server has answered."""
    for packed in status.details[:MAX_DETAILS]:
        info = details_pb.ErrorInfo()
        with contextlib.suppress(DecodeError):
            if packed.Unpack(info) and info.domain == DOMAIN:
                return info
    return None


_GRPC_LIMITS = {  # parts of gRPC's own sentences
    "rpc limit exceeded": "calls at once in its process",
    "metadata": "size of a call's metadata",
    "larger than max": "size of one gRPC message",
}


def _grpc_limit(details: str) -> str:
    return next((ours for theirs, ours in _GRPC_LIMITS.items() if theirs in details.lower()), "one of gRPC's own")


def read_peer_status(call_error: grpc.aio.AioRpcError) -> Status | None:
    """Return a Blindfit server's report about a failed call; None if the server sent nothing readable."""
    try:
        status = rpc_status.from_call(call_error)
    except (ValueError, TypeError, DecodeError):  # not a status, or not of this call
        return None
    return status if status is not None and _info_of(status) else None


def error_of_call(call_error: grpc.aio.AioRpcError, *, peer: str, address: str, step: str) -> e.BlindfitError:
    """Return the typed error behind a failed call: the peer's own report if there is one, else gRPC's."""
    if (said := read_peer_status(call_error)) is not None:
        return error_of(said, peer=peer)
    code = call_error.code()
    if code is Code.DEADLINE_EXCEEDED:
        return e.TransportError(f"the deadline passed at {peer}, step {step}", peer=peer, step=step)
    if code is Code.RESOURCE_EXHAUSTED:
        return e.LimitExceeded(peer=peer, step=step, limit=_grpc_limit(call_error.details() or ""))
    if code is Code.UNIMPLEMENTED:
        return e.CallNotAllowed(peer=peer, method=step)
    # Our servers report what is wrong. Without their report these codes are gRPC's own, for a call that was cut off.
    # The first comes also from a write to a call that the server has ended, so that only another call finds the reason.
    if code in (Code.INTERNAL, Code.UNKNOWN, Code.CANCELLED, Code.UNAVAILABLE):
        return e.PeerUnreachable(peer=peer, address=address, step=step, reason="the connection was lost")
    return e.TransportError(f"the call to {peer} failed at step {step} with {code.name}", peer=peer, step=step)
