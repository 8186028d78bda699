"""Conversion of messages to and from protobuf: only this module knows both.

A message class is a frozen dataclass whose fields are annotated with kinds of algorithms/messages.py. Everything read
from a peer is checked here before a protocol sees it: names, kinds, shapes, lengths, ranges.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np
from google.protobuf.message import DecodeError

from blindfit.algorithms.errors import DataError, LocalProtocolError, MalformedMessage, UnexpectedStep
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.threshold import PartialDecryption, ReceivedPartialDecryption
from blindfit.protos import payload_pb2 as pb

MODULUS = 2**61 - 1
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 2**31
MAX_BITS = 2**28  # unpacked, bits take eight times as many bytes: no more than a whole message may have
MAX_OCTETS_BYTES = 1024  # size of one element of an octet vector
MIN_CIPHERTEXT_BYTES = 64  # for a key of 256 bits, in tests
MAX_CIPHERTEXT_BYTES = 2048  # for a key of 8192 bits
MAX_CIPHERTEXTS = 2**24
MAX_PUBLIC_KEY_BYTES = 64 * 1024
MAX_PARAMETERS = 512
MAX_PARAMETER_NAME_CHARS = 128
MAX_PARAMETER_ITEMS = 2048  # length of a list, such as a wide table's bounds, one for each column
MAX_PARAMETERS_BYTES = 64 * 1024

M = TypeVar("M")


class _FieldError(Exception):
    """A field does not match its kind. The error carries the reason, which names no value."""


# --- tensors ---------------------------------------------------------------------------------------


def _encode_real(value: Any) -> dict[str, Any]:
    array = _exactly(value, "<f8")
    if not np.isfinite(array).all():
        raise _FieldError("has a number that is not finite")
    return {"real_tensor": pb.RealTensor(shape=array.shape, data=array.tobytes())}


def _exactly(value: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Return the array in another type; refuse values that would be rounded, cut off or wrapped around."""
    array = np.asarray(value)
    if not np.can_cast(array.dtype, dtype, "safe"):
        raise _FieldError(f"is of {array.dtype}, which does not fit in {np.dtype(dtype)}")
    return array.astype(dtype, copy=False)


def _decode_real(field: pb.Field) -> Any:
    array = _array(field.real_tensor.shape, field.real_tensor.data, "<f8").astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise _FieldError("has a number that is not finite")
    return array


def _encode_integer(value: Any) -> dict[str, Any]:
    array = _exactly(value, "<i8")
    return {"integer_tensor": pb.IntegerTensor(shape=array.shape, width_bytes=8, data=array.tobytes())}


def _encode_int32(value: Any) -> dict[str, Any]:
    array = _exactly(value, "<i4")
    return {"integer_tensor": pb.IntegerTensor(shape=array.shape, width_bytes=4, data=array.tobytes())}


def _decode_integer(width_bytes: int) -> Callable[[pb.Field], Any]:
    def decode(field: pb.Field) -> Any:
        tensor = field.integer_tensor
        if tensor.width_bytes != width_bytes:
            raise _FieldError(f"is not of {width_bytes}-byte integers")
        return _array(tensor.shape, tensor.data, f"<i{width_bytes}").astype(f"i{width_bytes}", copy=False)

    return decode


def _array(shape: Any, data: bytes, dtype: str) -> np.ndarray[Any, Any]:
    if len(shape) > MAX_DIMENSIONS:
        raise _FieldError("has too many dimensions")
    elements = math.prod(shape)
    if elements > MAX_ELEMENTS or elements * np.dtype(dtype).itemsize != len(data):
        raise _FieldError("has data of another length than its shape")
    return np.frombuffer(data, dtype).reshape(tuple(shape))


def _encode_shares(value: Any) -> dict[str, Any]:
    shares = _exactly(value, "<u8")
    if shares.ndim != 1:
        raise _FieldError("is not a vector")
    _require_in_field(shares)
    return {"share_vector": pb.ShareVector(data=shares.tobytes())}


def _decode_shares(field: pb.Field) -> Any:
    data = field.share_vector.data
    if len(data) % 8:
        raise _FieldError("is not of 8-byte elements")
    shares = np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
    _require_in_field(shares)
    return shares


