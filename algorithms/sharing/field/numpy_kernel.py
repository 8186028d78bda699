"""Products modulo 2^61 - 1 with only numpy.

An elementwise product is four products of halves. A matrix product is one of limbs of 21 bits in float64: a sum of at
most 2047 products of two limbs stays below 2^53, so BLAS computes it exactly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.sharing.field.elements import BITS, Elements, P, add, times_power_of_two

LIMB_BITS = 21
LIMBS = 3
MOST_TERMS = 2**53 // 2 ** (2 * LIMB_BITS) - 1  # of a sum that float64 holds
CHUNK = 2**14  # elements whose intermediate results stay in the processor's cache

_P = np.uint64(P)
_32, _29, _LOW_32, _LOW_29 = np.uint64(32), np.uint64(29), np.uint64(2**32 - 1), np.uint64(2**29 - 1)
_BITS = np.uint64(BITS)
_LOW_LIMB = np.uint64(2**LIMB_BITS - 1)


class NumpyKernel:
    def products(self, a: Elements, b: Elements) -> Elements:
        result = np.empty(a.shape, dtype=np.uint64)
        flat, left, right = result.reshape(-1), a.reshape(-1), b.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            part = slice(start, start + CHUNK)
            flat[part] = _products(left[part], right[part])
        return result

    def times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        result = np.zeros(len(matrix), dtype=np.uint64)
        for start in range(0, len(vector), MOST_TERMS):
            part = slice(start, start + MOST_TERMS)
            result = add(result, _exact_product(matrix[:, part], vector[part]))
        return result

    def transposed_times_vector(self, matrix: Elements, vector: Elements) -> Elements:
        result = np.zeros(matrix.shape[1], dtype=np.uint64)
        for start in range(0, len(vector), MOST_TERMS):
            part = slice(start, start + MOST_TERMS)
            result = add(result, _exact_product(matrix[part].T, vector[part]))
        return result


def _products(a: Elements, b: Elements) -> Elements:
    """Compute, with a = a1 2^32 + a0 and 2^64 = 8, 8 a1 b1 + (a1 b0 + a0 b1) 2^32 + a0 b0, each part below 2^61."""
    a1, a0, b1, b0 = a >> _32, a & _LOW_32, b >> _32, b & _LOW_32
    middle = a1 * b0 + a0 * b1  # below 2^62; its bits above the 29th are worth 2^61 = 1 each
    low = a0 * b0
    sums = (a1 * b1 << np.uint64(3)) + (middle >> _29) + ((middle & _LOW_29) << _32) + (low >> _BITS) + (low & _P)
    folded = (sums >> _BITS) + (sums & _P)
    return np.asarray(np.where(folded >= _P, folded - _P, folded))


def _exact_product(matrix: Elements, vector: Elements) -> Elements:
    """Return the exact product, for at most MOST_TERMS columns."""
    right = np.stack(_limbs(vector), axis=1)
    result = np.zeros(len(matrix), dtype=np.uint64)
    for place, limb in enumerate(_limbs(matrix)):
        sums = limb @ right  # (rows, LIMBS), exact integers below 2^53
        for other in range(LIMBS):
            part = sums[:, other].astype(np.uint64)
            result = add(result, times_power_of_two(part, LIMB_BITS * (place + other)))
    return result


def _limbs(values: Elements) -> list[npt.NDArray[np.float64]]:
    return [((values >> np.uint64(LIMB_BITS * i)) & _LOW_LIMB).astype(np.float64) for i in range(LIMBS)]
