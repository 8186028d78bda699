"""One message class with a field of every kind, and hypothesis strategies for its values."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from algorithms.messages import (
    Int32Tensor,
    Integer,
    IntegerTensor,
    Octets,
    Parameters,
    Real,
    RealTensor,
    ShareVector,
    Text,
    Texts,
)

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
)


def assert_same(ours: object, theirs: object) -> None:
    for field in fields(ours):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        assert type(a) is type(b), field.name
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), field.name
        else:
            assert a == b, field.name
