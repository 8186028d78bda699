"""Sent ciphertexts were re-randomised and have no side channel; received ones are checked before use."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from math import gcd
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier import ciphertexts, packing, sums, threshold, vectors
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, ReceivedCiphertext, randomize
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.packing import Layout, PackedVector, encrypt_packed, pack
from blindfit.algorithms.paillier.randomisers import ShortExponent
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.vectors import EncryptedVector, concatenate, encrypt
from tests.each_case import each_case
from tests.paillier.tools import LAW, PicklingWorkers, encrypted, integers_of, nothing_computed, source

NUMBERS = Fixed.from_integers([4, -5, 6])
MATRIX = Fixed.from_integers([[1, 2, 3], [4, 5, 6], [7, 8, 9]])

# --- by type --------------------------------------------------------------------------------------


def operations(key: PrivateKey) -> dict[str, Callable[[], Any]]:
    """Return at least one call of every public function that gives ciphertexts."""
    public_key, zeros = key.public_key, source(key)
    x, packed = encrypt(NUMBERS, zeros), encrypt_packed(NUMBERS, 20, zeros)
    layout = Layout.of(public_key, 3, 20)
    how = {"frac_bits": 0, "bound": 6, "culprit": "passive"}
    return {
        "encrypt": lambda: encrypt(NUMBERS, zeros),
        "encrypt_packed": lambda: encrypt_packed(NUMBERS, 20, zeros),
        "randomize": lambda: randomize(x[:].ciphertext, zeros),
        "EncryptedVector.rerandomize": lambda: x[:].rerandomize(zeros),
        "PackedVector.rerandomize": lambda: (packed + NUMBERS).rerandomize(zeros),
        "EncryptedVector.within": lambda: x.within(7),
        "EncryptedVector.within, of a result": lambda: x[:].within(7),
        "EncryptedVector.__add__": lambda: x + x,
        "EncryptedVector.__add__, plain": lambda: x + NUMBERS,
        "EncryptedVector.__add__, plain zeros": lambda: x + NUMBERS - NUMBERS,
        "EncryptedVector.__sub__": lambda: x - x,
        "EncryptedVector.__sub__, plain": lambda: x - NUMBERS,
        "EncryptedVector.__neg__": lambda: -x,
        "EncryptedVector.scale": lambda: x.scale(NUMBERS),
        "EncryptedVector.scale, by one": lambda: x.scale(Fixed.from_integers(1)),
        "EncryptedVector.scale, by nothing": lambda: x.scale(Fixed.from_integers(0)),
        "EncryptedVector.__getitem__": lambda: x[:],
        "EncryptedVector.take": lambda: x.take([0, 1, 2]),
        "EncryptedVector.receive": lambda: EncryptedVector.receive(x.ciphertext, public_key, length=3, **how),
        "EncryptedVector.receive, octets": lambda: EncryptedVector.receive(
            ReceivedCiphertext(*x.ciphertext.to_wire()), public_key, length=3, **how
        ),
        "concatenate": lambda: concatenate([x]),
        "columns_dot": lambda: columns_dot(MATRIX, x),
        "columns_dot, by workers": lambda: columns_dot(MATRIX, x, workers=PicklingWorkers(2)),
        "rows_dot": lambda: rows_dot(MATRIX, x),
        "pack": lambda: pack(x, 20),
        "pack, of one": lambda: pack(x[:1], 20),
        "pack, of none": lambda: pack(x[:0], 20),
        "PackedVector.__add__": lambda: packed + packed,
        "PackedVector.__add__, plain": lambda: packed + NUMBERS,
        "PackedVector.receive": lambda: PackedVector.receive(packed.ciphertext, public_key, layout, **how),
        "FreshCiphertext.open": lambda: x.ciphertext.open(public_key, length=3, culprit="passive"),
        "ReceivedCiphertext.open": lambda: ReceivedCiphertext(*x.ciphertext.to_wire()).open(
            public_key, length=3, culprit="passive"
        ),
    }


RANDOMISING = {"encrypt", "encrypt_packed", "randomize", "EncryptedVector.rerandomize", "PackedVector.rerandomize"}
UNCHANGED = {"EncryptedVector.within"}  # the very ciphertexts that it was given


def test_only_randomising_gives_what_can_be_sent(insecure_test_key: PrivateKey) -> None:
    for name, operation in operations(insecure_test_key).items():
        result = operation()
        ciphertext = result if isinstance(result, Ciphertext) else result.ciphertext
        expected = FreshCiphertext if name in RANDOMISING | UNCHANGED else Ciphertext
        assert type(ciphertext) is expected, name
        assert hasattr(ciphertext, "to_wire") == (expected is FreshCiphertext), name


def results_of(module: ModuleType) -> set[str]:
    """Return the names of the public functions and methods of a module whose types give ciphertexts."""
    kinds = ("EncryptedVector[", "PackedVector[", "Ciphertext", "FreshCiphertext")
    own = [thing for thing in vars(module).values() if getattr(thing, "__module__", "") == module.__name__]
    functions = [thing for thing in own if inspect.isfunction(thing)]
    for kind in filter(inspect.isclass, own):
        members = [inspect.getattr_static(kind, name) for name in vars(kind)]
        functions += [member.__func__ if isinstance(member, staticmethod) else member for member in members]
    return {
        function.__qualname__
        for function in filter(inspect.isfunction, functions)
        if str(inspect.signature(function).return_annotation).strip("'").startswith(kinds)
        and (not function.__name__.startswith("_") or function.__name__.endswith("__"))
    }


def test_no_operation_was_forgotten(insecure_test_key: PrivateKey) -> None:
    found = set().union(*map(results_of, (ciphertexts, vectors, packing, sums, threshold)))
    assert found == {name.split(",")[0] for name in operations(insecure_test_key)}


@each_case("made_by", [None, True, object(), "randomize"])
def test_what_can_be_sent_is_never_made_directly(insecure_test_key: PrivateKey, made_by: object) -> None:
    public_key = insecure_test_key.public_key
    with pytest.raises(LocalProtocolError, match="never directly"):
        FreshCiphertext(public_key, public_key.kernel.ones_plus([1]), made_by)


# --- by value -------------------------------------------------------------------------------------


class Ones:
    """A source that draws 1 in some places."""

    def __init__(self, key: PrivateKey, ones: set[int]) -> None:
        self.public_key, self.ones = key.public_key, ones
        self._source = source(key)

    def draw(self, count: int) -> Residues:
        kernel = self.public_key.kernel
        integers = kernel.integers(self._source.draw(count))
        return kernel.residues(1 if i in self.ones else integer for i, integer in enumerate(integers))


@each_case("ones", [{0}, {2}, {0, 1, 2}])
@each_case("numbers", [[4, -5, 6], [0, 0, 0]])
def test_one_mod_n_is_not_sent(insecure_test_key: PrivateKey, ones: set[int], numbers: list[int]) -> None:
    """This ciphertext is 1 + m n: anyone who sees it can read m."""
    n = insecure_test_key.public_key.n
    bare = encrypt(Fixed.from_integers(numbers), Ones(insecure_test_key, ones))
    for i in ones:
        assert (integers_of(bare.ciphertext)[i] - 1) // n == numbers[i] % n
    packed = encrypt_packed(Fixed.from_integers(numbers), 400, Ones(insecure_test_key, ones))
    for ciphertext in (bare.ciphertext, packed.ciphertext):
        with pytest.raises(LocalProtocolError, match="no randomiser"):
            ciphertext.to_wire()
    width, _ = encrypt(Fixed.from_integers(numbers), Ones(insecure_test_key, set())).ciphertext.to_wire()
    assert width == insecure_test_key.public_key.ciphertext_bytes


def test_nothing_sent_is_one_mod_n(insecure_test_key: PrivateKey) -> None:
    """This holds for former 1 + m n too: a plain result, a product with zeros, the padding of a pack."""
    key, zeros = insecure_test_key, source(insecure_test_key)
    x, nothing = encrypted([0] * 50, key), Fixed.from_integers(np.zeros((50, 4), int))
    trivial = [x - x, x.scale(Fixed.from_integers(0)), columns_dot(nothing, x), pack(columns_dot(nothing, x), 20)]
    assert {integer % key.public_key.n for vector in trivial for integer in integers_of(vector.ciphertext)} == {1}
    for vector in trivial:
        sent = sent_integers(vector.rerandomize(zeros).ciphertext)
        assert 1 not in {integer % key.public_key.n for integer in sent}
        assert len(set(sent)) == len(sent)


def sent_integers(ciphertext: FreshCiphertext) -> list[int]:
    width, data = ciphertext.to_wire()
    return [int.from_bytes(data[i : i + width], "big") for i in range(0, len(data), width)]


def run(key: PrivateKey) -> list[int]:
    """Return all that is sent when the same data are used again, with repeated numbers in it."""
    zeros = ShortExponent(key.public_key)
    x = encrypt(Fixed.from_integers([3, 3, 3, 0, 0, -1]), zeros)
    total = columns_dot(Fixed.from_integers(np.ones((6, 3), int)), x)
    sent = [x, x.rerandomize(zeros), x.rerandomize(zeros), total.rerandomize(zeros)]
    packs = [encrypt_packed(Fixed.from_integers([1] * 60), 50, zeros), pack(total, 50).rerandomize(zeros)]
    return [integer for vector in (*sent, *packs) for integer in sent_integers(vector.ciphertext)]


def test_two_runs_share_no_ciphertext(insecure_test_key: PrivateKey) -> None:
    runs = run(insecure_test_key) + run(insecure_test_key)
    assert len(runs) == len(set(runs)) == 2 * (6 + 6 + 6 + 3 + 6 + 1)


def test_two_runs_at_2048_bits_share_no_ciphertext(real_key: PrivateKey) -> None:
    runs = run(real_key) + run(real_key)
    assert len(runs) == len(set(runs))
    assert 1 not in {integer % real_key.public_key.n for integer in runs}


@LAW
@given(bits=st.lists(st.integers(0, 500), min_size=3, max_size=3), frac_bits=st.integers(0, 30))
def test_the_size_says_nothing_of_the_numbers(insecure_test_key: PrivateKey, bits: list[int], frac_bits: int) -> None:
    """All ciphertexts have one width and no exponent, so the length depends only on their number."""
    width = insecure_test_key.public_key.ciphertext_bytes
    numbers = Fixed.from_integers([(-1) ** i * (2**b - 1) for i, b in enumerate(bits)], frac_bits)
    sent = encrypt(numbers, source(insecure_test_key)).ciphertext
    assert (sent.to_wire()[0], len(sent.to_wire()[1])) == (width, 3 * width)
    assert FreshCiphertext.__slots__ == ()
    assert set(Ciphertext.__slots__) == {"public_key", "residues"}
    assert all(exponent == 0 for exponent in sent.residues.exponents)  # settled: nothing of how it was made is left


def test_a_short_ciphertext_has_the_full_width(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key

    class Tiny:
        def __init__(self) -> None:
            self.public_key = public_key

        def draw(self, count: int) -> Residues:
            return public_key.kernel.residues([2] * count)

    width, data = encrypt(Fixed.from_integers([0, 0]), Tiny()).ciphertext.to_wire()
    assert data == (b"\0" * (width - 1) + b"\2") * 2


def test_nothing_to_send(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    sent = encrypted([], insecure_test_key).ciphertext
    assert sent.to_wire() == (public_key.ciphertext_bytes, b"")
    assert len(ReceivedCiphertext(*sent.to_wire()).open(public_key, length=0, culprit="passive")) == 0


def test_texts_have_no_ciphertext(insecure_test_key: PrivateKey) -> None:
    vector = encrypted([1, 2], insecure_test_key)
    received = ReceivedCiphertext(*vector.ciphertext.to_wire())
    for text in (repr(vector.ciphertext), str(vector), repr(vector), repr(received), repr(vector.residues)):
        assert not any(str(integer)[:30] in text for integer in integers_of(vector.ciphertext))
        assert received.data.hex()[:30] not in text
        assert len(text) < 250


# --- received -------------------------------------------------------------------------------------


def message_of(public_key: PublicKey, integers: list[int]) -> ReceivedCiphertext:
    width = public_key.ciphertext_bytes
    return ReceivedCiphertext(width, b"".join(integer.to_bytes(width, "big") for integer in integers))


def refusal(message: ReceivedCiphertext, public_key: PublicKey, length: int) -> MalformedMessage:
    with nothing_computed(public_key), pytest.raises(MalformedMessage) as refused:
        message.open(public_key, length=length, culprit="passive")
    assert (refused.value.culprit, refused.value.field) == ("passive", "ciphertext")
    return refused.value


@each_case("position", [0, 1, 3])
def test_bad_ciphertexts_are_refused_for_one_reason(insecure_test_key: PrivateKey, position: int) -> None:
    public_key, p, q = insecure_test_key.public_key, insecure_test_key.p, insecure_test_key.q
    n, good = public_key.n, integers_of(encrypted([1, 2, 3, 4], insecure_test_key).ciphertext)
    largest = 256**public_key.ciphertext_bytes - 1
    bad = [
        0,
        n,
        2 * n,
        (n - 1) * n,
        n**2,
        n**2 + 1,
        n**2 + good[0] % (largest - n**2),
        largest,
        p,
        q,
        5 * p,
        p * p,
        n - p,
    ]
    texts = set()
    for integer in bad:
        integers = [integer if i == position else c for i, c in enumerate(good)]
        texts.add(str(refusal(message_of(public_key, integers), public_key, 4)))
    assert texts == {"passive sent a malformed message: ciphertext: a ciphertext is invalid"}


def test_a_message_of_another_length_is_refused(insecure_test_key: PrivateKey, real_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    width, data = encrypted([1, 2], insecure_test_key).ciphertext.to_wire()
    wrong = [(width, data[:-1]), (width, data + b"\0"), (width, data[:width]), (width, b""), (width, data * 2)]
    wrong += [(width + 1, data), (2 * width, data), (width // 2, data), (1, data), (0, b""), (0, data), (-width, data)]
    for size, octets in wrong:
        assert refusal(ReceivedCiphertext(size, octets), public_key, 2).reason == "is of another key or length"
    assert refusal(ReceivedCiphertext(width, data), real_key.public_key, 2).reason == "is of another key or length"


def test_random_octets_are_valid_ciphertexts_or_refused(insecure_test_key: PrivateKey) -> None:
    """The test takes 10,000 numbers of every size, near multiples of n and its factors too; gcd and
    comparison decide.
    """
    public_key, rng = insecure_test_key.public_key, random.Random(9)
    n, largest = public_key.n, 256**public_key.ciphertext_bytes - 1
    steps = (1, n, insecure_test_key.p, insecure_test_key.q, n**2)
    valid = 0
    for _ in range(10_000):
        step = rng.choice(steps)
        near = rng.randrange(largest // step + 1) * step + rng.choice((-1, 0, 0, 1))
        integer = min(max(0, near >> rng.choice((0, 0, 0, 500))), largest)
        message = message_of(public_key, [integer])
        if 0 < integer < n**2 and gcd(integer, n) == 1:
            valid += 1
            opened = message.open(public_key, length=1, culprit="passive")
            assert integers_of(opened) == [integer]
        else:
            with pytest.raises(MalformedMessage, match="a ciphertext is invalid"):
                message.open(public_key, length=1, culprit="passive")
    assert 3000 < valid < 7000


def test_what_was_opened_is_not_sent_on(insecure_test_key: PrivateKey) -> None:
    """Otherwise a party would forward unchanged what it received, and both its neighbours could see that."""
    sent = encrypted([1, 2], insecure_test_key).ciphertext
    for message in (sent, ReceivedCiphertext(*sent.to_wire())):
        opened = message.open(insecure_test_key.public_key, length=2, culprit="passive")
        assert type(opened) is Ciphertext
        forwarded = randomize(opened, source(insecure_test_key))
        assert not set(integers_of(forwarded)) & set(integers_of(sent))
