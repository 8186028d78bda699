"""Elements of the field as arrays of uint64: sums, differences, and conversion from and to integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError

BITS = 61
P: int = 2**BITS - 1
Elements = npt.NDArray[np.uint64]
"""An array of any shape, with elements in [0, p)."""


Integers = npt.NDArray[np.int64]
PIECE = 2**13  # elements
_P = np.uint64(P)
_BITS = np.uint64(BITS)
_HALF = P // 2


class Kernel(Protocol):
    """Products of elements; arguments and results are C-contiguous and in [0, p)."""

    def products(self, a: Elements, b: Elements) -> Elements:
        """Return a_i b_i, for equal shapes."""
        ...

    def times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        """Return sum_j matrix_ij vector_j."""
        ...

    def transposed_times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        """Return sum_i matrix_ij vector_i."""
        ...


def elements(integers: npt.ArrayLike) -> Elements:
    """Take integers of 64 bits modulo p: -1 is p - 1."""
    values = np.asarray(integers)
    if values.dtype.kind == "u":
        return np.asarray(np.mod(values.astype(np.uint64), _P), dtype=np.uint64)
    if values.dtype.kind != "i" and values.size:
        raise RangeError("elements of the field are made from integers")
    signed = values.astype(np.int64)
    if signed.size and (signed.min() < -P or signed.max() >= P):
        signed = np.mod(signed, P)
    wrapped = signed.view(np.uint64)
    return np.asarray(np.minimum(wrapped, wrapped + _P))  # -1 is 2^64 - 1 as uint64; adding p gives p - 1


def integers(values: Elements) -> Integers:
    """Return the representatives from -(p - 1) / 2 to (p - 1) / 2."""
    signed = values.astype(np.int64)
    return np.where(signed > _HALF, signed - P, signed)


def contiguous(a: Elements) -> Elements:
    """Return the array as a kernel takes it."""
    return np.ascontiguousarray(a)


def add(a: Elements, b: Elements) -> Elements:
    if a.shape != b.shape or a.size <= PIECE:
        return _below_p(a + b)
    return _in_pieces(a, b, np.add, np.empty(a.shape, dtype=np.uint64))


def add_to(a: Elements, b: Elements) -> None:
    """Add b to a in place; for equal shapes."""
    _in_pieces(a, b, np.add, a)


def subtract(a: Elements, b: Elements) -> Elements:
    if a.shape != b.shape or a.size <= PIECE:
        return _below_p(a + (_P - b))
    return _in_pieces(a, b, _minus, np.empty(a.shape, dtype=np.uint64))


def _in_pieces(a: Elements, b: Elements, combine: Callable[..., object], result: Elements) -> Elements:
    """Combine a piece at a time, which stays in the processor's cache; otherwise it takes five times as long."""
    whole, left, right = result.reshape(-1), a.reshape(-1), b.reshape(-1)
    less = np.empty(PIECE, dtype=np.uint64)
    for start in range(0, whole.size, PIECE):
        part = whole[start : start + PIECE]
        combine(left[start : start + PIECE], right[start : start + PIECE], out=part)
        np.subtract(part, _P, out=less[: part.size])
        np.minimum(part, less[: part.size], out=part)
    return result


def _minus(a: Elements, b: Elements, out: Elements) -> None:
    np.subtract(_P, b, out=out)
    np.add(a, out, out=out)


def negative(a: Elements) -> Elements:
    return _below_p(_P - a)


def total(parts: Sequence[Elements]) -> Elements:
    """Return the sum of one array or more, of equal shapes."""
    first, *rest = parts
    for part in rest:
        first = add(first, part)
    return first


def times_power_of_two(a: Elements, bits: int) -> Elements:
    """Return a 2^bits: the 61 bits of an element, rotated."""
    left = np.uint64(bits % BITS)
    if not left:
        return a.copy()
    return ((a << left) & _P) | (a >> (_BITS - left))


def sum_over_first(a: Elements) -> Elements:
    """Sum along the first axis, over at most 2^29 elements."""
    high = (a >> np.uint64(32)).sum(axis=0, dtype=np.uint64)
    return _of_halves(high, (a & np.uint64(2**32 - 1)).sum(axis=0, dtype=np.uint64))


def cumulate(a: Elements) -> Elements:
    """Return the running sums of a vector of at most 2^29 elements."""
    high, low = np.cumsum(a >> np.uint64(32), dtype=np.uint64), np.cumsum(a & np.uint64(2**32 - 1), dtype=np.uint64)
    return _of_halves(high, low)


def _of_halves(high: Elements, low: Elements) -> Elements:
    """Return high 2^32 + low, for sums of at most 2^29 halves of elements."""
    return add(times_power_of_two(high, 32), _below_p((low & _P) + (low >> _BITS)))


def _below_p(a: Elements) -> Elements:
    """Reduce sums below 2 p + 1: a sum below p wraps to more than 2^63 when p is subtracted."""
    return np.asarray(np.minimum(a, a - _P))
