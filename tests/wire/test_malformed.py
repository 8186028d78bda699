"""A hundred thousand malformed messages, at every level that reads a peer's bytes, cause only typed errors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.messages import PublicKeyKind
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.protocols import handshake, walr
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.wire import codec, error_codes
from blindfit.parties.wire.frames import Account, Inbox
from blindfit.parties.wire.limits import Limits
from blindfit.protos import exchange_pb2, measurement_pb2
from blindfit.protos import payload_pb2 as pb
from tests.wire.kinds import PLAIN, Encrypted, Everything, encrypted
from tests.wire.opened import OPEN

Reader = Callable[[bytes], object]
Target = tuple[Reader, bytes]

LIMITS = Limits(max_message_bytes=4096, chunk_bytes=1024, window_bytes=65536, max_typed_message_bytes=65536)
ROWS = walr.WeightRows(("a", "b"), np.arange(6, dtype=np.int32).reshape(2, 3))
ANSWER = walr.NoisySum(
    sums=np.array([1, -2, 3]),
    noise_std=2.0,
    sensitivity=1.0,
    event="e",
    unit="u",
    neighbours="n",
    rows_kept=10,
    rows_scaled=0,
    min_rows=1,
    max_epsilon=1.0,
    max_delta=1e-5,
    budget_epsilon=3.0,
    budget_delta=1e-5,
    entry="{}",
    receipt=b"{}",
    receipt_signature=b"\x02" * 64,
)
HELLO = handshake.step_1_hello("walr", "active", {"proposer": "boss"}, PLAIN.parameters)


@dataclass(frozen=True, slots=True)
class KeyOnly:
    key: PublicKeyKind


def message(kind: type) -> Reader:
    return lambda data: codec.decode(data, kind, culprit="p1")


def greet(data: bytes) -> None:
    theirs = codec.decode(data, handshake.Hello, culprit="p1")
    handshake.step_2_compare(HELLO, theirs, peer="p1", peer_role="active")


def frames(data: bytes) -> None:
    """Accept a stream that begins well, and goes on with this frame."""
    inbox = Inbox("s", "p0", LIMITS, Account("p0", LIMITS.peer_bytes))
    inbox.accept(exchange_pb2.Frame(session="s", sender="p0", hello=exchange_pb2.Hello(outbox="outbox")))
    inbox.accept(exchange_pb2.Frame.FromString(data))


def ciphertexts(public_key: PublicKey) -> Reader:
    """Decode by the codec, and do what a protocol does first with the result."""

    def read(data: bytes) -> None:
        received = codec.decode(data, Encrypted, culprit="p1")
        received.ciphertexts.open(public_key, length=3, culprit="p1")
        received.partial.open(public_key, length=3, culprit="p1")

    return read


def public_key(data: bytes) -> None:
    """Decode the key's own bytes, in a message that is whole."""
    field = pb.Field(name="key", paillier_public_key=pb.PaillierPublicKey(data=data))
    codec.decode(pb.Message(kind="KeyOnly", fields=[field]).SerializeToString(), KeyOnly, culprit="p1")


def inside(read: Reader, valid: bytes, name: str, number: str) -> Target:
    """Return the number and the data of one field, malformed within a message that is whole."""

    def value_of(whole: pb.Message) -> Any:
        found = next(field for field in whole.fields if field.name == name)
        return getattr(found, found.WhichOneof("value"))

    def read_inside(octets: bytes) -> None:
        whole = pb.Message.FromString(valid)
        setattr(value_of(whole), number, int.from_bytes(octets[:4], "little"))
        value_of(whole).data = octets[4:]
        read(whole.SerializeToString())

    value = value_of(pb.Message.FromString(valid))
    return read_inside, getattr(value, number).to_bytes(4, "little") + value.data


def request(kind: type) -> Reader:
    return lambda data: measurement_codec.message_from_pb(
        measurement_pb2.AggregateRequest.FromString(data), kind, culprit="p1"
    )


def response(kind: type) -> Reader:
    return lambda data: measurement_codec.message_from_pb(
        measurement_pb2.AggregateResponse.FromString(data), kind, culprit="p1"
    )


def status(data: bytes) -> None:
    error = error_codes.error_of(Status.FromString(data), peer="p1")
    assert isinstance(error, BlindfitError)


