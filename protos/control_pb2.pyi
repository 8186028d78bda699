from blindfit.protos import measurement_pb2 as _measurement_pb2
from blindfit.protos import payload_pb2 as _payload_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATE_UNSPECIFIED: _ClassVar[SessionState]
    HELD: _ClassVar[SessionState]
    ACCEPTED: _ClassVar[SessionState]
    RUNNING: _ClassVar[SessionState]
    DONE: _ClassVar[SessionState]
    FAILED: _ClassVar[SessionState]
    REFUSED: _ClassVar[SessionState]
    ENDED: _ClassVar[SessionState]
SESSION_STATE_UNSPECIFIED: SessionState
HELD: SessionState
ACCEPTED: SessionState
RUNNING: SessionState
DONE: SessionState
FAILED: SessionState
REFUSED: SessionState
ENDED: SessionState

class DescribePartyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PartyDescription(_message.Message):
    __slots__ = ("name", "role", "version", "protocol_version", "systems", "datasets", "receipt_key", "published")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_KEY_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    version: str
    protocol_version: str
    systems: _containers.RepeatedScalarFieldContainer[str]
    datasets: _containers.RepeatedScalarFieldContainer[str]
    receipt_key: bytes
    published: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., version: _Optional[str] = ..., protocol_version: _Optional[str] = ..., systems: _Optional[_Iterable[str]] = ..., datasets: _Optional[_Iterable[str]] = ..., receipt_key: _Optional[bytes] = ..., published: _Optional[_Iterable[str]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("name", "role", "address", "dataset")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    address: str
    dataset: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., address: _Optional[str] = ..., dataset: _Optional[str] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("session", "protocol", "members", "parameters", "receipts")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    session: str
    protocol: str
    members: _containers.RepeatedCompositeFieldContainer[Member]
    parameters: _payload_pb2.Parameters
    receipts: _containers.RepeatedCompositeFieldContainer[_measurement_pb2.SignedReceipt]
    def __init__(self, session: _Optional[str] = ..., protocol: _Optional[str] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., parameters: _Optional[_Union[_payload_pb2.Parameters, _Mapping]] = ..., receipts: _Optional[_Iterable[_Union[_measurement_pb2.SignedReceipt, _Mapping]]] = ...) -> None: ...

class CheckAnswer(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProposalAnswer(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: SessionState
    def __init__(self, state: _Optional[_Union[SessionState, str]] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("session", "blamed")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    BLAMED_FIELD_NUMBER: _ClassVar[int]
    session: str
    blamed: str
    def __init__(self, session: _Optional[str] = ..., blamed: _Optional[str] = ...) -> None: ...

class SessionAnswer(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: SessionState
    def __init__(self, state: _Optional[_Union[SessionState, str]] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("ahead",)
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    ahead: int
    def __init__(self, ahead: _Optional[int] = ...) -> None: ...

class WaitingAnswer(_message.Message):
    __slots__ = ("waits", "still_s", "is_ending", "has_ended")
    WAITS_FIELD_NUMBER: _ClassVar[int]
    STILL_S_FIELD_NUMBER: _ClassVar[int]
    IS_ENDING_FIELD_NUMBER: _ClassVar[int]
    HAS_ENDED_FIELD_NUMBER: _ClassVar[int]
    waits: _containers.RepeatedCompositeFieldContainer[Wait]
    still_s: float
    is_ending: bool
    has_ended: bool
    def __init__(self, waits: _Optional[_Iterable[_Union[Wait, _Mapping]]] = ..., still_s: _Optional[float] = ..., is_ending: bool = ..., has_ended: bool = ...) -> None: ...

class Wait(_message.Message):
    __slots__ = ("peer", "step", "since_s")
    PEER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    peer: str
    step: str
    since_s: float
    def __init__(self, peer: _Optional[str] = ..., step: _Optional[str] = ..., since_s: _Optional[float] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("step", "unit", "done", "total", "waiting_for")
    STEP_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    step: str
    unit: str
    done: int
    total: int
    waiting_for: str
    def __init__(self, step: _Optional[str] = ..., unit: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., waiting_for: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("state", "progress", "error", "summary", "receipt")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    state: SessionState
    progress: Progress
    error: _status_pb2.Status
    summary: _payload_pb2.Parameters
    receipt: _measurement_pb2.SignedReceipt
    def __init__(self, state: _Optional[_Union[SessionState, str]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., summary: _Optional[_Union[_payload_pb2.Parameters, _Mapping]] = ..., receipt: _Optional[_Union[_measurement_pb2.SignedReceipt, _Mapping]] = ...) -> None: ...
