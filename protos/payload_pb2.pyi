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

class Bits(_message.Message):
    __slots__ = ("length", "data")
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    length: int
    data: bytes
    def __init__(self, length: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class OctetVector(_message.Message):
    __slots__ = ("width_bytes", "data")
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    width_bytes: int
    data: bytes
    def __init__(self, width_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class CiphertextVector(_message.Message):
    __slots__ = ("width_bytes", "data")
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    width_bytes: int
    data: bytes
    def __init__(self, width_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class PartialDecryption(_message.Message):
    __slots__ = ("width_bytes", "data")
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    width_bytes: int
    data: bytes
    def __init__(self, width_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class PaillierPublicKey(_message.Message):
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
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., flag: bool = ..., texts: _Optional[_Union[TextList, _Mapping]] = ...) -> None: ...

class Parameters(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Parameter]
    def __init__(self, items: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "real_tensor", "integer_tensor", "share_vector", "texts", "parameters", "text", "integer", "real", "octets", "ciphertext_vector", "paillier_public_key", "partial_decryption", "bits", "octet_vector")
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
    CIPHERTEXT_VECTOR_FIELD_NUMBER: _ClassVar[int]
    PAILLIER_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_DECRYPTION_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    OCTET_VECTOR_FIELD_NUMBER: _ClassVar[int]
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
    ciphertext_vector: CiphertextVector
    paillier_public_key: PaillierPublicKey
    partial_decryption: PartialDecryption
    bits: Bits
    octet_vector: OctetVector
    def __init__(self, name: _Optional[str] = ..., real_tensor: _Optional[_Union[RealTensor, _Mapping]] = ..., integer_tensor: _Optional[_Union[IntegerTensor, _Mapping]] = ..., share_vector: _Optional[_Union[ShareVector, _Mapping]] = ..., texts: _Optional[_Union[TextList, _Mapping]] = ..., parameters: _Optional[_Union[Parameters, _Mapping]] = ..., text: _Optional[str] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., octets: _Optional[bytes] = ..., ciphertext_vector: _Optional[_Union[CiphertextVector, _Mapping]] = ..., paillier_public_key: _Optional[_Union[PaillierPublicKey, _Mapping]] = ..., partial_decryption: _Optional[_Union[PartialDecryption, _Mapping]] = ..., bits: _Optional[_Union[Bits, _Mapping]] = ..., octet_vector: _Optional[_Union[OctetVector, _Mapping]] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("kind", "fields")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    def __init__(self, kind: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ...) -> None: ...
