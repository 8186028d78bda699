"""decode(encode(m)) == m for every kind; everything else is a typed error that names the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings

from algorithms.errors import LocalProtocolError, MalformedMessage, UnexpectedStep
from parties import codec
from parties.codec import decode, encode
from protos import payload_pb2 as pb
from tests.wire.kinds import MESSAGES, PLAIN, Everything, assert_same


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_what_is_decoded_is_what_was_encoded(message: Everything) -> None:
    assert_same(message, decode(encode(message), Everything, culprit="p1"))


def field(message: pb.Message, name: str) -> pb.Field:
    return next(f for f in message.fields if f.name == name)


Change = Callable[[pb.Message], object]


def on(name: str, change: Callable[[pb.Field], object]) -> Change:
    return lambda message: change(field(message, name))


def swap(message: pb.Message) -> None:
    first = pb.Field()
    first.CopyFrom(message.fields[0])
    message.fields[0].CopyFrom(message.fields[1])
    message.fields[1].CopyFrom(first)


def data(values: list[float] | list[int], dtype: str) -> bytes:
    return np.array(values, dtype).tobytes()


MISSING = "is missing or not in its place"
LENGTH = "has data of another length than its shape"
NOT_FINITE = "has a number that is not finite"
MALFORMED: dict[str, tuple[str, str, Change]] = {
    "shape too large": ("reals", LENGTH, on("reals", lambda f: f.real_tensor.shape.append(3))),
    "shape overflows": (
        "reals",
        LENGTH,
        on("reals", lambda f: f.real_tensor.MergeFrom(pb.RealTensor(shape=[2**32 - 1] * 2))),
    ),
    "shape of 5": ("reals", "has too many dimensions", on("reals", lambda f: f.real_tensor.shape.extend([1] * 3))),
    "shape of 0 and data": ("reals", LENGTH, on("reals", lambda f: f.real_tensor.shape.append(0))),
    "half a number": ("reals", LENGTH, on("reals", lambda f: setattr(f.real_tensor, "data", b"x" * 33))),
    "no data": ("integers", LENGTH, on("integers", lambda f: setattr(f.integer_tensor, "data", b""))),
    "nan": (
        "reals",
        NOT_FINITE,
        on("reals", lambda f: setattr(f.real_tensor, "data", data([1, 2, 3, float("nan")], "<f8"))),
    ),
    "infinity": (
        "reals",
        NOT_FINITE,
        on("reals", lambda f: setattr(f.real_tensor, "data", data([1, -float("inf"), 3, 4], "<f8"))),
    ),
    "width 4 for 8": (
        "integers",
        "is not of 8-byte integers",
        on("integers", lambda f: setattr(f.integer_tensor, "width_bytes", 4)),
    ),
    "width 8 for 4": (
        "int32s",
        "is not of 4-byte integers",
        on("int32s", lambda f: setattr(f.integer_tensor, "width_bytes", 8)),
    ),
    "width 0": (
        "int32s",
        "is not of 4-byte integers",
        on("int32s", lambda f: setattr(f.integer_tensor, "width_bytes", 0)),
    ),
    "share = p": (
        "shares",
        "has an element outside the field",
        on("shares", lambda f: setattr(f.share_vector, "data", data([0, 2**61 - 1], "<u8"))),
    ),
    "share of 7 bytes": (
        "shares",
        "is not of 8-byte elements",
        on("shares", lambda f: setattr(f.share_vector, "data", b"1234567")),
    ),
    "real is nan": ("real", "is not finite", on("real", lambda f: setattr(f, "real", float("nan")))),
    "real is infinite": ("real", "is not finite", on("real", lambda f: setattr(f, "real", float("inf")))),
    "parameter twice": (
        "parameters",
        "has a parameter without a value, or twice",
        on("parameters", lambda f: f.parameters.items.append(f.parameters.items[0])),
    ),
    "parameter without value": (
        "parameters",
        "has a parameter without a value, or twice",
        on("parameters", lambda f: f.parameters.items.append(pb.Parameter(name="new"))),
    ),
    "parameter is nan": (
        "parameters",
        NOT_FINITE,
        on("parameters", lambda f: f.parameters.items.append(pb.Parameter(name="n", real=float("nan")))),
    ),
    "another kind": ("text", "is not of kind text", on("text", lambda f: setattr(f, "integer", 1))),
    "kind of the same bytes": (
        "octets",
        "is not of kind octets",
        on("octets", lambda f: f.share_vector.MergeFrom(pb.ShareVector(data=b""))),
    ),
    "no value": ("integer", "is not of kind integer", on("integer", lambda f: f.ClearField("integer"))),
    "another name": ("text", MISSING, on("text", lambda f: setattr(f, "name", "txet"))),
    "no name": ("text", MISSING, on("text", lambda f: setattr(f, "name", ""))),
    "first missing": ("reals", MISSING, lambda m: m.fields.__delitem__(0)),
    "last missing": ("octets", MISSING, lambda m: m.fields.__delitem__(-1)),
    "none at all": ("reals", MISSING, lambda m: m.ClearField("fields")),
    "reordered": ("reals", MISSING, swap),
    "duplicated in place": ("integers", MISSING, lambda m: m.fields.insert(1, m.fields[0])),
    "duplicated at the end": (
        "text",
        "has a field twice, or one that it does not know",
        lambda m: m.fields.append(field(m, "text")),
    ),
    "unknown at the end": (
        "message",
        "has a field twice, or one that it does not know",
        lambda m: m.fields.append(pb.Field(name="__class__", text="x")),
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_field_is_named(case: str) -> None:
    name, reason, change = MALFORMED[case]
    message = pb.Message.FromString(encode(PLAIN))
    change(message)
    with pytest.raises(MalformedMessage) as caught:
        decode(message.SerializeToString(), Everything, culprit="p1", session="s")
    error = caught.value
    assert (error.culprit, error.session, error.step) == ("p1", "s", "Everything")
    assert (error.field, error.reason) == (name, reason)


@pytest.mark.parametrize("junk", [b"\xff" * 9, encode(PLAIN)[:-1], b"\x0a\x02\xff\xfe"])
def test_what_is_no_protobuf_is_malformed(junk: bytes) -> None:
    with pytest.raises(MalformedMessage, match="message: is not a protobuf message"):
        decode(junk, Everything, culprit="p1")


@pytest.mark.parametrize(
    ("kind", "got"),
    [("Hello", "Hello"), ("", "something unnamed"), ("a b", "something unnamed"), ("x" * 200, "x" * 64)],
)
def test_another_message_is_an_unexpected_step(kind: str, got: str) -> None:
    message = pb.Message.FromString(encode(PLAIN))
    message.kind = kind
    with pytest.raises(UnexpectedStep) as caught:
        decode(message.SerializeToString(), Everything, culprit="p1")
    assert (caught.value.culprit, caught.value.expected, caught.value.got) == ("p1", "Everything", got)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reals", np.array([1.0, np.nan])),
        ("reals", np.array(["secret"])),
        ("integers", np.array([1.5])),
        ("integers", np.array([2**63], np.uint64)),
        ("int32s", np.array([2**40])),
        ("shares", np.array([-1])),
        ("shares", np.array([2**61 - 1], np.uint64)),
        ("shares", np.zeros((2, 2), np.uint64)),
        ("texts", ("ok", 123456)),
        ("parameters", {"a": 2**63}),
        ("parameters", {"a": None}),
        ("text", b"\xff"),
        ("integer", 2**63),
        ("integer", 123456.5),
        ("real", float("inf")),
        ("real", "secret"),
        ("octets", "secret"),
    ],
)
def test_what_does_not_fit_its_kind_never_leaves(name: str, value: object) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode(dataclasses.replace(PLAIN, **{name: value}))
    assert str(caught.value).startswith(f"Everything.{name} ")
    assert "secret" not in str(caught.value)
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_only_message_classes_are_sent() -> None:
    @dataclass
    class Other:
        anything: list[int]

    with pytest.raises(LocalProtocolError, match="int is not a message class"):
        encode(3)
    with pytest.raises(LocalProtocolError, match=r"Other\.anything is not of a kind"):
        encode(Other([1]))


def test_every_kind_has_a_field_in_the_test() -> None:
    assert len(codec._KINDS) == len(dataclasses.fields(Everything))
