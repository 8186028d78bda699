"""Errors <-> codes on the wire and gRPC status: one table, used at the edge alone.

Only the fields named here cross the wire. What only a party's own operator may know leaves as one code, whatever it is;
an exception that is not ours, as INTERNAL, without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError

from blindfit.algorithms import errors as e
from blindfit.algorithms.errors import DuplicateId, UnknownId
from blindfit.algorithms.texts import printable
from blindfit.protos import errors_pb2 as pb

ERROR_METADATA_KEY = "blindfit-error-bin"
MAX_FIELD_CHARS = 512

Status = grpc.StatusCode
FieldValue = str | int | float


@dataclass(frozen=True, slots=True)
class _Row:
    code: pb.ErrorCode
    status: grpc.StatusCode
    fields: tuple[str, ...]
    rebuild: Callable[[str, dict[str, FieldValue]], e.BlindfitError]


def _malformed(peer: str, f: dict[str, FieldValue]) -> e.BlindfitError:
    # The peer says that *we* sent something malformed: our own mistake, or a peer of another make.
    return e.PeerAborted(culprit=peer, code=f"it could not accept {f['field']}: {f['reason']}", step=str(f["step"]))


_TABLE: dict[type[BaseException], _Row] = {
    e.MalformedMessage: _Row(pb.MALFORMED_MESSAGE, Status.INVALID_ARGUMENT, ("field", "reason", "step"), _malformed),
    e.UnexpectedStep: _Row(
        pb.UNEXPECTED_STEP,
        Status.FAILED_PRECONDITION,
        ("expected", "got"),
        lambda peer, f: e.PeerAborted(culprit=peer, code=f"expected {f['expected']}, got {f['got']}"),
    ),
    e.HandshakeMismatch: _Row(
        pb.HANDSHAKE_MISMATCH,
        Status.FAILED_PRECONDITION,
        ("field", "ours", "theirs"),
        lambda peer, f: e.HandshakeMismatch(
            culprit=peer, field=str(f["field"]), ours=str(f["theirs"]), theirs=str(f["ours"])
        ),
    ),
    e.PeerAborted: _Row(
        pb.PEER_ABORTED,
        Status.ABORTED,
        ("culprit", "code", "step"),
        lambda _, f: e.PeerAborted(culprit=str(f["culprit"]), code=str(f["code"]), step=str(f["step"])),
    ),
    e.BudgetExhausted: _Row(
        pb.BUDGET_EXHAUSTED,
        Status.RESOURCE_EXHAUSTED,
        ("population", "spent", "budget", "requested"),
        lambda _, f: e.BudgetExhausted(
            population=str(f["population"]),
            spent=float(f["spent"]),
            budget=float(f["budget"]),
            requested=float(f["requested"]),
        ),
    ),
    e.UnsupportedEvent: _Row(
        pb.UNSUPPORTED_EVENT,
        Status.INVALID_ARGUMENT,
        (),
        lambda peer, _: e.UnsupportedEvent(
            f"the accountant of {peer} cannot bound this release together with those before it",
            hint="its own log says why; where they protect other neighbours, it needs a population of its own",
        ),
    ),
    e.RequestConflict: _Row(
        pb.REQUEST_CONFLICT,
        Status.ALREADY_EXISTS,
        (),
        lambda peer, _: e.RequestConflict(
            f"{peer} has answered this request id for other content", hint="take another request id"
        ),
    ),
    e.LedgerBehind: _Row(
        pb.LEDGER_BEHIND,
        Status.FAILED_PRECONDITION,
        ("population", "ledger_position", "receipt_position"),
        lambda _, f: e.LedgerBehind(
            population=str(f["population"]),
            ledger_position=int(f["ledger_position"]),
            receipt_position=int(f["receipt_position"]),
        ),
    ),
    e.LedgerUnavailable: _Row(
        pb.LEDGER_UNAVAILABLE,
        Status.UNAVAILABLE,
        (),
        lambda peer, _: e.LedgerUnavailable(
            f"the database of {peer} could not be used: the step that asked it released nothing and charged nothing",
            hint=f"its operator must look at the disk of {peer}",
        ),
    ),
    e.TooFewRows: _Row(
        pb.TOO_FEW_ROWS,
        Status.FAILED_PRECONDITION,
        ("rows", "least"),
        lambda _, f: e.TooFewRows(rows=int(f["rows"]), least=int(f["least"])),
    ),
    e.CannotAnswer: _Row(
        pb.CANNOT_ANSWER,
        Status.FAILED_PRECONDITION,
        ("party",),
        lambda _, f: e.CannotAnswer(party=str(f["party"])),
    ),
    e.PolicyRefused: _Row(
        pb.POLICY_REFUSED,
        Status.PERMISSION_DENIED,
        ("party", "field", "reason"),
        lambda _, f: e.PolicyRefused(party=str(f["party"]), field=str(f["field"]), reason=str(f["reason"])),
    ),
    e.PeerTimeout: _Row(
        pb.PEER_TIMEOUT,
        Status.DEADLINE_EXCEEDED,
        ("peer", "step", "timeout_s"),
        lambda _, f: e.PeerTimeout(peer=str(f["peer"]), step=str(f["step"]), timeout_s=float(f["timeout_s"])),
    ),
    e.PeerUnreachable: _Row(
        pb.PEER_UNREACHABLE,
        Status.UNAVAILABLE,
        ("peer", "address", "step"),
        lambda peer, f: e.PeerUnreachable(
            peer=str(f["peer"]), address=str(f["address"]), step=str(f["step"]), reason=f"says {peer}"
        ),
    ),
    e.PeerUnauthenticated: _Row(
        pb.PEER_UNAUTHENTICATED,
        Status.UNAUTHENTICATED,
        ("reason",),
        lambda peer, f: e.PeerUnauthenticated(peer=peer, reason=f"{peer} says: {f['reason']}"),
    ),
    e.CallNotAllowed: _Row(
        pb.CALL_NOT_ALLOWED,
        Status.PERMISSION_DENIED,
        ("method",),
        lambda peer, f: e.CallNotAllowed(peer=peer, method=str(f["method"])),
    ),
    e.LimitExceeded: _Row(
        pb.LIMIT_EXCEEDED,
        Status.RESOURCE_EXHAUSTED,
        ("step", "limit"),
        lambda peer, f: e.LimitExceeded(peer=peer, step=str(f["step"]), limit=str(f["limit"])),
    ),
    DuplicateId: _Row(
        pb.DUPLICATE_ID,
        Status.INVALID_ARGUMENT,
        ("position",),
        lambda peer, f: e.DataError(
            f"{peer} refuses the request: row {f['position']} has an id that came before",
            hint="every id may stand once; remove the duplicate",
        ),
    ),
    UnknownId: _Row(
        pb.UNKNOWN_ID,
        Status.INVALID_ARGUMENT,
        ("position", "count"),
        lambda peer, f: e.DataError(
            f"{peer} does not know the id of row {f['position']} ({f['count']} such rows in all)",
            hint="send only ids that its dataset holds",
        ),
    ),
    e.MacCheckFailed: _Row(
        pb.MAC_CHECK_FAILED, Status.DATA_LOSS, (), lambda peer, _: _aborted(peer, "MAC_CHECK_FAILED", "MAC check")
    ),
    e.ScoresOutOfRange: _Row(
        pb.SCORES_OUT_OF_RANGE,
        Status.FAILED_PRECONDITION,
        ("epoch",),
        lambda _, f: e.ScoresOutOfRange(epoch=int(f["epoch"])),
    ),
    e.CannotTakePart: _Row(
        pb.CANNOT_TAKE_PART,
        Status.FAILED_PRECONDITION,
        ("party",),
        lambda peer, f: e.CannotTakePart(str(f.get("party", peer))),
    ),
    e.SessionUnknown: _Row(pb.SESSION_UNKNOWN, Status.NOT_FOUND, (), lambda peer, _: _aborted(peer, "SESSION_UNKNOWN")),
    e.ProtocolError: _Row(
        pb.PROTOCOL,
        Status.FAILED_PRECONDITION,
        ("step",),
        lambda peer, f: _aborted(peer, "PROTOCOL", str(f["step"])),
    ),
}
_OWN = _TABLE[e.CannotTakePart]  # of all that only a party's own operator may know
_BY_CODE = {row.code: row for row in _TABLE.values()}


def _aborted(peer: str, code: str, step: str = "") -> e.BlindfitError:
    return e.PeerAborted(culprit=peer, code=code, step=step)


def _row_of(error: BaseException) -> _Row | None:
    if isinstance(error, e.BlindfitError) and error.told == "own":
        return _OWN
    return next((_TABLE[cls] for cls in type(error).__mro__ if cls in _TABLE), None)


def status_of(error: BaseException) -> grpc.StatusCode:
    row = _row_of(error)
    return row.status if row else Status.INTERNAL


def detail_of(error: BaseException) -> pb.ErrorDetail:
    """The class and public fields of an error; nothing else of it."""
    row = _row_of(error)
    if row is None:
        return pb.ErrorDetail(code=pb.INTERNAL)
    known = [name for name in row.fields if hasattr(error, name)]
    return pb.ErrorDetail(code=row.code, fields=[_field(name, getattr(error, name)) for name in known])


def _field(name: str, value: FieldValue) -> pb.ErrorField:
    if isinstance(value, float):
        return pb.ErrorField(name=name, real=value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return pb.ErrorField(name=name, integer=value)
    return pb.ErrorField(name=name, text=printable(str(value)[:MAX_FIELD_CHARS]))


def name_of(code: int) -> str:
    return str(pb.ErrorCode.Name(code)) if code in pb.ErrorCode.values() else "UNKNOWN"


def error_of(detail: pb.ErrorDetail, *, peer: str) -> e.BlindfitError:
    """The typed error that a peer reported; a report that does not fit the table is just its code."""
    name = name_of(detail.code)
    row = _BY_CODE.get(detail.code)
    if row is None:
        return _aborted(peer, name)
    fields = {f.name: _value(f) for f in detail.fields if f.name in row.fields}
    try:
        return row.rebuild(peer, fields)
    except (KeyError, ValueError, OverflowError):  # a field is missing, or of another type
        return _aborted(peer, name)


def _value(field: pb.ErrorField) -> FieldValue:
    which = field.WhichOneof("value")
    if which == "real":
        return field.real
    if which == "integer":
        return field.integer
    return printable(field.text[:MAX_FIELD_CHARS])


_GRPC_LIMITS = {  # what gRPC itself says, in part
    "rpc limit exceeded": "calls at once in its process",
    "metadata": "size of a call's metadata",
    "larger than max": "size of one gRPC message",
}


def _grpc_limit(details: str) -> str:
    return next((ours for theirs, ours in _GRPC_LIMITS.items() if theirs in details.lower()), "one of gRPC's own")


def error_of_call(call_error: grpc.aio.AioRpcError, *, peer: str, address: str, step: str) -> e.BlindfitError:
    """The typed error behind a failed call: the peer's own report where there is one, else what gRPC says."""
    for key, value in call_error.trailing_metadata() or ():
        if key == ERROR_METADATA_KEY and isinstance(value, bytes):
            detail = pb.ErrorDetail()
            try:
                detail.ParseFromString(value)
            except DecodeError:
                break
            return error_of(detail, peer=peer)
    code = call_error.code()
    if code is Status.DEADLINE_EXCEEDED:
        return e.TransportError(f"the deadline passed at {peer}, step {step}", peer=peer, step=step)
    if code is Status.RESOURCE_EXHAUSTED:
        return e.LimitExceeded(peer=peer, step=step, limit=_grpc_limit(call_error.details() or ""))
    if code is Status.UNIMPLEMENTED:
        return e.CallNotAllowed(peer=peer, method=step)
    # Our servers say what is wrong. Without their word the others are gRPC's own for a call that was cut off; the
    # first also for a write to a call that the server has ended, so that only another call learns why.
    if code in (Status.INTERNAL, Status.UNKNOWN, Status.CANCELLED, Status.UNAVAILABLE):
        return e.PeerUnreachable(peer=peer, address=address, step=step, reason="the connection was lost")
    return e.TransportError(f"the call to {peer} failed at step {step} with {code.name}", peer=peer, step=step)
