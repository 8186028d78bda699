from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

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

class ErrorField(_message.Message):
    __slots__ = ("name", "text", "real", "integer")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    real: float
    integer: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., real: _Optional[float] = ..., integer: _Optional[int] = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("code", "fields")
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    fields: _containers.RepeatedCompositeFieldContainer[ErrorField]
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., fields: _Optional[_Iterable[_Union[ErrorField, _Mapping]]] = ...) -> None: ...