def _require_in_field(shares: np.ndarray[Any, Any]) -> None:
    if shares.size and int(shares.max()) >= MODULUS:
        raise _FieldError("has an element outside the field")


# --- flags and byte strings ------------------------------------------------------------------------


def _encode_bits(value: Any) -> dict[str, Any]:
    flags = _exactly(value, "?")
    if flags.ndim != 1:
        raise _FieldError("is not a vector")
    _require_bits(flags.size)
    return {"bits": pb.Bits(length=flags.size, data=np.packbits(flags).tobytes())}


def _decode_bits(field: pb.Field) -> Any:
    length, data = field.bits.length, field.bits.data
    _require_bits(length)
    if len(data) != -(-length // 8):
        raise _FieldError("has data of another length than its bits")
    if length % 8 and data[-1] & (0xFF >> length % 8):
        raise _FieldError("has a bit set past its last")
    return np.unpackbits(np.frombuffer(data, "u1"), count=length).view(np.bool_)


def _require_bits(length: int) -> None:
    if length > MAX_BITS:
        raise _FieldError(f"has more than {MAX_BITS} bits")


def _encode_octet_vector(value: Any) -> dict[str, Any]:
    octets = _exactly(value, "u1")
    if octets.ndim != 2:
        raise _FieldError("is not a vector of byte strings")
    width_bytes, data = octets.shape[1], octets.tobytes()
    _require_octets(width_bytes, data)
    return {"octet_vector": pb.OctetVector(width_bytes=width_bytes, data=data)}


def _decode_octet_vector(field: pb.Field) -> Any:
    width_bytes, data = field.octet_vector.width_bytes, field.octet_vector.data
    _require_octets(width_bytes, data)
    return np.frombuffer(data, "u1").reshape(-1, width_bytes)


def _require_octets(width_bytes: int, data: bytes) -> None:
    _require_elements(width_bytes, data, least=1, most=MAX_OCTETS_BYTES, max_count=MAX_ELEMENTS)


def _require_elements(width_bytes: int, data: bytes, *, least: int, most: int, max_count: int) -> None:
    if not least <= width_bytes <= most:
        raise _FieldError(f"has elements that are not of {least} to {most} bytes")
    if len(data) % width_bytes:
        raise _FieldError("has data that are not a whole number of elements")
    if len(data) // width_bytes > max_count:
        raise _FieldError(f"has more than {max_count} elements")


# --- Paillier --------------------------------------------------------------------------------------


def _numbers_mod_n_squared(
    name: str, message: Callable[..., Any], ours: type[Any], received: Callable[[int, bytes], Any], refusal: str
) -> _Kind:
    """Return the encoding of one kind of numbers, for exactly the class `ours`, and the decoding of received numbers.

    A homomorphic result would reveal how it was computed, so the class must be exactly this one.
    """

    def encode(value: Any) -> dict[str, Any]:
        if type(value) is not ours:
            raise _FieldError(refusal)
        width_bytes, data = value.to_wire()
        _require_ciphertexts(width_bytes, data)
        return {name: message(width_bytes=width_bytes, data=data)}

    def decode(field: pb.Field) -> Any:
        sent = getattr(field, name)
        _require_ciphertexts(sent.width_bytes, sent.data)
        return received(sent.width_bytes, sent.data)

    return _Kind(name, encode, decode)


def _require_ciphertexts(width_bytes: int, data: bytes) -> None:
    """Check sizes, which needs no key; `open` checks the numbers."""
    _require_elements(
        width_bytes, data, least=MIN_CIPHERTEXT_BYTES, most=MAX_CIPHERTEXT_BYTES, max_count=MAX_CIPHERTEXTS
    )


def _encode_public_key(value: Any) -> dict[str, Any]:
    """Encode an object of exactly this class, because another class may also hold the private key."""
    if type(value) is not PublicKey:
        raise _FieldError("is not a public key")
    data = value.to_bytes()
    _require_key_size(data)
    return {"paillier_public_key": pb.PaillierPublicKey(data=data)}


def _decode_public_key(field: pb.Field) -> Any:
    data = field.paillier_public_key.data
    _require_key_size(data)
    try:
        return PublicKey.from_bytes(data)
    except DataError:
        raise _FieldError("is not a public key") from None


def _require_key_size(data: bytes) -> None:
    if len(data) > MAX_PUBLIC_KEY_BYTES:
        raise _FieldError(f"is longer than {MAX_PUBLIC_KEY_BYTES} bytes")


# --- parameters ------------------------------------------------------------------------------------


def parameters_to_pb(parameters: Mapping[str, ParameterValue]) -> pb.Parameters:
    """Return protobuf parameters. Raise LocalProtocolError if a value cannot be sent; the error never shows the
    value.
    """
    try:
        return _parameters_to_pb(parameters)
    except _FieldError as bad:
        raise LocalProtocolError(f"the set of parameters {bad}") from None
    except (TypeError, ValueError):  # protobuf's; its text holds the value
        raise LocalProtocolError("the set of parameters has a value out of range") from None


def _parameters_to_pb(parameters: Mapping[str, ParameterValue]) -> pb.Parameters:
    message = pb.Parameters(items=[_parameter(name, value) for name, value in parameters.items()])
    _require_few_parameters(message)
    return message


def _require_few_parameters(parameters: pb.Parameters) -> None:
    """Check sizes first, because every later step costs time and memory for each name and each item of a list."""
    if len(parameters.items) > MAX_PARAMETERS:
        raise _FieldError(f"has more than {MAX_PARAMETERS} names")
    if parameters.ByteSize() > MAX_PARAMETERS_BYTES:
        raise _FieldError(f"has more than {MAX_PARAMETERS_BYTES} bytes")
    if any(len(item.name) > MAX_PARAMETER_NAME_CHARS for item in parameters.items):
        raise _FieldError(f"has a name of more than {MAX_PARAMETER_NAME_CHARS} characters")
    if any(len(item.texts.items) > MAX_PARAMETER_ITEMS for item in parameters.items):
        raise _FieldError(f"has a list of more than {MAX_PARAMETER_ITEMS} items")


def _parameter(name: str, value: ParameterValue) -> pb.Parameter:
    if isinstance(value, bool):
        return pb.Parameter(name=name, flag=value)
    if isinstance(value, int):
        return pb.Parameter(name=name, integer=value)
    if isinstance(value, float):
        return pb.Parameter(name=name, real=_finite(value))
    if isinstance(value, str):
        return pb.Parameter(name=name, text=value)
    if isinstance(value, tuple | list):
        return pb.Parameter(name=name, texts=pb.TextList(items=value))
    raise _FieldError(f"has {name}, whose type is not that of a parameter")


def parameters_from_pb(parameters: pb.Parameters, *, culprit: str, step: str) -> dict[str, ParameterValue]:
    try:
        return _parameters(parameters)
    except _FieldError as bad:
        raise MalformedMessage(culprit=culprit, field="parameters", reason=str(bad), step=step) from None


def _parameters(parameters: pb.Parameters) -> dict[str, ParameterValue]:
    _require_few_parameters(parameters)
    values: dict[str, ParameterValue] = {}
    for item in parameters.items:
        which = item.WhichOneof("value")
        if which is None or item.name in values:
            raise _FieldError("has a parameter without a value, or twice")
        value = getattr(item, which)
        if which == "real" and not math.isfinite(value):
            raise _FieldError("has a number that is not finite")
        values[item.name] = tuple(value.items) if which == "texts" else value
    return values


# --- the table of kinds ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kind:
    field: str  # field of pb.Field
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[pb.Field], Any]


