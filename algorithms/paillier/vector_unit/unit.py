"""Products mod n^2 eight at a time, where the processor multiplies 52-bit limbs in vectors (AVX-512 IFMA).

One vector holds the same limb of eight numbers. So eight products run side by side and never wait for each other's
carries. A number is r + n s, r and s below 2 n, in Montgomery's form with R = 2^(52 limbs of n). Since n^2 vanishes, a
product needs no product of two s; and where the reduction of r r' to r'' takes m, r r' = r'' R - m n:

    (r + n s) (r' + n s') / R = r'' + n (r s' + s r' - m) / R

That is five products of half the size, where one mod n^2 as it stands takes eight; a square takes four. With 16 n < R
nothing has to be subtracted on the way ("almost Montgomery"). Branches and addresses depend on which rows are
multiplied and on an exponent's count of digits, never on the value of a number or exponent.

The machine code is made at run time (machine_code.py), so no compiler is needed. On any other processor `vector_unit`
gives None, and GMP does the work.

Source: Gueron, Krasnov 2016, "Accelerating big integer arithmetic using Intel IFMA extensions"; Walter 1999,
"Montgomery exponentiation needs no final subtractions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NoReturn

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from blindfit.algorithms.llvm import INTEGER, POINTER, binding, compile_functions
from blindfit.algorithms.paillier.vector_unit.shape import HALVES, LIMB_BITS, TABLE_SIZE, WINDOW_BITS

Rows = npt.NDArray[np.uint64]
"""(count, limbs): one number a row, the limbs of r and then those of s, lowest first, in Montgomery's form."""

SPARE_BITS = 4  # of R over n
WIDTHS = (8, 4)  # numbers side by side: four take half the time of eight
LEAST_BITS = 256  # of n: below, Python's own work is most of the time
_LIMB = np.uint64((1 << LIMB_BITS) - 1)
_FEATURES = ("avx512f", "avx512vl", "avx512ifma")


