"""Arithmetic mod n^2 of whole vectors: the one place where ciphertexts are multiplied.

Batches in, batches out, and every product is counted, so that a benchmark can state the bound. GMP multiplies. For
powers of one exponent the processor's vector unit does, if it has one (ifma).

Why a vector has two lists: the group is a product. c = value * (1 + n)^exponent mod n^2, and (1 + n)^t = 1 + t n, so
the second factor is multiplied by adding exponents, which costs next to nothing. `split` writes c with a value below n,
half the size; two such values multiply without any reduction. So a product of m split residues costs m/2 half-size
multiplications and m/2 products mod n^2, a little more than half of m products. The exponents are settled once, at the
end (`integers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from operator import add, mul

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.paillier.vector_unit.unit import WIDTHS, VectorUnit, products_of_power, vector_unit

Indices = npt.NDArray[np.int64]
_Entry = tuple[int, int, int]  # of a table: value below n, exponent of 1 + n, the value's inverse mod n
LEAST_POWER_BITS = 64  # of an exponent, for the vector unit: it makes a table first
LEAST_POWERS_BITS = 768  # of all exponents of a batch together: it fills lanes
_UNIT, _ZERO = mpz(1), mpz(0)
_ONE: _Entry = (_UNIT, _ZERO, _UNIT)


@dataclass(slots=True)
class Counts:
    """Work of a kernel: products mod n^2, and inversions (each of a whole batch)."""

    products: int = 0
    inversions: int = 0

    def add(self, other: Counts) -> None:
        self.products += other.products
        self.inversions += other.inversions


@dataclass(frozen=True, slots=True, repr=False)
class Residues:
    """A vector c with c_i = values_i (1 + n)^exponents_i mod n^2; only a kernel looks inside."""

    values: list[int]
    exponents: list[int]
    split: bool = False  # every value is below n

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: slice) -> Residues:
        return Residues(self.values[which], self.exponents[which], self.split)

    def take(self, indices: Iterable[int]) -> Residues:
        chosen = list(indices)
        return Residues([self.values[i] for i in chosen], [self.exponents[i] for i in chosen], self.split)

    @classmethod
    def concatenate(cls, parts: Sequence[Residues]) -> Residues:
        values = [value for part in parts for value in part.values]
        exponents = [exponent for part in parts for exponent in part.exponents]
        return cls(values, exponents, all(part.split for part in parts))


class Kernel:
    """Products, inverses and powers mod n^2 of vectors whose elements are prime to n.

    Attributes:
        one_by_one: sums of products take a power for each element: a reference, never fast.
    """

    one_by_one = False

    def __init__(self, n: int) -> None:
        self.n = mpz(n)
        self.modulus = self.n * self.n
        self.counts = Counts()

    @cached_property
    def unit(self) -> VectorUnit | None:
        """Unit that multiplies eight at a time, if this processor can; None in a reference kernel."""
        return None if self.one_by_one else vector_unit(int(self.n))

    @property
    def lanes(self) -> int:
        """Number of powers that take no longer than one."""
        return 1 if self.unit is None else max(WIDTHS)

    def __reduce__(self) -> tuple[type[Kernel], tuple[int]]:
        return type(self), (int(self.n),)  # a worker gets the modulus, not the counts

    # --- in and out ---------------------------------------------------------------------------------

    def residues(self, integers: Iterable[int]) -> Residues:
        """Return a vector of integers in [0, n^2); no product."""
        values = [mpz(integer) for integer in integers]
        return Residues(values, [mpz(0)] * len(values))

    def ones_plus(self, plaintexts: Iterable[int]) -> Residues:
        """Return (1 + n)^m for each m, of any sign: a plaintext without its randomiser; no product."""
        exponents = [mpz(plaintext) for plaintext in plaintexts]
        return Residues([mpz(1)] * len(exponents), exponents)

    def integers(self, residues: Residues) -> list[int]:
        """Return the vector as integers in [0, n^2); one product an element whose exponent is not zero."""
        return [
            self._settle(value, exponent) if exponent else value
            for value, exponent in zip(residues.values, residues.exponents, strict=True)
        ]

    def _settle(self, value: int, exponent: int) -> int:
        self.counts.products += 1
        settled: int = (value + (value % self.n * exponent) % self.n * self.n) % self.modulus
        return settled

    # --- products -----------------------------------------------------------------------------------

    def products(self, a: Residues, b: Residues) -> Residues:
        """Return a_i b_i; one product an element."""
        self.counts.products += len(a)
        modulus = self.modulus
        values = [x * y % modulus for x, y in zip(a.values, b.values, strict=True)]
        return Residues(values, list(map(add, a.exponents, b.exponents)))

    def plus(self, a: Residues, plaintexts: Iterable[int]) -> Residues:
        """Return a_i (1 + n)^m_i, which adds m_i to a plaintext; no product."""
        exponents = [exponent + plaintext for exponent, plaintext in zip(a.exponents, plaintexts, strict=True)]
        return Residues(a.values, exponents, a.split)

    def apart(self, a: Residues) -> tuple[Residues, list[int]]:
        """Return only the values, and the exponents of 1 + n in [0, n); `plus` adds their sums again; no product."""
        values = Residues(a.values, [_ZERO] * len(a), a.split)
        return values, [exponent % self.n for exponent in a.exponents]

    def multiply_groups(self, bases: Residues, indices: Indices, ends: Indices) -> Residues:
        """Multiply, for each group, the bases that it names; an empty group gives 1.

        Args:
            bases: output of `split` or `power_tables`; other bases are right too, and slower.
            indices: (m,) positions in bases, the groups one after the other.
            ends: (groups,) end of each group in `indices`.

        Cost: the group's size less one, in products; in time little more than half of that where bases are split.
        """
        sizes = np.diff(ends, prepend=0)
        self.counts.products += len(indices) - int(np.count_nonzero(sizes))
        factors, counts = _factors(bases, indices, sizes)
        values = [self._product(islice(factors, count)) for count in counts.tolist()]
        return Residues(values, _sum_groups(bases.exponents, indices, sizes))

    def _product(self, factors: Iterator[int]) -> int:
        modulus = self.modulus
        total = next(factors, _UNIT)
        for factor in factors:
            total = total * factor % modulus
        return total

    def bucket_products(self, bases: Residues, indices: Indices, ends: Indices, largest: int) -> Residues:
        """Return the product of all g_d^d for each `largest` consecutive groups g_largest, .., g_1.

        Args:
            bases, indices, ends: see `multiply_groups`.

        Cost: two products a group in addition to those of `multiply_groups`.
        """
        sizes = np.diff(ends, prepend=0)
        self.counts.products += len(indices) - int(np.count_nonzero(sizes)) + 2 * (len(ends) - len(ends) // largest)
        factors, counts = _factors(bases, indices, sizes)
        values = [self._running_product(factors, buckets) for buckets in counts.reshape(-1, largest).tolist()]
        sums = _sum_groups(bases.exponents, indices, sizes)
        weighted = map(mul, sums, cycle(range(largest, 0, -1)))
        return Residues(values, [sum(islice(weighted, largest), _ZERO) for _ in values])

    def _running_product(self, factors: Iterator[int], counts: list[int]) -> int:
        modulus = self.modulus
        running: int = _UNIT
        total: int = _UNIT
        for count in counts:
            for factor in islice(factors, count):
                running = running * factor % modulus
            total = total * running % modulus
        return total

    # --- inverses -----------------------------------------------------------------------------------

    def inverses(self, a: Residues) -> Residues:
        """Return 1 / a_i; one inversion for all, three products an element.

        Raises:
            RangeError: an element is not prime to n.
        """
        split, inverse = self._split(a)
        self.counts.products -= len(a)  # counted by _split for the split itself
        return self._inverse_of_split(split, inverse)

    def split(self, a: Residues) -> Residues:
        """Return the same vector with values below n; four products an element."""
        return self._split(a)[0]

    def split_with_inverses(self, a: Residues) -> Residues:
        """Return the vector and, after it, its inverses, all of them split; four products an element."""
        split, inverse = self._split(a)
        return Residues.concatenate([split, self._inverse_of_split(split, inverse)])

    def _split(self, a: Residues) -> tuple[Residues, list[int]]:
        """Split c = u + h n = u (1 + n)^(h / u), with u = c mod n; also return 1 / u mod n."""
        n = self.n
        pairs = [gmpy2.f_divmod(value, n) for value in a.values]
        units = [unit for _, unit in pairs]
        inverse = self._inverses_mod_n(units)
        self.counts.products += 4 * len(a)
        exponents = [
            high * inv % n + exponent for (high, _), inv, exponent in zip(pairs, inverse, a.exponents, strict=True)
        ]
        return Residues(units, exponents, split=True), inverse

    def _inverse_of_split(self, split: Residues, inverse: list[int]) -> Residues:
        """Return the inverse: u u' = 1 + s n, hence 1 / u = u' (1 + n)^-s."""
        exponents = [
            -exponent - unit * inv // self.n
            for unit, inv, exponent in zip(split.values, inverse, split.exponents, strict=True)
        ]
        return Residues(inverse, exponents, split=True)

    def _inverses_mod_n(self, units: list[int]) -> list[int]:
        """Invert by Montgomery's trick: prefix products forward, one inversion, back again."""
        n = self.n
        prefixes = [mpz(1)]
        for unit in units:
            prefixes.append(prefixes[-1] * unit % n)
        self.counts.inversions += 1
        try:
            back = gmpy2.invert(prefixes.pop(), n)
        except ZeroDivisionError:
            raise RangeError("a ciphertext is not prime to its modulus") from None
        inverses = [mpz(0)] * len(units)
        for i in range(len(units) - 1, -1, -1):
            inverses[i] = back * prefixes[i] % n
            back = back * units[i] % n
        return inverses

    # --- powers -------------------------------------------------------------------------------------

    def powers(self, bases: Residues, exponent: int) -> Residues:
        """Return base_i^exponent for one exponent >= 0, without Python's lock.

        The time taken and the memory read reveal how many digits an exponent has; GMP reveals more of it.

        Cost: power_products(exponent) an element by GMP, products_of_power(exponent) + 2 by the vector unit.
        """
        if not len(bases):
            return bases
        unit = self._unit_for_powers(len(bases), exponent)
        if unit is None:
            self.counts.products += len(bases) * power_products(exponent)
            values = list(gmpy2.powmod_base_list(bases.values, mpz(exponent), self.modulus))
        else:
            self.counts.products += len(bases) * (products_of_power(exponent) + 2)
            values = unit.integers(unit.powers(unit.rows(bases.values), exponent))
        return Residues(values, [e * exponent % self.n for e in bases.exponents])

    def _unit_for_powers(self, count: int, exponent: int) -> VectorUnit | None:
        bits = int(exponent).bit_length()
        many = bits >= LEAST_POWER_BITS and count * bits >= LEAST_POWERS_BITS
        return self.unit if many else None

    def multiply_shifted(self, bases: Residues, size: int, shift_bits: int) -> Residues:
        """Multiply each `size` consecutive elements, the t-th to the power 2^(shift_bits t).

        Cost of an element: shift_bits + 2 products by the vector unit, power_products(2^shift_bits) + 1 by GMP.
        """
        if self.unit is not None and len(bases) >= size > 1:
            return self._multiply_shifted_by_unit(self.unit, bases, size, shift_bits)
        total = bases[size - 1 :: size]
        for t in range(size - 2, -1, -1):  # Horner, all products at once
            total = self.products(self.powers(total, 1 << shift_bits), bases[t::size])
        return total

    def _multiply_shifted_by_unit(self, unit: VectorUnit, bases: Residues, size: int, shift_bits: int) -> Residues:
        before = unit.multiplied
        highest_first = np.arange(len(bases)).reshape(-1, size)[:, ::-1]
        values = unit.integers(unit.multiply_groups(unit.rows(bases.values), highest_first, shift_bits))
        self.counts.products += unit.multiplied - before
        exponents = [
            sum((exponent << shift_bits * t for t, exponent in enumerate(bases.exponents[start : start + size])), _ZERO)
            for start in range(0, len(bases), size)
        ]
        return Residues(values, [exponent % self.n for exponent in exponents])

    def nth_powers(self, units: Iterable[int]) -> Residues:
        """Return r^n for each r prime to n: encryptions of zero; power_products(n) each."""
        return self.powers(self.residues(units), int(self.n))

    def powers_each(self, bases: Residues, exponents: Sequence[int]) -> Residues:
        """Return base_i^exponent_i, of any sign; power_products(|exponent_i|) each, an inverse for a negative one."""
        negative = [i for i, exponent in enumerate(exponents) if exponent < 0]
        bases = self._invert_at(bases, negative) if negative else bases
        sizes = [abs(int(exponent)) for exponent in exponents]
        self.counts.products += sum(map(power_products, sizes))
        modulus = self.modulus
        values = [gmpy2.powmod(base, size, modulus) for base, size in zip(bases.values, sizes, strict=True)]
        return Residues(values, [e * size % self.n for e, size in zip(bases.exponents, sizes, strict=True)])

    def _invert_at(self, bases: Residues, where: list[int]) -> Residues:
        inverses = self.inverses(bases.take(where))
        values, exponents = list(bases.values), list(bases.exponents)
        for i, value, exponent in zip(where, inverses.values, inverses.exponents, strict=True):
            values[i], exponents[i] = value, exponent
        return Residues(values, exponents)

    # --- tables -------------------------------------------------------------------------------------

    def power_tables(self, bases: Residues, size: int) -> Residues:
        """Return base^0 .. base^(size - 1) of each base, one table after the other, all split.

        Cost: one product an entry, and four a base.
        """
        tables = []
        for base in self._table_entries(bases):
            table = [_ONE]
            for _ in range(size - 1):
                table.append(_multiply(table[-1], base, self.n))
            tables.append(table)
        return self._as_residues(tables)

    def subset_tables(self, bases: Residues, group: int) -> Residues:
        """Return the products of all subsets of each `group` consecutive bases, all split.

        Entry e of a table is the product of the bases whose bit is set in e, lowest bit first. The last table is
        smaller where the bases do not fill it. Cost: one product an entry, and four a base.
        """
        entries = self._table_entries(bases)
        tables = []
        for start in range(0, len(entries), group):
            table = [_ONE]
            for base in entries[start : start + group]:
                table += [_multiply(entry, base, self.n) for entry in table]
            tables.append(table)
        return self._as_residues(tables)

    def _table_entries(self, bases: Residues) -> list[_Entry]:
        split, inverse = self._split(bases)
        return list(zip(split.values, split.exponents, inverse, strict=True))

    def _as_residues(self, tables: list[list[_Entry]]) -> Residues:
        self.counts.products += sum(map(len, tables))
        entries = [entry for table in tables for entry in table]
        return Residues([entry[0] for entry in entries], [entry[1] for entry in entries], split=True)


