"""Products of powers by a vector unit: Straus's tables of subsets, eight products side by side.

Every exponent is cut into bits, two's complement. A table holds the products of all subsets of a few bases; a product
of powers is then one product for each table and bit. All of them are independent, which a vector unit needs. Buckets,
with their running products, are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.vector_unit.unit import Rows, VectorUnit

IntegerMatrix = npt.NDArray[np.int64]
MOST_TABLE_ENTRIES = 2**12  # at a time: 2.6 MB at 2048 bits
MOST_GROUP = 12


def column_powers(kernel: Kernel, unit: VectorUnit, bases: Residues, exponents: IntegerMatrix, bits: int) -> Residues:
    """Return, for each column j, the product over i of bases_i^exponents_ij; exponents of `bits` bits and a sign."""
    columns, positions = exponents.shape[1], bits + 1
    with _count_products(kernel, unit):
        rows = unit.rows(kernel.integers(bases))
        group = plan_group(len(rows), columns * positions)
        per_bit = unit.rows([1]).repeat(positions * columns, axis=0)
        block = max(1, MOST_TABLE_ENTRIES >> group) * group
        for start in range(0, len(rows), block):
            digits = _bits_of(exponents[start : start + block], positions)  # (rows, columns, positions)
            by_output = digits.transpose(2, 1, 0).reshape(positions * columns, -1)
            part = _look_up(unit, _subset_tables(unit, rows[start : start + block], group), by_output, group)
            per_bit = unit.products(per_bit, part)
        return kernel.residues(unit.integers(_join_bits(kernel, unit, per_bit, columns)))


def row_powers(kernel: Kernel, unit: VectorUnit, bases: Residues, exponents: IntegerMatrix, bits: int) -> Residues:
    """Return, for each row i, the product over j of bases_j^exponents_ij; the tables serve every row."""
    outputs, positions = exponents.shape[0], bits + 1
    with _count_products(kernel, unit):
        shifted = [unit.rows(kernel.integers(bases))]
        for _ in range(bits):
            shifted.append(unit.products(shifted[-1], shifted[-1]))
        shifted[-1] = _inverses(kernel, unit, shifted[-1])
        rows = np.stack(shifted, axis=1).reshape(-1, unit.limbs)  # base by base, lowest bit first
        group = plan_group(len(rows), outputs)
        digits = _bits_of(exponents, positions).reshape(outputs, -1)
        return kernel.residues(unit.integers(_look_up(unit, _subset_tables(unit, rows, group), digits, group)))


def plan_group(bases: int, outputs: int) -> int:
    """Return the number of bases that one table joins."""
    return min(range(1, MOST_GROUP + 1), key=lambda group: products_of(bases, outputs, group))


def products_of(bases: int, outputs: int, group: int) -> int:
    """Count the products to make the tables and to look every output up in all of them."""
    return -(-bases // group) * ((1 << group) + outputs)


def column_products(rows: int, columns: int, bits: int) -> int:
    """Estimate the number of products of `column_powers`."""
    outputs = columns * (bits + 1)
    return products_of(rows, outputs, plan_group(rows, outputs)) + 2 * outputs


@contextmanager
def _count_products(kernel: Kernel, unit: VectorUnit) -> Iterator[None]:
    before = unit.multiplied
    yield
    kernel.counts.products += unit.multiplied - before


def _subset_tables(unit: VectorUnit, rows: Rows, group: int) -> Rows:
    """Make tables: entry e is the product of the bases whose bit is set in e, lowest bit first."""
    count = -(-len(rows) // group)
    one = unit.rows([1])
    padded = np.concatenate([rows, one.repeat(count * group - len(rows), axis=0)]).reshape(count, group, -1)
    tables = np.empty((count, 1 << group, unit.limbs), dtype=np.uint64)
    tables[:, 0] = one
    for bit in range(group):
        size = 1 << bit
        lower = tables[:, :size].reshape(-1, unit.limbs)
        upper = unit.products(lower, padded[:, bit].repeat(size, axis=0))
        tables[:, size : 2 * size] = upper.reshape(count, size, unit.limbs)
    return tables.reshape(-1, unit.limbs)


def _bits_of(values: IntegerMatrix, positions: int) -> npt.NDArray[np.uint8]:
    return ((values[..., None] >> np.arange(positions)) & 1).astype(np.uint8)


def _look_up(unit: VectorUnit, tables: Rows, digits: npt.NDArray[np.uint8], group: int) -> Rows:
    """Return, for each row of 0/1 digits, the product of the bases whose digit is 1; entry 0 of a table is 1."""
    outputs, positions = digits.shape
    count = -(-positions // group)
    padded = np.zeros((outputs, count * group), dtype=np.uint8)
    padded[:, :positions] = digits
    entries = padded.reshape(outputs, count, group) @ (1 << np.arange(group, dtype=np.int64))
    return unit.multiply_groups(tables, entries + (np.arange(count, dtype=np.int64) << group))


def _join_bits(kernel: Kernel, unit: VectorUnit, per_bit: Rows, columns: int) -> Rows:
    """Return prod_b per_bit_b^(2^b), where the highest bit of two's complement weighs -2^bits."""
    lower, highest = per_bit[:-columns], per_bit[-columns:]
    total = _inverses(kernel, unit, highest)
    positions = np.arange(len(per_bit)).reshape(-1, columns).T[:, ::-1]  # of each column, highest bit first
    return unit.multiply_groups(np.concatenate([lower, total]), positions, squarings=1)


def _inverses(kernel: Kernel, unit: VectorUnit, rows: Rows) -> Rows:
    return unit.rows(kernel.integers(kernel.inverses(kernel.residues(unit.integers(rows)))))