class VectorUnit:
    """Products modulo the square of one odd number, of rows of a table; see `vector_unit`."""

    def __init__(self, n: int) -> None:
        self.n = mpz(n)
        self.modulus = self.n * self.n
        self._half = limbs_of(n)
        self.limbs = 2 * self._half
        self._radix = mpz(1) << (LIMB_BITS * self._half)
        self._negated_inverse = int(-gmpy2.invert(self.n, 1 << LIMB_BITS) % (1 << LIMB_BITS))
        self.multiplied = 0  # products so far
        self._one = self._split([self._radix % self.modulus])
        self._to_form = self._split([self._radix * self._radix % self.modulus])  # multiplied, it puts the form on
        self._off_form = self._split([1])
        self._constants = np.concatenate([_limbs(self._half, [self.n])[0], self._offset(), self._one[0]])

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vector unit is not pickled: its modulus may be a secret")

    def rows(self, integers: Sequence[int]) -> Rows:
        """Convert numbers in [0, n^2) to rows; one product a row."""
        plain = self._split(integers)
        return self.products(plain, self._to_form.repeat(len(plain), axis=0))

    def integers(self, rows: Rows) -> list[int]:
        """Convert rows to numbers in [0, n^2); one product a row."""
        plain = self.products(rows, self._off_form.repeat(len(rows), axis=0))
        low, high = _join(plain[:, : self._half]), _join(plain[:, self._half :])
        n = self.n  # both halves are below 2 n: cheaper than reducing the whole
        return [r - n + n * ((s + 1) % n) if r >= n else r + n * (s % n) for r, s in zip(low, high, strict=True)]

    def power_tables(self, bases: Sequence[int], bits: int) -> Rows:
        """Return base^0 .. base^(2^bits - 1) of each base, one table after the other; a product an entry."""
        tables = np.empty((len(bases), 1 << bits, self.limbs), dtype=np.uint64)
        tables[:, 0] = self._one
        step = self.rows(bases)  # base^(2^bit)
        for bit in range(bits):
            size = 1 << bit
            lower = tables[:, :size].reshape(-1, self.limbs)
            tables[:, size : 2 * size] = self.products(lower, step.repeat(size, axis=0)).reshape(-1, size, self.limbs)
            step = self.products(step, step)
        return tables.reshape(-1, self.limbs)

    def products(self, a: Rows, b: Rows) -> Rows:
        """Return a_i b_i."""
        pairs = np.arange(2 * len(a)).reshape(2, -1).T
        return self.multiply_groups(np.concatenate([a, b]), pairs)

    def multiply_groups(self, table: Rows, indices: npt.NDArray[np.integer[Any]], squarings: int = 0) -> Rows:
        """Return, for each line of indices, shape (groups, factors), the product of the table's rows that it names.

        Before each next factor, the product so far is squared `squarings` times: Horner's scheme.

        Raises:
            IndexError: an index lies outside the table.
        """
        groups, factors = indices.shape
        if groups and factors and not 0 <= int(indices.min()) <= int(indices.max()) < len(table):
            raise IndexError("a factor lies outside the table")
        self.multiplied += groups * max(0, factors - 1) * (1 + squarings)
        return self._in_groups("horner", table, indices if factors else indices[:0], factors, squarings)

    def powers(self, rows: Rows, exponent: int) -> Rows:
        """Return row^exponent for one exponent >= 0; products_of_power(exponent) each.

        The products, and the memory read and written, are the same for all exponents of as many digits.
        """
        masks = _digit_masks(exponent)
        self.multiplied += len(rows) * products_of_power(exponent)
        indices = np.arange(len(rows))[:, None]
        return self._in_groups("powers", rows, indices, len(masks), masks.ctypes.data, 2 * TABLE_SIZE)

    def _in_groups(
        self,
        name: str,
        table: Rows,
        indices: npt.NDArray[np.integer[Any]],
        steps: int,
        argument: int,
        extra_halves: int = 0,
    ) -> Rows:
        """Return one row for each line of indices, computed side by side."""
        table = np.ascontiguousarray(table)
        out = np.empty((len(indices) + max(WIDTHS), self.limbs), dtype=np.uint64)
        for part, lanes in _parts(len(indices)):
            by_lane = _by_lane(indices[part], lanes)
            space = _zeros((HALVES + extra_halves) * (self._half + 1) * lanes)
            _compile(lanes)[name](
                out[part].ctypes.data,
                table.ctypes.data,
                by_lane.ctypes.data,
                len(by_lane),
                steps,
                argument,
                space.ctypes.data,
                self._constants.ctypes.data,
                self._half,
                self._negated_inverse,
            )
        return out[: len(indices)]

    def _split(self, integers: Sequence[int]) -> Rows:
        """Return r and s of numbers in [0, n^2), without Montgomery's form."""
        pairs = [gmpy2.f_divmod(integer, self.n) for integer in integers]
        r, s = (_limbs(self._half, [pair[which] for pair in pairs]) for which in (1, 0))
        return np.concatenate([r, s], axis=1)

    def _offset(self) -> npt.NDArray[np.uint64]:
        """Return the least multiple of n from R on; each limb has 2^52 from the next, so no limb of an m is larger."""
        offset = self.n * -(-self._radix // self.n)
        limbs: npt.NDArray[np.uint64] = _limbs(self._half, [offset - self._radix])[0] + _LIMB
        limbs[0] += np.uint64(1)
        return limbs


def limbs_of(n: int) -> int:
    """Return the number of limbs in which sixteen times n fits."""
    return -(-(int(n).bit_length() + SPARE_BITS) // LIMB_BITS)


def products_of_power(exponent: int) -> int:
    """Count the products of a power: a table, then WINDOW_BITS squarings and a product for each further digit."""
    return TABLE_SIZE - 1 + (_digits(exponent) - 1) * (WINDOW_BITS + 1)


def _digits(exponent: int) -> int:
    return max(1, -(-int(exponent).bit_length() // WINDOW_BITS))


def _digit_masks(exponent: int) -> npt.NDArray[np.uint64]:
    """Return masks, (digits, TABLE_SIZE), highest digit first: all ones where the digit is that entry."""
    count = _digits(exponent)
    octets = int(exponent).to_bytes(-(-count * WINDOW_BITS // 8), "little")
    bits = np.unpackbits(np.frombuffer(octets, dtype=np.uint8), bitorder="little")[: count * WINDOW_BITS]
    digits = bits.reshape(count, WINDOW_BITS) @ (1 << np.arange(WINDOW_BITS, dtype=np.int64))
    masks: npt.NDArray[np.uint64] = -(digits[::-1, None] == np.arange(TABLE_SIZE)).astype(np.uint64)
    return masks


def _parts(count: int) -> Iterator[tuple[slice, int]]:
    """Take eight at a time, and four where the rest fits."""
    wide, narrow = WIDTHS
    rest = count % wide
    full = count - rest if rest <= narrow else count
    if full:
        yield slice(0, full), wide
    if full < count:
        yield slice(full, count), narrow


def _by_lane(indices: npt.NDArray[np.integer[Any]], lanes: int) -> npt.NDArray[np.int64]:
    """Arrange as (groups, factors, lanes); spare lanes of the last group compute with the first row."""
    count, factors = indices.shape
    padded = np.zeros((-(-count // lanes) * lanes, factors), dtype=np.int64)
    padded[:count] = indices
    return np.ascontiguousarray(padded.reshape(-1, lanes, factors).transpose(0, 2, 1))


def _zeros(count: int) -> npt.NDArray[np.uint64]:
    """Return zeros that start at an address for vectors of 64 octets."""
    space = np.zeros(count + 7, dtype=np.uint64)
    first = -space.ctypes.data % 64 // 8
    return space[first : first + count]


def _limbs(count: int, integers: Sequence[int]) -> Rows:
    """Cut integers into limbs. Two limbs are thirteen octets: the first limb has six and a half."""
    pairs = -(-count // 2)
    octets = b"".join(int(integer).to_bytes(13 * pairs, "little") for integer in integers)
    padded = np.zeros((len(integers), pairs, 16), dtype=np.uint8)
    padded[..., :13] = np.frombuffer(octets, dtype=np.uint8).reshape(-1, pairs, 13)
    low = padded[..., :8].copy().view("<u8")[..., 0] & _LIMB
    high = padded[..., 6:14].copy().view("<u8")[..., 0] >> np.uint64(4) & _LIMB
    return np.ascontiguousarray(np.stack([low, high], axis=-1).reshape(len(integers), -1)[:, :count])


def _join(rows: Rows) -> list[mpz]:
    """Return the inverse of `_limbs`."""
    even = rows if rows.shape[1] % 2 == 0 else np.pad(rows, ((0, 0), (0, 1)))
    low, high = even[:, ::2], even[:, 1::2]
    octets = np.zeros((*low.shape, 13), dtype=np.uint8)
    octets[..., :8] = (low | high << np.uint64(LIMB_BITS))[..., None].view(np.uint8)
    octets[..., 8:] = (high >> np.uint64(64 - LIMB_BITS))[..., None].view(np.uint8)[..., :5]
    return [mpz(int.from_bytes(row.tobytes(), "little")) for row in octets]


def vector_unit(n: int) -> VectorUnit | None:
    """Return a vector unit for an odd n, mod n^2; None if this machine has no unit that agrees with GMP."""
    if n.bit_length() < LEAST_BITS or not _is_supported():
        return None
    unit = VectorUnit(n)
    return unit if _agrees_with_gmp(unit) else None


def _agrees_with_gmp(unit: VectorUnit) -> bool:
    """Compare products and powers of the largest numbers, which carry farthest, and of some others, in both widths."""
    top = unit.modulus - 1
    numbers = [mpz(0), mpz(1), top // 3, top * 5 // 7, top - 2, unit.n, unit.n - 1, top - unit.n, top]
    count, rows = len(numbers), unit.rows(numbers)
    triples = [(i, j, count - 1) for i in range(count) for j in range(count)]
    products = [numbers[i] * numbers[j] * top % unit.modulus for i, j, _ in triples]
    if unit.integers(unit.multiply_groups(rows, np.array(triples))) != products:
        return False
    exponent = int(unit.n % (1 << 64))
    powers = [gmpy2.powmod(number, exponent, unit.modulus) for number in numbers]
    shifted = [number**4 * top % unit.modulus for number in numbers]
    with_top = np.array([(i, count - 1) for i in range(count)])
    return (
        unit.integers(unit.powers(rows, exponent)) == powers
        and unit.integers(unit.multiply_groups(rows, with_top, squarings=2)) == shifted
    )


@cache
def _is_supported() -> bool:
    llvm = binding()
    features = llvm and llvm.get_host_cpu_features()
    return bool(features) and all(features.get(name, False) for name in _FEATURES)


@cache
def _compile(lanes: int) -> dict[str, Any]:
    """Compile the functions for `lanes` numbers side by side. Optimised loops would be no faster."""
    from blindfit.algorithms.paillier.vector_unit.machine_code import llvm_code

    first, last = (POINTER, POINTER, POINTER, INTEGER, INTEGER), (POINTER, POINTER, INTEGER, INTEGER)
    kinds = {"horner": (*first, INTEGER, *last), "powers": (*first, POINTER, *last)}
    return compile_functions(llvm_code(lanes), kinds, loops=False)
