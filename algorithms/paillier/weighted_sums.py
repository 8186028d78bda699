"""Exact sums of products of short integers and long ones: the part of a product of powers outside the group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LIMB_BITS = 16
WEIGHT_BITS = 20
BLOCK = 64  # rows: a sum of their products is below 2^42, exact in float64; for so few BLAS starts no threads
BLOCKS = 4  # at a time, so that their limbs stay in the processor's cache


def weighted_sums(weights: npt.NDArray[np.int64], integers: Sequence[int]) -> list[int]:
    """Return, for each column j, the sum over i of weights_ij integers_i.

    The integers are cut into limbs, and blocks of rows are multiplied as float64 matrices.

    Args:
        weights: (rows, columns), not negative; fewer than 2^27 rows.
        integers: (rows,), not negative, of any size.
    """
    totals = [0] * weights.shape[1]
    octets = 8 * max(1, -(-int(max(integers, default=0)).bit_length() // 64))
    for shift in range(0, int(weights.max(initial=0)).bit_length(), WEIGHT_BITS):
        piece = (weights >> shift) & ((1 << WEIGHT_BITS) - 1)
        sums = np.zeros((weights.shape[1], octets * 8 // LIMB_BITS), dtype=np.int64)
        for start in range(0, len(integers), BLOCK * BLOCKS):
            part = slice(start, start + BLOCK * BLOCKS)
            products = _blocks(piece[part]).transpose(0, 2, 1) @ _blocks(_limbs(integers[part], octets))
            sums += products.sum(axis=0).astype(np.int64)
        totals = [total + (_join(row) << shift) for total, row in zip(totals, sums, strict=True)]
    return totals


def _limbs(integers: Sequence[int], octets: int) -> npt.NDArray[np.uint16]:
    """(rows, limbs), the lowest first."""
    data = b"".join(integer.to_bytes(octets, "little") for integer in integers)
    return np.frombuffer(data, dtype="<u2").reshape(len(integers), -1)


def _blocks(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """(blocks, BLOCK, columns), filled up with zeros."""
    filled = np.zeros((-(-len(rows) // BLOCK) * BLOCK, rows.shape[1]))
    filled[: len(rows)] = rows
    return filled.reshape(-1, BLOCK, rows.shape[1])


def _join(limbs: npt.NDArray[np.int64]) -> int:
    """Return sum_k limbs_k 2^(16 k); limbs have 64 bits, so every fourth one follows the last without overlap."""
    step = 64 // LIMB_BITS
    return sum(int.from_bytes(limbs[k::step].astype("<i8").tobytes(), "little") << (LIMB_BITS * k) for k in range(step))
