from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    INTERNAL: _ClassVar[ErrorCode]
    CANNOT_TAKE_PART: _ClassVar[ErrorCode]
    PROTOCOL: _ClassVar[ErrorCode]
    MALFORMED_MESSAGE: _ClassVar[ErrorCode]
    UNEXPECTED_STEP: _ClassVar[ErrorCode]
    HANDSHAKE_MISMATCH: _ClassVar[ErrorCode]
    PEER_ABORTED: _ClassVar[ErrorCode]
    BUDGET_EXHAUSTED: _ClassVar[ErrorCode]
    UNSUPPORTED_EVENT: _ClassVar[ErrorCode]
    REQUEST_CONFLICT: _ClassVar[ErrorCode]
    LEDGER_BEHIND: _ClassVar[ErrorCode]
    LEDGER_UNAVAILABLE: _ClassVar[ErrorCode]
    TOO_FEW_ROWS: _ClassVar[ErrorCode]
    POLICY_REFUSED: _ClassVar[ErrorCode]
    PEER_TIMEOUT: _ClassVar[ErrorCode]
    PEER_UNREACHABLE: _ClassVar[ErrorCode]
    PEER_UNAUTHENTICATED: _ClassVar[ErrorCode]
    CALL_NOT_ALLOWED: _ClassVar[ErrorCode]
    LIMIT_EXCEEDED: _ClassVar[ErrorCode]
    CANCELLED: _ClassVar[ErrorCode]
    DUPLICATE_ID: _ClassVar[ErrorCode]
    UNKNOWN_ID: _ClassVar[ErrorCode]
    SESSION_UNKNOWN: _ClassVar[ErrorCode]
    CANNOT_ANSWER: _ClassVar[ErrorCode]
    MAC_CHECK_FAILED: _ClassVar[ErrorCode]
    SCORES_OUT_OF_RANGE: _ClassVar[ErrorCode]
    CUT_OFF: _ClassVar[ErrorCode]
ERROR_CODE_UNSPECIFIED: ErrorCode
INTERNAL: ErrorCode
CANNOT_TAKE_PART: ErrorCode
PROTOCOL: ErrorCode
MALFORMED_MESSAGE: ErrorCode
UNEXPECTED_STEP: ErrorCode
HANDSHAKE_MISMATCH: ErrorCode
PEER_ABORTED: ErrorCode
BUDGET_EXHAUSTED: ErrorCode
UNSUPPORTED_EVENT: ErrorCode
REQUEST_CONFLICT: ErrorCode
LEDGER_BEHIND: ErrorCode
LEDGER_UNAVAILABLE: ErrorCode
TOO_FEW_ROWS: ErrorCode
POLICY_REFUSED: ErrorCode
PEER_TIMEOUT: ErrorCode
PEER_UNREACHABLE: ErrorCode
PEER_UNAUTHENTICATED: ErrorCode
CALL_NOT_ALLOWED: ErrorCode
LIMIT_EXCEEDED: ErrorCode
CANCELLED: ErrorCode
DUPLICATE_ID: ErrorCode
UNKNOWN_ID: ErrorCode
SESSION_UNKNOWN: ErrorCode
CANNOT_ANSWER: ErrorCode
MAC_CHECK_FAILED: ErrorCode
SCORES_OUT_OF_RANGE: ErrorCode
CUT_OFF: ErrorCode