def _factors(bases: Residues, indices: Indices, sizes: Indices) -> tuple[Iterator[int], Indices]:
    """Return the values that the groups name, and their number by group; split values in pairs, unreduced below n^2."""
    values = bases.values
    if not bases.split:
        return map(values.__getitem__, indices.tolist()), sizes
    odd = sizes % 2
    if odd.any():  # a value without a partner gets 1 as its partner
        indices = np.insert(indices, np.cumsum(sizes)[odd == 1], len(values))
        values = [*values, _UNIT]
    where, value = indices.tolist(), values.__getitem__
    return map(mul, map(value, where[::2]), map(value, where[1::2])), (sizes + odd) // 2


def _sum_groups(exponents: list[int], indices: Indices, sizes: Indices) -> list[int]:
    if not any(exponents):
        return [_ZERO] * len(sizes)
    terms = map(exponents.__getitem__, indices.tolist())
    return [sum(islice(terms, size), _ZERO) for size in sizes.tolist()]


def _multiply(a: _Entry, b: _Entry, n: int) -> _Entry:
    """Multiply: u v = q n + w = w (1 + n)^(q / w); the inverse of w is the product of the inverses."""
    carry, unit = gmpy2.f_divmod(a[0] * b[0], n)
    inverse = a[2] * b[2] % n
    return unit, (a[1] + b[1] + carry * inverse) % n, inverse


_WINDOWS = (7, 25, 81, 241, 673, 1793)  # bits of an exponent past which GMP's sliding window widens


def power_products(exponent: int) -> int:
    """Count the products of one power by GMP's window of w bits: a squaring a bit, a table, a product every w + 1."""
    bits = int(exponent).bit_length()
    if bits < 2:
        return 0
    window = 1 + sum(bits > limit for limit in _WINDOWS)
    return bits - 1 + (1 << (window - 1)) + bits // (window + 1)
