from blindfit.protos import errors_pb2 as _errors_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("session", "sender", "sequence", "step", "hello", "chunk", "abort", "end")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    session: str
    sender: str
    sequence: int
    step: str
    hello: Hello
    chunk: Chunk
    abort: Abort
    end: End
    def __init__(self, session: _Optional[str] = ..., sender: _Optional[str] = ..., sequence: _Optional[int] = ..., step: _Optional[str] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ..., abort: _Optional[_Union[Abort, _Mapping]] = ..., end: _Optional[_Union[End, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("outbox",)
    OUTBOX_FIELD_NUMBER: _ClassVar[int]
    outbox: str
    def __init__(self, outbox: _Optional[str] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("data", "last")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    last: bool
    def __init__(self, data: _Optional[bytes] = ..., last: bool = ...) -> None: ...

class End(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Abort(_message.Message):
    __slots__ = ("code", "step", "lost")
    CODE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    code: _errors_pb2.ErrorCode
    step: str
    lost: str
    def __init__(self, code: _Optional[_Union[_errors_pb2.ErrorCode, str]] = ..., step: _Optional[str] = ..., lost: _Optional[str] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("received",)
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    received: int
    def __init__(self, received: _Optional[int] = ...) -> None: ...
