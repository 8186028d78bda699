"""Two message classes that together have a field of every kind, and functions that make their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.messages import (
    Bits,
    CiphertextVector,
    Int32Tensor,
    Integer,
    IntegerTensor,
    Octets,
    OctetVector,
    Parameters,
    PartialDecryptionVector,
    PublicKeyKind,
    Real,
    RealTensor,
    ShareVector,
    Text,
    Texts,
)
from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.algorithms.paillier.threshold import PartialDecryption, ReceivedPartialDecryption, deal, partial_decrypt
from blindfit.algorithms.paillier.vectors import EncryptedVector, encrypt

MODULUS = 2**61 - 1


@dataclass(frozen=True, slots=True)
class Everything:
    reals: RealTensor
    integers: IntegerTensor
    int32s: Int32Tensor
    shares: ShareVector
    texts: Texts
    parameters: Parameters
    text: Text
    integer: Integer
    real: Real
    octets: Octets
    flags: Bits
    points: OctetVector


@dataclass(frozen=True, slots=True)
class Encrypted:
    """The kinds whose values need a key."""

    key: PublicKeyKind
    ciphertexts: CiphertextVector
    partial: PartialDecryptionVector


RECEIVED_AS = {FreshCiphertext: ReceivedCiphertext, PartialDecryption: ReceivedPartialDecryption}


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
INT64 = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PARAMETERS = st.dictionaries(
    st.text(max_size=8), st.text() | INT64 | FINITE | st.booleans() | st.lists(st.text()).map(tuple), max_size=5
)
MESSAGES = st.builds(
    Everything,
    reals=hnp.arrays(np.float64, SHAPES, elements=FINITE),
    integers=hnp.arrays(np.int64, SHAPES),
    int32s=hnp.arrays(np.int32, SHAPES),
    shares=hnp.arrays(np.uint64, st.integers(0, 8), elements=st.integers(0, MODULUS - 1)),
    texts=st.lists(st.text()).map(tuple),
    parameters=PARAMETERS,
    text=st.text(),
    integer=INT64,
    real=FINITE,
    octets=st.binary(),
    flags=hnp.arrays(np.bool_, st.integers(0, 20)),
    points=hnp.arrays(np.uint8, st.tuples(st.integers(0, 4), st.integers(1, 40))),
)
PLAIN = Everything(
    reals=np.array([[1.0, 2.5], [-3.0, 0.0]]),
    integers=np.array([1, -2, 3], np.int64),
    int32s=np.array([[1], [2]], np.int32),
    shares=np.array([0, MODULUS - 1], np.uint64),
    texts=("a", "b"),
    parameters={"epsilon": 0.5, "rows": 7, "clip": True, "name": "x", "peers": ("p", "q")},
    text="hello",
    integer=-5,
    real=2.5,
    octets=b"\x00\xff",
    flags=np.array([True] * 8 + [False, True, True]),
    points=np.array([[0, 1, 255], [2, 3, 4]], np.uint8),
)


def vector(private_key: PrivateKey, integers: Sequence[int]) -> EncryptedVector[FreshCiphertext]:
    return encrypt(Fixed.from_integers(np.array(integers, np.int64)), FullExponent(private_key.public_key))


def encrypted(private_key: PrivateKey, integers: Sequence[int] = (1, -2, 3)) -> Encrypted:
    numbers = vector(private_key, integers)
    share = deal(private_key, 2)[0]
    return Encrypted(private_key.public_key, numbers.ciphertext, partial_decrypt(numbers, share))


def assert_same(ours: object, theirs: object) -> None:
    for field in fields(ours):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        assert RECEIVED_AS.get(type(a), type(a)) is type(b), field.name
        if type(a) in RECEIVED_AS:
            assert a.to_wire() == (b.width_bytes, b.data), field.name
        elif isinstance(a, PublicKey):
            assert a.to_bytes() == b.to_bytes(), field.name
        elif isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), field.name
        else:
            assert a == b, field.name
