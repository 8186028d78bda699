"""Products of powers prod_i c_i^x_ij of many columns at once: under Paillier, these are sums of products.

The kernel never takes one exponentiation for each element. It has two ways, and takes the cheaper one:

    buckets    Pippenger: x_ij in signed digits; the c_i of one digit are multiplied into one bucket, and the buckets
               are folded with running products. Inverses for the minus signs are shared by all columns. Best for many
               rows and few columns.
    subsets    Straus: for each few rows, a table of the products of all their subsets, shared by all columns and all
               bit positions; then one product for each table, column and bit. Best for many columns or few rows.

Where there is a vector unit it always takes the second way (vector_sums). Only a reference kernel takes one
exponentiation for each element (`one_by_one`).

Source: Pippenger 1976; Straus 1964; Bernstein 2002, "Pippenger's exponentiation algorithm".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.paillier import vector_sums
from blindfit.algorithms.paillier.kernel import Kernel, Residues, power_products
from blindfit.algorithms.paillier.weighted_sums import weighted_sums

IntegerMatrix = npt.NDArray[np.int64]

# Times of the kernel's operations in products, measured with GMP at 2048 and 3072 bits. They only choose the way.
SPLIT_PRODUCT = 0.55  # in a group of split residues
LOOKUP = 0.62  # the same from tables, which lie farther away in memory
BUCKET = 1.1  # a bucket beyond its elements
SPLIT = 2.3  # one residue with its inverse
SPLIT_APART = 3.0  # the same, and its powers of 1 + n on their own
TABLE_ENTRY = 1.3
INVERSE = 5.0  # of one number mod n^2, by itself
MOST_TABLE_ENTRIES = 2**12  # at a time: they should stay in the processor's cache
MOST_GROUP = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """The way to compute a product of powers, and its approximate cost in products."""

    way: str  # "buckets" or "subsets"
    parameter: int  # windows of an exponent, or rows of a table
    cost: float


def column_powers(kernel: Kernel, bases: Residues, exponents: IntegerMatrix) -> Residues:
    """Return, for each column j, the product over i of bases_i^exponents_ij.

    Args:
        bases: (rows,).
        exponents: (rows, columns) int64, any sign, |x| < 2^62.

    Returns:
        (columns,). Cost: plan_columns(...).cost products, about.
    """
    if kernel.one_by_one:
        return _one_by_one(kernel, bases, exponents)
    rows, columns = exponents.shape
    bits = signed_bits(exponents)
    if not exponents.any():
        return kernel.ones_plus([0] * columns)
    if kernel.unit is not None:
        return vector_sums.column_powers(kernel, kernel.unit, bases, exponents, bits)
    plan = plan_columns(rows, columns, bits)
    if plan.way == "buckets":
        return _by_buckets(kernel, bases, exponents, plan.parameter, bits)
    return _by_subsets(kernel, bases, exponents, plan.parameter, bits)


def row_powers(kernel: Kernel, bases: Residues, exponents: IntegerMatrix) -> Residues:
    """Return, for each row i, the product over j of bases_j^exponents_ij: the same bases serve every row.

    Args:
        bases: (columns,).
        exponents: (rows, columns) int64, any sign, |x| < 2^62.

    Returns:
        (rows,). Cost: one product a row for each table of subsets, and the tables (fixed base): no squaring in a row.
    """
    if kernel.one_by_one:
        return _one_by_one(kernel, bases, exponents.T)
    rows, columns = exponents.shape
    bits = signed_bits(exponents)
    if not exponents.any():
        return kernel.ones_plus([0] * rows)
    if kernel.unit is not None:
        return vector_sums.row_powers(kernel, kernel.unit, bases, exponents, bits)
    positions = bits + 1  # two's complement: the highest has a minus
    group = plan_rows(rows, columns * positions)
    tables = kernel.subset_tables(_shift_bases(kernel, bases, bits), group)
    digits = _bits_of(exponents, positions).reshape(rows, columns * positions)
    return _look_up(kernel, tables, digits, group)


def plan_columns(rows: int, columns: int, bits: int) -> Plan:
    """Return the cheaper way for `rows` x `columns` exponents of at most `bits` bits and a sign."""
    buckets = [Plan("buckets", w, _bucket_cost(rows, columns, bits, w)) for w in range(1, bits + 2)]
    subsets = [Plan("subsets", g, _subset_cost(rows, columns, bits, g)) for g in range(1, MOST_GROUP + 1)]
    return min(buckets + subsets, key=lambda plan: plan.cost)


def plan_rows(rows: int, positions: int) -> int:
    """Return the number of shifted bases that one table of subsets joins."""

    def cost(group: int) -> float:
        tables = positions / group
        return float(tables * (TABLE_ENTRY * 2.0**group + LOOKUP * rows))

    return min(range(1, MOST_GROUP + 5), key=cost)


def signed_bits(exponents: IntegerMatrix) -> int:
    """Return the bits of the largest number in two's complement, without the sign: -2^15 and 2^15 - 1 have 15."""
    if not exponents.size:
        return 0
    return max(int(exponents.max()), ~int(exponents.min())).bit_length()


