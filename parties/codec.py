"""Messages <-> protobuf: the one place that knows both.

A message class is a frozen dataclass whose fields are annotated with kinds of algorithms/messages.py. Everything read
from a peer is checked here before a protocol sees it: names, kinds, shapes, lengths, ranges.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np
from google.protobuf.message import DecodeError

from algorithms.errors import LocalProtocolError, MalformedMessage, UnexpectedStep
from algorithms.messages import ParameterValue
from protos import payload_pb2 as pb

MODULUS = 2**61 - 1
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 2**31

M = TypeVar("M")


class _Bad(Exception):
    """A field is not what its kind says; carries the reason, which names no value."""


# --- tensors ---------------------------------------------------------------------------------------


def _encode_real(value: Any) -> dict[str, Any]:
    array = np.asarray(value, "<f8")
    return {"real_tensor": pb.RealTensor(shape=array.shape, data=array.tobytes())}


def _decode_real(field: pb.Field) -> Any:
    array = _array(field.real_tensor.shape, field.real_tensor.data, "<f8").astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise _Bad("has a number that is not finite")
    return array


def _encode_integer(value: Any) -> dict[str, Any]:
    array = np.asarray(value, "<i8")
    return {"integer_tensor": pb.IntegerTensor(shape=array.shape, width_bytes=8, data=array.tobytes())}


def _encode_int32(value: Any) -> dict[str, Any]:
    array = np.asarray(value, "<i4")
    return {"integer_tensor": pb.IntegerTensor(shape=array.shape, width_bytes=4, data=array.tobytes())}


def _decode_integer(width_bytes: int) -> Callable[[pb.Field], Any]:
    def decode(field: pb.Field) -> Any:
        tensor = field.integer_tensor
        if tensor.width_bytes != width_bytes:
            raise _Bad(f"is not of {width_bytes}-byte integers")
        return _array(tensor.shape, tensor.data, f"<i{width_bytes}").astype(f"i{width_bytes}", copy=False)

    return decode


def _array(shape: Any, data: bytes, dtype: str) -> np.ndarray[Any, Any]:
    if len(shape) > MAX_DIMENSIONS:
        raise _Bad("has too many dimensions")
    elements = math.prod(shape)
    if elements > MAX_ELEMENTS or elements * np.dtype(dtype).itemsize != len(data):
        raise _Bad("has data of another length than its shape")
    return np.frombuffer(data, dtype).reshape(tuple(shape))


def _encode_shares(value: Any) -> dict[str, Any]:
    return {"share_vector": pb.ShareVector(data=np.asarray(value, "<u8").tobytes())}


def _decode_shares(field: pb.Field) -> Any:
    data = field.share_vector.data
    if len(data) % 8:
        raise _Bad("is not of 8-byte elements")
    shares = np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
    if shares.size and int(shares.max()) >= MODULUS:
        raise _Bad("has an element outside the field")
    return shares


# --- parameters ------------------------------------------------------------------------------------


def parameters_to_pb(parameters: dict[str, ParameterValue] | Any) -> pb.Parameters:
    return pb.Parameters(items=[_parameter(name, value) for name, value in parameters.items()])


def _parameter(name: str, value: ParameterValue) -> pb.Parameter:
    if isinstance(value, bool):
        return pb.Parameter(name=name, flag=value)
    if isinstance(value, int):
        return pb.Parameter(name=name, integer=value)
    if isinstance(value, float):
        return pb.Parameter(name=name, real=value)
    if isinstance(value, str):
        return pb.Parameter(name=name, text=value)
    return pb.Parameter(name=name, texts=pb.TextList(items=value))


def parameters_from_pb(parameters: pb.Parameters, *, culprit: str, step: str) -> dict[str, ParameterValue]:
    try:
        return _parameters(parameters)
    except _Bad as bad:
        raise MalformedMessage(culprit=culprit, field="parameters", reason=str(bad), step=step) from None


def _parameters(parameters: pb.Parameters) -> dict[str, ParameterValue]:
    values: dict[str, ParameterValue] = {}
    for item in parameters.items:
        which = item.WhichOneof("value")
        if which is None or item.name in values:
            raise _Bad("has a parameter without a value, or twice")
        value = getattr(item, which)
        if which == "real" and not math.isfinite(value):
            raise _Bad("has a number that is not finite")
        values[item.name] = tuple(value.items) if which == "texts" else value
    return values


# --- the table of kinds ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kind:
    field: str  # of pb.Field
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[pb.Field], Any]


def _decode_finite(field: pb.Field) -> float:
    if not math.isfinite(field.real):
        raise _Bad("is not finite")
    return float(field.real)


_KINDS: dict[str, _Kind] = {
    "real_tensor": _Kind("real_tensor", _encode_real, _decode_real),
    "integer_tensor": _Kind("integer_tensor", _encode_integer, _decode_integer(8)),
    "int32_tensor": _Kind("integer_tensor", _encode_int32, _decode_integer(4)),
    "share_vector": _Kind("share_vector", _encode_shares, _decode_shares),
    "texts": _Kind("texts", lambda v: {"texts": pb.TextList(items=v)}, lambda f: tuple(f.texts.items)),
    "parameters": _Kind(
        "parameters", lambda v: {"parameters": parameters_to_pb(v)}, lambda f: _parameters(f.parameters)
    ),
    "text": _Kind("text", lambda v: {"text": v}, lambda f: f.text),
    "integer": _Kind("integer", lambda v: {"integer": v}, lambda f: f.integer),
    "real": _Kind("real", lambda v: {"real": v}, _decode_finite),
    "octets": _Kind("octets", lambda v: {"octets": v}, lambda f: f.octets),
}


@cache
def _layout(message_class: Any) -> tuple[tuple[str, _Kind], ...]:
    if not dataclasses.is_dataclass(message_class):
        raise LocalProtocolError(f"{message_class.__name__} is not a message class")
    hints = get_type_hints(message_class, include_extras=True)
    return tuple((f.name, _KINDS[hints[f.name].__metadata__[0]]) for f in dataclasses.fields(message_class))


# --- whole messages --------------------------------------------------------------------------------


def encode(message: object) -> bytes:
    fields = [
        pb.Field(name=name, **kind.encode(getattr(message, name))) for name, kind in _layout(type(message))
    ]
    return pb.Message(kind=type(message).__name__, fields=fields).SerializeToString()


def decode(data: bytes, kind: type[M], *, culprit: str, session: str = "") -> M:
    """Raises:
    MalformedMessage: names the field and the reason, never a value.
    UnexpectedStep: a message of another class.
    """

    def malformed(field: str, reason: str) -> MalformedMessage:
        return MalformedMessage(
            culprit=culprit, field=field, reason=reason, session=session, step=kind.__name__
        )

    message = pb.Message()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise malformed("message", "is not a protobuf message") from None
    if message.kind != kind.__name__:
        got = message.kind[:64] if message.kind.isidentifier() else "something unnamed"
        raise UnexpectedStep(
            culprit=culprit, expected=kind.__name__, got=got, session=session, step=kind.__name__
        )
    layout = _layout(kind)
    if len(message.fields) != len(layout):
        raise malformed("message", "has another number of fields")
    values: dict[str, Any] = {}
    for field, (name, field_kind) in zip(message.fields, layout, strict=True):
        if field.name != name or field.WhichOneof("value") != field_kind.field:
            raise malformed(name, "is missing or of another kind")
        try:
            values[name] = field_kind.decode(field)
        except _Bad as bad:
            raise malformed(name, str(bad)) from None
    return kind(**values)