def _encode_finite(value: Any) -> dict[str, Any]:
    return {"real": _finite(value)}


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _FieldError("is not finite")
    return float(value)


_KINDS: dict[str, _Kind] = {
    "real_tensor": _Kind("real_tensor", _encode_real, _decode_real),
    "integer_tensor": _Kind("integer_tensor", _encode_integer, _decode_integer(8)),
    "int32_tensor": _Kind("integer_tensor", _encode_int32, _decode_integer(4)),
    "share_vector": _Kind("share_vector", _encode_shares, _decode_shares),
    "texts": _Kind("texts", lambda v: {"texts": pb.TextList(items=v)}, lambda f: tuple(f.texts.items)),
    "parameters": _Kind(
        "parameters", lambda v: {"parameters": _parameters_to_pb(v)}, lambda f: _parameters(f.parameters)
    ),
    "text": _Kind("text", lambda v: {"text": v}, lambda f: f.text),
    "integer": _Kind("integer", lambda v: {"integer": v}, lambda f: f.integer),
    "real": _Kind("real", _encode_finite, lambda f: _finite(f.real)),
    "octets": _Kind("octets", lambda v: {"octets": v}, lambda f: f.octets),
    "bits": _Kind("bits", _encode_bits, _decode_bits),
    "octet_vector": _Kind("octet_vector", _encode_octet_vector, _decode_octet_vector),
    "paillier_public_key": _Kind("paillier_public_key", _encode_public_key, _decode_public_key),
    "ciphertext_vector": _numbers_mod_n_squared(
        "ciphertext_vector",
        pb.CiphertextVector,
        FreshCiphertext,
        ReceivedCiphertext,
        "was not re-randomised: only a FreshCiphertext is sent",
    ),
    "partial_decryption": _numbers_mod_n_squared(
        "partial_decryption",
        pb.PartialDecryption,
        PartialDecryption,
        ReceivedPartialDecryption,
        "is not a PartialDecryption of our own",
    ),
}