# --- one by one -------------------------------------------------------------------------------------


def one_by_one_cost(rows: int, columns: int, bits: int) -> float:
    """Return the cost of a power for each element, half of them with a minus."""
    return rows * columns * (power_products((1 << bits) - 1) + INVERSE / 2 + 1)


def _one_by_one(kernel: Kernel, bases: Residues, exponents: IntegerMatrix) -> Residues:
    """Compute by the definition: (rows,) and (rows, columns) to (columns,)."""
    columns = exponents.shape[1]
    total = kernel.ones_plus([0] * columns)
    for i, row in enumerate(exponents.tolist()):
        total = kernel.products(total, kernel.powers_each(bases.take([i] * columns), row))
    return total


# --- buckets ----------------------------------------------------------------------------------------


def _bucket_cost(rows: int, columns: int, bits: int, windows: int) -> float:
    buckets = sum(1 << (width - 1) for width in _widths(bits, windows))
    return columns * (rows * windows * SPLIT_PRODUCT + BUCKET * buckets + 2 * bits) + rows * SPLIT_APART


def _widths(bits: int, windows: int) -> list[int]:
    """Cut bits + 1 (with the sign) into windows of nearly equal width."""
    return [(bits + 1) // windows + (w < (bits + 1) % windows) for w in range(windows)]


def _by_buckets(kernel: Kernel, bases: Residues, exponents: IntegerMatrix, windows: int, bits: int) -> Residues:
    """Put only the values into buckets: the factors (1 + n)^e need no products, only a sum of x_ij e_i."""
    both, generator_exponents = kernel.apart(kernel.split_with_inverses(bases))
    weights = np.zeros((len(both), exponents.shape[1]), dtype=np.int64)  # of each base and each inverse in a column
    widths = _widths(bits, windows)
    rest, shift = exponents, 0
    folded = []
    for window, width in enumerate(widths):
        digits, rest = (rest, rest) if window == windows - 1 else _low_digits(rest, width)
        powers = np.concatenate([digits, -digits]).clip(min=0)  # a minus is for the inverse
        weights += powers << shift
        folded.append(_fold_window(kernel, both, powers, 2 ** (width - 1)))
        shift += width
    total = folded.pop()
    for width, power in zip(reversed(widths[:-1]), reversed(folded), strict=True):
        for _ in range(width):
            total = kernel.products(total, total)
        total = kernel.products(total, power)
    return kernel.plus(total, weighted_sums(weights, generator_exponents))


def _low_digits(values: IntegerMatrix, width: int) -> tuple[IntegerMatrix, IntegerMatrix]:
    """Split values = digits + 2^width rest, digits in [-2^(width-1), 2^(width-1))."""
    half = 1 << (width - 1)
    digits = ((values + half) & ((1 << width) - 1)) - half
    return digits, (values - digits) >> width


def _fold_window(kernel: Kernel, bases: Residues, digits: IntegerMatrix, largest: int) -> Residues:
    """Return, for each column, the product of bases_i^digit_i: into buckets by digit, then prod_d bucket_d^d."""
    base, column = np.nonzero(digits)
    bucket = (column + 1) * largest - digits[base, column]  # of each column, those of the largest digit first
    buckets = digits.shape[1] * largest
    order = np.argsort(bucket.astype(np.min_scalar_type(buckets)), kind="stable")  # 16 bits: a radix sort
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    return kernel.bucket_products(bases, base[order], ends, largest)


# --- subsets ----------------------------------------------------------------------------------------


def _subset_cost(rows: int, columns: int, bits: int, group: int) -> float:
    tables = -(-rows // group)
    lookups = LOOKUP * tables * columns * (bits + 1)
    return tables * TABLE_ENTRY * 2.0**group + lookups + columns * (2 * bits + SPLIT) + rows * SPLIT


def _by_subsets(kernel: Kernel, bases: Residues, exponents: IntegerMatrix, group: int, bits: int) -> Residues:
    """Take rows in blocks, so that few tables are in memory; then join the bits, the highest with its minus."""
    columns = exponents.shape[1]
    block = max(1, MOST_TABLE_ENTRIES >> group) * group
    total = kernel.ones_plus([0] * ((bits + 1) * columns))
    for start in range(0, exponents.shape[0], block):
        tables = kernel.subset_tables(bases[start : start + block], group)
        digits = _bits_of(exponents[start : start + block], bits + 1)  # (rows, columns, positions)
        per_bit = digits.transpose(2, 1, 0).reshape((bits + 1) * columns, -1)
        part = _look_up(kernel, tables, per_bit, group)
        total = part if start == 0 else kernel.products(total, part)
    return _join_bits(kernel, total, columns, bits)


def _join_bits(kernel: Kernel, per_bit: Residues, columns: int, bits: int) -> Residues:
    """Return prod_b per_bit_b^(2^b), where the highest bit of two's complement weighs -2^bits."""
    total = kernel.inverses(per_bit[bits * columns :])
    for bit in range(bits - 1, -1, -1):
        total = kernel.products(total, total)
        total = kernel.products(total, per_bit[bit * columns : (bit + 1) * columns])
    return total


def _shift_bases(kernel: Kernel, bases: Residues, bits: int) -> Residues:
    """Return base^1, base^2, base^4 .. and base^-(2^bits), base by base: the weights of two's complement."""
    powers = [bases]
    for _ in range(bits):
        powers.append(kernel.products(powers[-1], powers[-1]))
    powers[-1] = kernel.inverses(powers[-1])
    positions, count = bits + 1, len(bases)
    return Residues.concatenate(powers).take(p * count + j for j in range(count) for p in range(positions))


def _bits_of(values: IntegerMatrix, positions: int) -> npt.NDArray[np.uint8]:
    """Return the bits of two's complement, lowest bit first, along a new last axis."""
    return ((values[..., None] >> np.arange(positions)) & 1).astype(np.uint8)


def _look_up(kernel: Kernel, tables: Residues, digits: npt.NDArray[np.uint8], group: int) -> Residues:
    """Return, for each row of 0/1 digits, the product of the bases whose digit is 1; one table a `group`."""
    outputs, positions = digits.shape
    count = -(-positions // group)
    padded = np.zeros((outputs, count * group), dtype=np.uint8)
    padded[:, :positions] = digits
    entry = padded.reshape(outputs, count, group) @ (1 << np.arange(group, dtype=np.int64))
    where = entry + (np.arange(count, dtype=np.int64) << group)
    chosen = entry != 0  # entry 0 is 1: no product
    return kernel.multiply_groups(tables, where[chosen], np.cumsum(chosen.sum(axis=1)))
