"""Joint prediction, step by step and over channels."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from blindfit.algorithms.errors import MalformedMessage, PeerTimeout
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.protocols.predict import MaskedScores, MaskSeed
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import LocalNetwork
from tests.each_case import each_case
from tests.protocols.counts import assert_as_often
from tests.taylor.seats import first_failure, replaced

ACTIVE = "bank"
PART = st.integers(-(2**56), 2**56)


def network_of(passives: int, **options: object) -> LocalNetwork:
    return LocalNetwork({ACTIVE: "active", **dict.fromkeys(names(passives), "passive")}, predict.TABLE, **options)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"p{i}" for i in range(count))


def seeded(seed: int) -> Callable[[int], int]:
    return random.Random(seed).randrange


@st.composite
def parts(draw: st.DrawFn) -> list[np.ndarray]:
    """Draw the active party's parts, then those of 1 to 5 passive ones."""
    n, passives = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    return [np.array(draw(st.lists(PART, min_size=n, max_size=n)), np.int64) for _ in range(passives + 1)]


def random_parts(passives: int, n: int = 64, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-(2**50), 2**50, n) for _ in range(passives + 1)]


def run(held: Sequence[np.ndarray], network: LocalNetwork, uniforms: Sequence[Callable[[int], int]] | None = None):
    """Run over channels, and return what the active party learnt."""
    own, *others = held
    passives = names(len(others))
    uniforms = uniforms or [seeded(100 + i) for i in range(len(others))]
    roles = [
        predict.run_passive(part, me, passives, ACTIVE, network.channel(me), uniform)
        for part, me, uniform in zip(others, passives, uniforms, strict=True)
    ]
    return asyncio.run(first_failure(predict.run_active(own, passives, network.channel(ACTIVE)), *roles))[0]


# --- what it computes -------------------------------------------------------------------------------------


@given(parts())
def test_the_scores_are_the_sums_of_the_parts(held):
    assert predict.run_locally(held[0], held[1:]).tolist() == sum(part.astype(object) for part in held).tolist()