def _layout(message_class: Any) -> tuple[tuple[str, _Kind], ...]:
    return _read_layout(message_class)


@cache
def _read_layout(message_class: Any) -> tuple[tuple[str, _Kind], ...]:
    name = message_class.__name__
    if not dataclasses.is_dataclass(message_class):
        raise LocalProtocolError(f"{name} is not a message class")
    hints = get_type_hints(message_class, include_extras=True)
    layout = []
    for field in dataclasses.fields(message_class):
        kind = _KINDS.get(getattr(hints[field.name], "__metadata__", ("",))[0])
        if kind is None:
            raise LocalProtocolError(f"{name}.{field.name} is not of a kind of messages.py")
        layout.append((field.name, kind))
    return tuple(layout)


# --- whole messages --------------------------------------------------------------------------------


def encode(message: object) -> bytes:
    """Return the bytes of a message.

    Raises:
        LocalProtocolError: a value is not of its field's kind; the error names the field, never the value.
    """
    name = type(message).__name__
    fields = []
    for field_name, kind in _layout(type(message)):
        try:
            fields.append(pb.Field(name=field_name, **kind.encode(getattr(message, field_name))))
        except _FieldError as bad:
            raise LocalProtocolError(f"{name}.{field_name} {bad}", step=name) from None
        except (TypeError, ValueError):  # protobuf's; its text holds the value
            raise LocalProtocolError(f"{name}.{field_name} cannot be sent as {kind.field}", step=name) from None
    return pb.Message(kind=name, fields=fields).SerializeToString()


def decode(data: bytes, kind: type[M], *, culprit: str, session: str = "") -> M:
    """Return the message in some bytes.

    Raises:
        MalformedMessage: a field is malformed; the error names the field and the reason, never a value.
        UnexpectedStep: the message is of another class.
    """

    def make_error(field: str, reason: str) -> MalformedMessage:
        return MalformedMessage(culprit=culprit, field=field, reason=reason, session=session, step=kind.__name__)

    message = pb.Message()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise make_error("message", "is not a protobuf message") from None
    if message.kind != kind.__name__:
        got = message.kind[:64] if message.kind.isidentifier() else "something unnamed"
        raise UnexpectedStep(culprit=culprit, expected=kind.__name__, got=got, session=session, step=kind.__name__)
    layout = _layout(kind)
    values: dict[str, Any] = {}
    for field, (name, field_kind) in zip(message.fields, layout, strict=False):
        if field.name != name:
            raise make_error(name, "is missing or not in its place")
        if field.WhichOneof("value") != field_kind.field:
            raise make_error(name, f"is not of kind {field_kind.field}")
        try:
            values[name] = field_kind.decode(field)
        except _FieldError as bad:
            raise make_error(name, str(bad)) from None
    if len(message.fields) < len(layout):
        raise make_error(layout[len(message.fields)][0], "is missing or not in its place")
    if len(message.fields) > len(layout):
        extra = message.fields[len(layout)].name
        raise make_error(extra if extra in values else "message", "has a field twice, or a field that is not known")
    return kind(**values)
