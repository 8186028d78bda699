"""decode(encode(m)) == m for every kind; everything else is a typed error that names the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, UnexpectedStep
from blindfit.algorithms.messages import CiphertextVector
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, ReceivedCiphertext, randomize
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.threshold import deal
from blindfit.parties.wire import codec
from blindfit.parties.wire.codec import decode, encode
from blindfit.protos import payload_pb2 as pb
from tests.each_case import each_case
from tests.wire.kinds import MESSAGES, PLAIN, Encrypted, Everything, assert_same, encrypted, vector


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_what_is_decoded_is_what_was_encoded(message: Everything) -> None:
    assert_same(message, decode(encode(message), Everything, culprit="p1"))


@settings(max_examples=30, deadline=None)
@given(integers=st.lists(st.integers(-(2**62), 2**62), max_size=4))
def test_what_is_opened_is_what_was_encrypted(insecure_test_key: PrivateKey, integers: list[int]) -> None:
    sent = encrypted(insecure_test_key, integers)
    received = decode(encode(sent), Encrypted, culprit="p1")
    assert_same(sent, received)
    opened = received.ciphertexts.open(received.key, length=len(integers), culprit="p1")
    assert type(opened) is Ciphertext  # not to be sent again as it is
    assert insecure_test_key.decrypt_residues(opened.residues) == integers
    received.partial.open(received.key, length=len(integers), culprit="p1")


def test_what_was_received_does_not_show(insecure_test_key: PrivateKey) -> None:
    received = decode(encode(encrypted(insecure_test_key)), Encrypted, culprit="p1")
    for shown in (repr(received), str(received)):
        for value in (received.ciphertexts, received.partial):
            assert repr(value.data[:8])[2:-1] not in shown
            assert value.data[:8].hex() not in shown
            assert str(int.from_bytes(value.data[: value.width_bytes], "big")) not in shown


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
BITS = "has data of another length than its bits"
POINTS = "has elements that are not of 1 to 1024 bytes"
PART = "has data that are not a whole number of elements"
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
    "a byte too few": ("flags", BITS, on("flags", lambda f: setattr(f.bits, "data", b"\xff"))),
    "a byte too many": ("flags", BITS, on("flags", lambda f: setattr(f.bits, "data", b"\xff\x60\x00"))),
    "no bits and data": ("flags", BITS, on("flags", lambda f: setattr(f.bits, "length", 0))),
    "bits overflow": (
        "flags",
        f"has more than {2**28} bits",
        on("flags", lambda f: setattr(f.bits, "length", 2**64 - 1)),
    ),
    "a bit past the last": (
        "flags",
        "has a bit set past its last",
        on("flags", lambda f: setattr(f.bits, "length", 10)),
    ),
    "points of 0 bytes": ("points", POINTS, on("points", lambda f: setattr(f.octet_vector, "width_bytes", 0))),
    "points of 1025 bytes": ("points", POINTS, on("points", lambda f: setattr(f.octet_vector, "width_bytes", 1025))),
    "half a point": ("points", PART, on("points", lambda f: setattr(f.octet_vector, "width_bytes", 4))),
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
    "last missing": ("points", MISSING, lambda m: m.fields.__delitem__(-1)),
    "none at all": ("reals", MISSING, lambda m: m.ClearField("fields")),
    "reordered": ("reals", MISSING, swap),
    "duplicated in place": ("integers", MISSING, lambda m: m.fields.insert(1, m.fields[0])),
    "duplicated at the end": (
        "text",
        "has a field twice, or a field that is not known",
        lambda m: m.fields.append(field(m, "text")),
    ),
    "unknown at the end": (
        "message",
        "has a field twice, or a field that is not known",
        lambda m: m.fields.append(pb.Field(name="__class__", text="x")),
    ),
}


def check_named(sent: Everything | Encrypted, malformed: tuple[str, str, Change]) -> MalformedMessage:
    name, reason, change = malformed
    message = pb.Message.FromString(encode(sent))
    change(message)
    with pytest.raises(MalformedMessage) as caught:
        decode(message.SerializeToString(), type(sent), culprit="p1", session="s")
    error = caught.value
    assert (error.culprit, error.session, error.step) == ("p1", "s", type(sent).__name__)
    assert (error.field, error.reason) == (name, reason)
    return error


@each_case("case", MALFORMED)
def test_a_malformed_field_is_named(case: str) -> None:
    check_named(PLAIN, MALFORMED[case])


@each_case("junk", [b"\xff" * 9, encode(PLAIN)[:-1], b"\x0a\x02\xff\xfe"])
def test_what_is_no_protobuf_is_malformed(junk: bytes) -> None:
    with pytest.raises(MalformedMessage, match="message: is not a protobuf message"):
        decode(junk, Everything, culprit="p1")


@each_case(
    ("kind", "got"),
    [("Hello", "Hello"), ("", "something unnamed"), ("a b", "something unnamed"), ("x" * 200, "x" * 64)],
)
def test_another_message_is_an_unexpected_step(kind: str, got: str) -> None:
    message = pb.Message.FromString(encode(PLAIN))
    message.kind = kind
    with pytest.raises(UnexpectedStep) as caught:
        decode(message.SerializeToString(), Everything, culprit="p1")
    assert (caught.value.culprit, caught.value.expected, caught.value.got) == ("p1", "Everything", got)


@each_case(
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
        ("flags", np.array([0, 1])),
        ("flags", np.array(["secret"])),
        ("flags", np.zeros((2, 2), np.bool_)),
        ("points", np.array([[123456]])),
        ("points", np.zeros(3, np.uint8)),
        ("points", np.zeros((2, 0), np.uint8)),
        ("points", np.zeros((1, 1025), np.uint8)),
        ("points", [b"secret"]),
    ],
)
def test_what_does_not_fit_its_kind_never_leaves(name: str, value: object) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode(dataclasses.replace(PLAIN, **{name: value}))
    assert str(caught.value).startswith(f"Everything.{name} ")
    assert "secret" not in str(caught.value)
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_more_bits_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = encode(PLAIN)
    monkeypatch.setattr(codec, "MAX_BITS", 10)
    with pytest.raises(LocalProtocolError, match=r"Everything\.flags has more than 10 bits"):
        encode(PLAIN)
    with pytest.raises(MalformedMessage, match="flags: has more than 10 bits"):
        decode(sent, Everything, culprit="p1")


# --- what travels under a key ------------------------------------------------------------------------

WIDTH = "has elements that are not of 64 to 2048 bytes"
NO_KEY = "is not a public key"


def on_ciphertexts(change: Callable[[pb.CiphertextVector], object]) -> Change:
    return on("ciphertexts", lambda f: change(f.ciphertext_vector))


def on_partial(change: Callable[[pb.PartialDecryption], object]) -> Change:
    return on("partial", lambda f: change(f.partial_decryption))


def on_key(change: Callable[[bytes], bytes]) -> Change:
    return on("key", lambda f: setattr(f.paillier_public_key, "data", change(f.paillier_public_key.data)))


MALFORMED_ENCRYPTED: dict[str, tuple[str, str, Change]] = {
    "ciphertexts of 0 bytes": ("ciphertexts", WIDTH, on_ciphertexts(lambda v: setattr(v, "width_bytes", 0))),
    "ciphertexts of 63 bytes": ("ciphertexts", WIDTH, on_ciphertexts(lambda v: setattr(v, "width_bytes", 63))),
    "ciphertexts of 2049 bytes": ("ciphertexts", WIDTH, on_ciphertexts(lambda v: setattr(v, "width_bytes", 2049))),
    "ciphertexts of 4 GiB": ("ciphertexts", WIDTH, on_ciphertexts(lambda v: setattr(v, "width_bytes", 2**32 - 1))),
    "no width and no data": ("ciphertexts", WIDTH, on_ciphertexts(lambda v: v.Clear())),
    "half a ciphertext": ("ciphertexts", PART, on_ciphertexts(lambda v: setattr(v, "data", v.data[:-1]))),
    "another width": ("ciphertexts", PART, on_ciphertexts(lambda v: setattr(v, "width_bytes", 100))),
    "partial of 63 bytes": ("partial", WIDTH, on_partial(lambda v: setattr(v, "width_bytes", 63))),
    "partial of 2049 bytes": ("partial", WIDTH, on_partial(lambda v: setattr(v, "width_bytes", 2049))),
    "half a partial decryption": ("partial", PART, on_partial(lambda v: setattr(v, "data", v.data + b"x"))),
    "ciphertexts for a partial decryption": (
        "partial",
        "is not of kind partial_decryption",
        on("partial", lambda f: f.ciphertext_vector.MergeFrom(pb.CiphertextVector(width_bytes=128))),
    ),
    "octets for ciphertexts": (
        "ciphertexts",
        "is not of kind ciphertext_vector",
        on("ciphertexts", lambda f: setattr(f, "octets", b"x" * 128)),
    ),
    "octet vector for ciphertexts": (
        "ciphertexts",
        "is not of kind ciphertext_vector",
        on("ciphertexts", lambda f: f.octet_vector.MergeFrom(pb.OctetVector(width_bytes=128))),
    ),
    "no key": ("key", NO_KEY, on_key(lambda data: b"")),
    "half a key": ("key", NO_KEY, on_key(lambda data: data[: len(data) // 2])),
    "a key and more": ("key", NO_KEY, on_key(lambda data: data + b"\x00")),
    "a key of another kind": ("key", NO_KEY, on_key(lambda data: data.replace(b"public", b"secret"))),
    "a key too long": ("key", "is longer than 65536 bytes", on_key(lambda data: data + b"x" * 2**16)),
}


@each_case("case", MALFORMED_ENCRYPTED)
def test_a_malformed_field_under_a_key_is_named(insecure_test_key: PrivateKey, case: str) -> None:
    error = check_named(encrypted(insecure_test_key), MALFORMED_ENCRYPTED[case])
    assert error.__cause__ is None


@pytest.mark.parametrize("name", ["ciphertexts", "partial"])
def test_more_elements_than_the_limit_are_refused(
    insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    few, many = encrypted(insecure_test_key, (1, 2)), encrypted(insecure_test_key, (1, 2, 3))
    mixed = dataclasses.replace(few, **{name: getattr(many, name)})
    sent = encode(mixed)
    monkeypatch.setattr(codec, "MAX_CIPHERTEXTS", 2)
    decode(encode(few), Encrypted, culprit="p1")
    with pytest.raises(LocalProtocolError, match=rf"Encrypted\.{name} has more than 2 elements"):
        encode(mixed)
    with pytest.raises(MalformedMessage, match=f"{name}: has more than 2 elements"):
        decode(sent, Encrypted, culprit="p1")


SECRET = 123456
NOT_RANDOMISED = "was not re-randomised"


class Derived(FreshCiphertext):
    """A class that declares itself fresh."""

    def __init__(self, public_key: PublicKey, residues: Residues) -> None:
        Ciphertext.__init__(self, public_key, residues)


def plain(key: PrivateKey) -> Ciphertext:
    """1 + m n, as no protocol may send it."""
    return Ciphertext(key.public_key, key.public_key.kernel.ones_plus([SECRET]))


def received(key: PrivateKey) -> Encrypted:
    return decode(encode(encrypted(key, (SECRET,))), Encrypted, culprit="p1")


NEVER_SENT: dict[str, tuple[str, str, Callable[[PrivateKey], object]]] = {
    "a sum": ("ciphertexts", NOT_RANDOMISED, lambda key: (vector(key, [SECRET]) + vector(key, [1])).ciphertext),
    "a negative": ("ciphertexts", NOT_RANDOMISED, lambda key: (-vector(key, [SECRET])).ciphertext),
    "a slice": ("ciphertexts", NOT_RANDOMISED, lambda key: vector(key, [SECRET, 1])[:1].ciphertext),
    "one without randomiser": ("ciphertexts", NOT_RANDOMISED, plain),
    "a fresh one under its base class": (
        "ciphertexts",
        NOT_RANDOMISED,
        lambda key: Ciphertext(key.public_key, vector(key, [SECRET]).residues),
    ),
    "a derived class": ("ciphertexts", NOT_RANDOMISED, lambda key: Derived(key.public_key, plain(key).residues)),
    "a sum as a vector": ("ciphertexts", NOT_RANDOMISED, lambda key: vector(key, [SECRET]) + vector(key, [1])),
    "a vector": ("ciphertexts", NOT_RANDOMISED, lambda key: vector(key, [SECRET])),
    "a peer's": ("ciphertexts", NOT_RANDOMISED, lambda key: received(key).ciphertexts),
    "a peer's, opened": (
        "ciphertexts",
        NOT_RANDOMISED,
        lambda key: received(key).ciphertexts.open(key.public_key, length=1, culprit="p1"),
    ),
    "plaintexts": ("ciphertexts", NOT_RANDOMISED, lambda key: np.array([SECRET])),
    "a partial decryption": ("ciphertexts", NOT_RANDOMISED, lambda key: encrypted(key).partial),
    "a private key": ("key", "is not a public key", lambda key: key),
    "a private key's bytes": ("key", "is not a public key", lambda key: key.to_bytes()),
    "a share of the key": ("partial", "is not a PartialDecryption", lambda key: deal(key, 2)[0]),
    "ciphertexts": ("partial", "is not a PartialDecryption", lambda key: vector(key, [SECRET]).ciphertext),
    "a peer's partial decryption": ("partial", "is not a PartialDecryption", lambda key: received(key).partial),
}


@each_case("case", NEVER_SENT)
def test_only_what_was_made_to_be_sent_is_sent(insecure_test_key: PrivateKey, case: str) -> None:
    name, reason, make = NEVER_SENT[case]
    message = dataclasses.replace(encrypted(insecure_test_key), **{name: make(insecure_test_key)})
    with pytest.raises(LocalProtocolError) as caught:
        encode(message)
    assert str(caught.value).startswith(f"Encrypted.{name} {reason}")
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None


class Ones:
    """Randomisers that hide nothing."""

    def __init__(self, public_key: PublicKey) -> None:
        self.public_key = public_key

    def draw(self, count: int) -> Residues:
        return self.public_key.kernel.ones_plus([0] * count)


def test_a_ciphertext_of_1_mod_n_is_not_sent_even_as_a_fresh_one(insecure_test_key: PrivateKey) -> None:
    message = encrypted(insecure_test_key)
    fresh = randomize(plain(insecure_test_key), Ones(insecure_test_key.public_key))
    with pytest.raises(LocalProtocolError, match="has no randomiser") as caught:
        encode(dataclasses.replace(message, ciphertexts=fresh))
    assert str(SECRET) not in str(caught.value)


def test_a_result_fits_in_no_message_by_its_type() -> None:
    allowed = get_args(get_args(CiphertextVector)[0])
    assert allowed == (FreshCiphertext, ReceivedCiphertext)
    assert not issubclass(Ciphertext, allowed)


def test_only_message_classes_are_sent() -> None:
    @dataclass
    class Other:
        anything: list[int]

    with pytest.raises(LocalProtocolError, match="int is not a message class"):
        encode(3)
    with pytest.raises(LocalProtocolError, match=r"Other\.anything is not of a kind"):
        encode(Other([1]))


def test_every_kind_has_a_field_in_the_test() -> None:
    assert len(codec._KINDS) == len(dataclasses.fields(Everything)) + len(dataclasses.fields(Encrypted))