@given(parts(), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_over_channels_it_is_the_specification_bit_for_bit(held, seed):
    """With the same seeds every masked vector is the same, not only the sums."""
    source, count = seeded(seed), len(held) - 1
    drawn = {(i, j): source(1 << 256) for i in range(count) for j in range(i + 1, count)}
    masked = {}

    def keep(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step == "MaskedScores":
            masked[sender] = codec.decode(data, MaskedScores, culprit=sender).scores.tolist()
        return data

    mine = [iter([drawn[i, j] for j in range(i + 1, count)]) for i in range(count)]
    learnt = run(held, network_of(count, wire=keep), [lambda _, own=own: next(own) for own in mine])
    again = seeded(seed)
    assert learnt.tolist() == predict.run_locally(held[0], held[1:], again).tolist()
    assert again(2**64) == source(2**64)  # both drew as many seeds
    seeds = {pair: MaskSeed(value.to_bytes(32, "big")) for pair, value in drawn.items()}
    for i, name in enumerate(names(count)):
        added = [seeds[i, j] for j in range(i + 1, count)]
        subtracted = [seeds[j, i] for j in range(i)]
        assert masked[name] == predict.step_2_mask(held[1 + i], added, subtracted).scores.tolist()


@each_case("passives", range(1, 6))
def test_what_is_sent_is_the_table(passives):
    network = network_of(passives)
    run(random_parts(passives), network)
    own = names(passives)
    seeds = [(own[i], own[j], "MaskSeed") for i in range(passives) for j in range(i + 1, passives)]
    assert Counter(network.sent) == Counter([*seeds, *((name, ACTIVE, "MaskedScores") for name in own)])
    having = ["two passive parties or more"] if passives > 1 else []
    assert_as_often(predict.TABLE, network.roles, network.sent, having=having)
    assert not network.unread


def test_sixteen_parties_at_their_bound_do_not_overflow():
    for extreme in (2**57, -(2**57)):
        held = [np.full(3, extreme, np.int64) for _ in range(16)]
        assert predict.run_locally(held[0], held[1:]).tolist() == [16 * extreme] * 3


# --- what it hides ----------------------------------------------------------------------------------------


def masked_scores(parts: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Return what each passive party sends to the active one."""
    seen = []

    def keep(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step == "MaskedScores":
            seen.append(codec.decode(data, MaskedScores, culprit=sender).scores)
        return data

    run(parts, network_of(len(parts) - 1, wire=keep), [seeded(seed + i) for i in range(len(parts) - 1)])
    return seen


@each_case("passives", [2, 3, 5])
def test_masked_scores_look_uniform(passives):
    """Every byte of every vector, of parts that are all zero: chi-square with 255 degrees, refused at 1e-9."""
    n = 20_000
    for vector in masked_scores([np.zeros(n, np.int64)] * (passives + 1), seed=7):
        octets = vector.astype("<i8").view(np.uint8).reshape(n, 8)
        for column in octets.T:
            counts = np.bincount(column, minlength=256)
            assert ((counts - n / 256) ** 2 / (n / 256)).sum() < chi2.isf(1e-9, 255)


def test_all_but_one_masked_vector_are_independent_of_the_parts():
    """The same seeds and other parts with the same sum: the masks are one-time pads, so only differences show."""
    first = random_parts(3)
    other = [part.copy() for part in first]
    other[1] += 12345
    other[2] -= 12345
    for one, two, shift in zip(masked_scores(first, 1), masked_scores(other, 1), (12345, -12345, 0), strict=True):
        assert (two.view(np.uint64) - one.view(np.uint64)).view(np.int64).tolist() == [shift] * len(one)


def test_two_runs_share_no_mask():
    one, two = masked_scores(random_parts(2), 1), masked_scores(random_parts(2), 2)
    assert not any((a == b).any() for a, b in zip(one, two, strict=True))


def test_one_passive_party_has_nobody_to_mask_with():
    """The party's part is the score less the active party's, in any message."""
    held = random_parts(1)
    assert masked_scores(held, 1)[0].tolist() == held[1].tolist()


# --- faults -----------------------------------------------------------------------------------------------


def refused(wire: Callable[..., bytes], passives: int = 3) -> MalformedMessage:
    with pytest.raises(MalformedMessage) as caught:
        run(random_parts(passives), network_of(passives, wire=wire))
    return caught.value


@each_case("change", [lambda v: v[:-1], lambda v: np.append(v, v[:1]), lambda v: v.reshape(2, -1)])
def test_scores_of_another_length_name_their_sender(change):
    error = refused(replaced("p1", MaskedScores, lambda m: MaskedScores(change(m.scores))))
    assert (error.culprit, error.field) == ("p1", "scores")


@each_case("seed", [b"", b"x" * 31, b"x" * 33])
def test_a_seed_of_another_size_names_its_sender(seed):
    error = refused(replaced("p0", MaskSeed, lambda _: MaskSeed(seed)))
    assert (error.culprit, error.field) == ("p0", "seed")


def test_a_mask_that_is_missing_is_noticed():
    """Any of the parties may have omitted it: all n rows look like scores with probability 4^-n."""
    error = refused(replaced("p2", MaskedScores, lambda _: MaskedScores(random_parts(3)[3])))
    assert error.culprit == "p0, p1, p2"
    assert "a mask is missing" in error.reason


def test_another_seed_on_the_way_is_noticed():
    error = refused(replaced("p0", MaskSeed, lambda m: MaskSeed(bytes(32))))
    assert error.culprit == "p0, p1, p2"


def test_a_party_that_is_silent_is_named():
    network = network_of(1, timeout_s=0.05)
    with pytest.raises(PeerTimeout) as caught:
        asyncio.run(predict.run_active(np.zeros(2, np.int64), ["p0"], network.channel(ACTIVE)))
    assert (caught.value.peer, caught.value.step) == ("p0", "MaskedScores")
