"""Mistakes of a peer in a Taylor training: each raises the exact error, and names the culprit."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, LocalProtocolError, MalformedMessage, PeerTimeout, UnexpectedStep
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.keys import PrivateKey, insecure_private_key
from blindfit.algorithms.paillier.packing import encrypt_packed
from blindfit.algorithms.paillier.vectors import encrypt
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor.messages import (
    ChainedResiduals,
    HoldOutLabels,
    HoldOutLoss,
    MaskedGradient,
    NoisyGradient,
    PartialLoss,
    Residuals,
    RowFactors,
    TaylorKey,
    Verdict,
)
from blindfit.parties.wire.channel import Wire
from tests.each_case import each_case
from tests.paillier.tools import seeded
from tests.taylor.seats import KEY_NODE, Case, case_of, forged, randomisers, replaced

ACTIVE, MIDDLE, LAST = "bank", "shop", "post"

# Every message with ciphertexts: who sends it, and its fields.
CIPHERTEXTS: list[tuple[str, type[Any], str]] = [
    (ACTIVE, RowFactors, "factors"),
    (ACTIVE, HoldOutLabels, "labels"),
    (ACTIVE, ChainedResiduals, "residuals"),
    (MIDDLE, ChainedResiduals, "residuals"),
    (LAST, Residuals, "residuals"),
    (ACTIVE, MaskedGradient, "gradient"),
    (MIDDLE, MaskedGradient, "gradient"),
    (LAST, MaskedGradient, "gradient"),
    (ACTIVE, PartialLoss, "scores"),
    (ACTIVE, PartialLoss, "loss"),
    (MIDDLE, PartialLoss, "scores"),
    (LAST, HoldOutLoss, "loss"),
]
every_ciphertext = each_case(
    ("sender", "kind", "field"), CIPHERTEXTS, ids=[f"{s}-{k.__name__}-{f}" for s, k, f in CIPHERTEXTS]
)


def three(key: PrivateKey, **changes: Any) -> Case:
    chosen = {"n_batches": 1, "batch_rows": 8, "held_out_rows": 4, "epochs": 1, "class_weights": True, **changes}
    return case_of(key, n_passive=2, **chosen)


def fails(case: Case, wire: Wire, error: type[Exception]) -> Any:
    with pytest.raises(error) as refused:
        case.run(case.seats(), case.key_seat(), case.network(wire=wire))
    assert type(refused.value) is error
    return refused.value


# --- ciphertexts ----------------------------------------------------------------------------------------------


def invalid(key: PrivateKey) -> dict[str, Callable[[bytes, int], bytes]]:
    n = key.public_key.n

    def first(integer: int) -> Callable[[bytes, int], bytes]:
        return lambda data, width: integer.to_bytes(width, "big") + data[width:]

    return {
        "0": first(0),
        "n": first(n),
        "a multiple of p": first(key.p * 12345),
        "n^2": first(n * n),
        "1 + n^2": first(n * n + 1),
        "the last is 0": lambda data, width: data[:-width] + bytes(width),
    }


@every_ciphertext
@pytest.mark.parametrize("fault", ["0", "n", "a multiple of p", "n^2", "1 + n^2", "the last is 0"])
def test_an_invalid_ciphertext_is_refused(
    insecure_test_key: PrivateKey, sender: str, kind: type[Any], field: str, fault: str
) -> None:
    wire = forged(sender, kind, field, invalid(insecure_test_key)[fault])
    error = fails(three(insecure_test_key), wire, MalformedMessage)
    assert (error.culprit, error.reason) == (sender, "a ciphertext is invalid")


LENGTHS: dict[str, Callable[[bytes, int], bytes]] = {
    "one too few": lambda data, width: data[:-width],
    "one too many": lambda data, width: data + data[:width],
    "none": lambda data, width: b"",
}


@every_ciphertext
@pytest.mark.parametrize("fault", LENGTHS)
def test_a_vector_of_another_length_is_refused(
    insecure_test_key: PrivateKey, sender: str, kind: type[Any], field: str, fault: str
) -> None:
    error = fails(three(insecure_test_key), forged(sender, kind, field, LENGTHS[fault]), MalformedMessage)
    assert (error.culprit, error.reason) == (sender, "is of another key or length")


@pytest.fixture(scope="module")
def other_key() -> PrivateKey:
    return insecure_private_key(640, uniform=random.Random(1).randrange)


@every_ciphertext
def test_ciphertexts_of_a_key_of_another_size_are_refused(
    insecure_test_key: PrivateKey, other_key: PrivateKey, sender: str, kind: type[Any], field: str
) -> None:
    case = three(insecure_test_key)
    foreign = encrypt(Fixed(np.zeros(1, np.int64), 0), randomisers(other_key, 1)).ciphertext
    wire = replaced(sender, kind, lambda _: kind(**dict.fromkeys(kind.__dataclass_fields__, foreign)))
    error = fails(case, wire, MalformedMessage)
    assert (error.culprit, error.reason) == (sender, "is of another key or length")


def test_seats_of_another_key_than_the_key_nodes_are_refused(
    insecure_test_key: PrivateKey, other_key: PrivateKey
) -> None:
    case = three(insecure_test_key)
    key_seat = replace(case.key_seat(), private_key=other_key)
    with pytest.raises(MalformedMessage) as refused:
        case.run(case.seats(), key_seat)
    assert (refused.value.culprit, refused.value.reason) == (ACTIVE, "is of another key or length")


def key_of(bits: int) -> PrivateKey:
    return insecure_private_key(bits, uniform=seeded(2))


def test_a_bad_public_key_is_refused_before_anything_is_encrypted(insecure_test_key: PrivateKey) -> None:
    case, key = three(insecure_test_key), insecure_test_key.public_key
    for wrong, reason in [
        (key_of(448).public_key, "448 bits"),
        (replace(key, n=key.n + 1), "even"),
        (replace(key, hs=1), "hs"),
        (replace(key, hs=None), "hs"),
    ]:
        network = case.network(wire=replaced(KEY_NODE, TaylorKey, lambda _, wrong=wrong: TaylorKey(wrong)))
        with pytest.raises(MalformedMessage) as refused:
            case.run(case.seats(), case.key_seat(), network)
        assert (refused.value.culprit, refused.value.field) == (KEY_NODE, "public_key")
        assert reason in refused.value.reason
        assert {step for _, _, step in network.sent} == {"TaylorKey"}


# --- plaintexts that no honest party makes ---------------------------------------------------------------------


@each_case("sender", [ACTIVE, MIDDLE, LAST])
@each_case("what", ["past its bound", "past the last slot"])
def test_a_gradient_that_is_too_large_is_refused_by_the_key_node(
    insecure_test_key: PrivateKey, sender: str, what: str
) -> None:
    case = three(insecure_test_key)
    grid, rows, width = case.grid, len(case.batch), case.parameters.columns_of(sender)
    slot_bits, source = grid.slot_bits(rows), randomisers(case.key, 5)
    if what == "past its bound":
        values = [0] * (width - 1) + [grid.gradient_bound(rows) + grid.hiding_bound(rows) + 1]
        sent = encrypt_packed(Fixed(np.array(values, dtype=object), 0), slot_bits, source).ciphertext
    else:
        sent = encrypt(Fixed(np.array([1 << (slot_bits * width + 10)], dtype=object), 0), source).ciphertext
    error = fails(case, replaced(sender, MaskedGradient, lambda _: MaskedGradient(sent)), MalformedMessage)
    assert (error.culprit, error.field) == (sender, "gradient")


def test_a_loss_that_is_too_large_is_refused_by_the_key_node(insecure_test_key: PrivateKey) -> None:
    case = three(insecure_test_key)
    steps = np.array([case.grid.loss_bound(len(case.held_out)) + 1], dtype=object)
    loss = encrypt(Fixed(steps, case.grid.loss_bits), randomisers(case.key, 5)).ciphertext
    error = fails(case, replaced(LAST, HoldOutLoss, lambda _: HoldOutLoss(loss)), MalformedMessage)
    assert (error.culprit, error.field) == (LAST, "loss")


# --- the key node ------------------------------------------------------------------------------------------------


def shifted(by: int) -> Callable[[NoisyGradient], NoisyGradient]:
    def change(answer: NoisyGradient) -> NoisyGradient:
        values = taylor.steps.integers_of(answer.values)
        return NoisyGradient(taylor.steps.octets_of([*values[:-1], values[-1] + by], answer.values.shape[1] + 8))

    return change


ANSWERS: dict[str, Callable[[NoisyGradient], NoisyGradient]] = {
    "far too large": shifted(2**100),
    "far too small": shifted(-(2**100)),
    "without the mask": lambda answer: NoisyGradient(np.zeros_like(answer.values)),
    "a column too few": lambda answer: NoisyGradient(answer.values[:-1]),
    "a column too many": lambda answer: NoisyGradient(np.vstack([answer.values, answer.values[:1]])),
    "wider numbers": lambda answer: NoisyGradient(np.hstack([answer.values, answer.values])),
    "cut numbers": lambda answer: NoisyGradient(answer.values[:, :-2]),
    "nothing": lambda answer: NoisyGradient(answer.values[:0]),
}


@each_case("fault", ANSWERS)
def test_an_answer_that_is_not_the_gradient_asked_for_is_refused(insecure_test_key: PrivateKey, fault: str) -> None:
    error = fails(three(insecure_test_key), replaced(KEY_NODE, NoisyGradient, ANSWERS[fault]), MalformedMessage)
    assert (error.culprit, error.field) == (KEY_NODE, "values")


@pytest.mark.parametrize("verdict", [7, 2, -1])
def test_a_verdict_is_0_or_1(insecure_test_key: PrivateKey, verdict: int) -> None:
    error = fails(three(insecure_test_key), replaced(KEY_NODE, Verdict, lambda _: Verdict(verdict)), MalformedMessage)
    assert (error.culprit, error.field) == (KEY_NODE, "go_on")


# --- the order of messages -----------------------------------------------------------------------------------------


STEPS: list[tuple[str, type[Any]]] = [
    (KEY_NODE, TaylorKey),
    *dict.fromkeys((sender, kind) for sender, kind, _ in CIPHERTEXTS),
    (KEY_NODE, NoisyGradient),
    (KEY_NODE, Verdict),
]


@pytest.mark.parametrize(("sender", "kind"), STEPS, ids=[f"{s}-{k.__name__}" for s, k in STEPS])
def test_a_message_of_another_step_is_refused(insecure_test_key: PrivateKey, sender: str, kind: type[Any]) -> None:
    other: object = Verdict(1) if kind is not Verdict else NoisyGradient(np.zeros((1, 4), np.uint8))
    error = fails(three(insecure_test_key), replaced(sender, kind, lambda _: other), UnexpectedStep)
    assert (error.culprit, error.expected, error.got) == (sender, kind.__name__, type(other).__name__)


class Jumping(selectors.DefaultSelector):
    """A clock that stands still while anybody works, and jumps to the next deadline when all wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0
        return super().select(timeout and 0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose time is what its selector was asked to wait."""

    def __init__(self, clock: Jumping) -> None:
        self._clock = clock
        super().__init__(clock)

    def time(self) -> float:
        return self._clock.now


def ends_of(*roles: Coroutine[Any, Any, int]) -> list[Any]:
    clock = Jumping()

    def make_loop() -> asyncio.AbstractEventLoop:
        return JumpingLoop(clock)

    async def all_ended() -> list[Any]:
        return await asyncio.gather(*roles, return_exceptions=True)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(all_ended())


@each_case("absent", [ACTIVE, MIDDLE, LAST, KEY_NODE])
def test_a_peer_that_is_not_there_is_named_by_who_waits_for_it(insecure_test_key: PrivateKey, absent: str) -> None:
    case = three(insecure_test_key)
    network = case.network()
    roles = {seat.name: case.data_role(seat, network) for seat in case.seats()}
    roles[KEY_NODE] = case.key_role(case.key_seat(), network)
    roles.pop(absent).close()
    ends = ends_of(*roles.values())
    assert {type(end) for end in ends} == {PeerTimeout}
    waits_for = {end.peer for end in ends if isinstance(end, PeerTimeout)}
    assert absent in waits_for


def test_a_peer_that_drops_out_later_is_named_with_the_step(insecure_test_key: PrivateKey) -> None:
    case = three(insecure_test_key)

    class Gone(Exception):
        pass

    def wire(sender: str, receiver: str, step: str, data: bytes) -> bytes:
        if (sender, step) == (MIDDLE, "ChainedResiduals"):
            raise Gone
        return data

    network = case.network(wire=wire)
    seats = {seat.name: seat for seat in case.seats()}
    roles = [case.data_role(seat, network) for seat in seats.values()]
    active, middle, last, key_node = ends_of(*roles, case.key_role(case.key_seat(), network))
    assert isinstance(middle, Gone)
    assert isinstance(last, PeerTimeout)
    assert (last.peer, last.step) == (MIDDLE, "ChainedResiduals")
    assert isinstance(active, PeerTimeout)
    assert (active.peer, active.step) == (LAST, "Residuals")
    assert isinstance(key_node, PeerTimeout)
    assert (key_node.peer, key_node.step) == (ACTIVE, "MaskedGradient")


# --- our own settings ------------------------------------------------------------------------------------------------


async def test_a_hold_out_of_no_rows_is_refused_by_every_role_before_it_sends(insecure_test_key: PrivateKey) -> None:
    case = three(insecure_test_key)
    empty = replace(case, plan=replace(case.plan, validation=np.zeros(0, np.int64)))
    network = case.network()
    with pytest.raises(ConfigError, match="held out"):
        await taylor.run_data_party(empty.seats()[0], empty.plan, empty.parameters, network.channel(ACTIVE))
    with pytest.raises(ConfigError, match="held out"):
        await taylor.run_key_node(empty.key_seat(), [8], 0, empty.parameters, network.channel(KEY_NODE))
    with pytest.raises(ConfigError, match="held out"):
        empty.run_locally(empty.seats(), empty.key_seat())
    assert network.sent == []


async def test_a_seat_without_its_labels_sends_nothing(insecure_test_key: PrivateKey) -> None:
    case = three(insecure_test_key)
    network = case.network()
    seat = replace(case.seats()[0], y=None)
    with pytest.raises(LocalProtocolError, match="y is missing"):
        await taylor.run_data_party(seat, case.plan, case.parameters, network.channel(ACTIVE))
    assert network.sent == []