FRAME = exchange_pb2.Frame(
    session="s", sender="p0", sequence=1, step="Letter", chunk=exchange_pb2.Chunk(data=b"x" * 50, last=True)
)
ABORT = exchange_pb2.Frame(session="s", sender="p0", sequence=1, abort=exchange_pb2.Abort(code=6, step="Letter"))
TARGETS: list[Target] = [
    (message(Everything), codec.encode(PLAIN)),
    (greet, codec.encode(HELLO)),
    (message(walr.WeightRows), codec.encode(ROWS)),
    (frames, FRAME.SerializeToString()),
    (frames, ABORT.SerializeToString()),
    (request(walr.AggregateOpen), measurement_codec.request_to_pb(OPEN).SerializeToString()),
    (request(walr.WeightRows), measurement_codec.request_to_pb(ROWS).SerializeToString()),
    (request(walr.RowsEnd), measurement_codec.request_to_pb(walr.RowsEnd()).SerializeToString()),
    (response(walr.NoisySum), measurement_codec.response_to_pb(ANSWER).SerializeToString()),
    (response(walr.RowsKept), measurement_codec.response_to_pb(walr.RowsKept(b"\xff")).SerializeToString()),
    (
        status,
        error_codes.status_of(
            error_codes.e.BudgetExhausted(population="p", spent=1.0, budget=2.0, requested=3.0)
        ).SerializeToString(),
    ),
]


@pytest.fixture(scope="module")
def targets(insecure_test_key: PrivateKey) -> list[Target]:
    everything, under_a_key = codec.encode(PLAIN), codec.encode(encrypted(insecure_test_key))
    read = ciphertexts(insecure_test_key.public_key)
    return [
        *TARGETS,
        (read, under_a_key),
        inside(read, under_a_key, "ciphertexts", "width_bytes"),
        inside(read, under_a_key, "partial", "width_bytes"),
        inside(message(Everything), everything, "flags", "length"),
        inside(message(Everything), everything, "points", "width_bytes"),
        (public_key, insecure_test_key.public_key.to_bytes()),
    ]


def mutated(dice: random.Random, valid: bytes) -> bytes:
    """Return the bytes with some flipped, cut out, doubled or added, or all random."""

    def below(bound: int) -> int:
        return int(dice.random() * bound)  # a third of the test was `randrange`

    how = below(6)
    if how == 0:
        return dice.randbytes(below(200))
    data = bytearray(valid)
    for _ in range((1, 1, 2, 8)[below(4)]):
        one, other = below(len(data) + 1), below(len(data) + 1)
        at, to = min(one, other), max(one, other)
        if how == 1:
            del data[at : min(to, at + 16)]
        elif how == 2:
            data[at:at] = data[at:to]
        elif how == 3:
            data[at:at] = dice.randbytes(1 + below(8))
        elif data:
            data[min(at, len(data) - 1)] = (0, 0x7F, 0x80, 0xFF, below(256))[below(5)]
    return bytes(data[:4096])


def storm(targets: list[Target], count: int, seed: int) -> Counter[str]:
    dice, seen = random.Random(seed), Counter[str]()
    for _ in range(count):
        read, valid = dice.choice(targets)
        try:
            read(mutated(dice, valid))
            seen["accepted"] += 1
        except BlindfitError as error:
            seen[type(error).__name__ if len(str(error)) < 1000 else "too long a text"] += 1
        except DecodeError:  # gRPC's parsers; the guard makes it a MalformedMessage, test_guard.py
            seen["no protobuf"] += 1
    return seen


def check(targets: list[Target], count: int) -> None:
    storm(targets, 2000, 0)  # objects that are made once: caches, pools
    process = psutil.Process()
    before = process.memory_info().rss
    seen = storm(targets, count, 1)
    assert process.memory_info().rss - before < 50 * 2**20
    assert seen.total() == count
    assert seen["MalformedMessage"] > count // 10, seen  # most reach the checks, not only the parser
    assert seen["UnexpectedStep"] > 0
    assert "too long a text" not in seen


def test_what_the_storm_starts_from_is_accepted(targets: list[Target]) -> None:
    for read, valid in targets:
        read(valid)


def test_a_hundred_thousand_malformed_messages(targets: list[Target]) -> None:
    check(targets, 100_000)


@pytest.mark.soak
def test_a_million_malformed_messages(targets: list[Target]) -> None:
    check(targets, 1_000_000)
