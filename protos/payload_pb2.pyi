from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RealTensor(_message.Message):
    __slots__ = ("shape", "data")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class IntegerTensor(_message.Message):
    __slots__ = ("shape", "width_bytes", "data")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    width_bytes: int
    data: bytes
    def __init__(self, shape: _Optional[_Iterable[int]] = ..., width_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class ShareVector(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class TextList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[str]] = ...) -> None: ...

class Parameter(_message.Message):
    __slots__ = ("name", "text", "integer", "real", "flag", "texts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    integer: int
    real: float
    flag: bool
    texts: TextList
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., flag: _Optional[bool] = ..., texts: _Optional[_Union[TextList, _Mapping]] = ...) -> None: ...

class Parameters(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Parameter]
    def __init__(self, items: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "real_tensor", "integer_tensor", "share_vector", "texts", "parameters", "text", "integer", "real", "octets")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REAL_TENSOR_FIELD_NUMBER: _ClassVar[int]
    INTEGER_TENSOR_FIELD_NUMBER: _ClassVar[int]
    SHARE_VECTOR_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    OCTETS_FIELD_NUMBER: _ClassVar[int]
    name: str
    real_tensor: RealTensor
    integer_tensor: IntegerTensor
    share_vector: ShareVector
    texts: TextList
    parameters: Parameters
    text: str
    integer: int
    real: float
    octets: bytes
    def __init__(self, name: _Optional[str] = ..., real_tensor: _Optional[_Union[RealTensor, _Mapping]] = ..., integer_tensor: _Optional[_Union[IntegerTensor, _Mapping]] = ..., share_vector: _Optional[_Union[ShareVector, _Mapping]] = ..., texts: _Optional[_Union[TextList, _Mapping]] = ..., parameters: _Optional[_Union[Parameters, _Mapping]] = ..., text: _Optional[str] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., octets: _Optional[bytes] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("kind", "fields")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    def __init__(self, kind: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ...) -> None: ...
