"""The operations that benchmarks.paillier times, and the same through python-paillier."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from benchmarks.kit.in_turn import Times, in_turn, median_ratio
from benchmarks.kit.products import GMP, VECTOR_UNIT, Products, in_microseconds
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, Randomisers, ReceivedCiphertext
from blindfit.algorithms.paillier.interop import private_key_to_phe, vector_to_phe
from blindfit.algorithms.paillier.kernel import Kernel
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import PackedVector, encrypt_packed, pack
from blindfit.algorithms.paillier.randomisers import FullExponent, OwnKey, ShortExponent
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.threshold import combine, deal, partial_decrypt
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt, encrypt

ROWS, COLUMNS = 1024, 20
VALUE_BITS = 16  # of a plain number of the matrices, with its sign
SLOT_BITS = 96
PACKS = 4
PHE_ROWS, PHE_COLUMNS = 64, 4  # a part of the matrix: python-paillier's cost is linear in it

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Operation:
    """One operation in both libraries.

    Attributes:
        name: name in the table.
        per: unit for which the time is given.
        count: number of these units in one run.
        run: our operation.
        phe: operation of python-paillier; None if it has no such operation.
        phe_count: number of units in one run of `phe`.
        halves: the kernels mod p^2 and q^2 that take part, whose products are of half the size.
        mod_n: products mod n, also of half the size, that no kernel counts.
    """

    name: str
    per: str
    count: int
    run: Callable[[], object]
    phe: Callable[[], object] | None = None
    phe_count: int = 1
    halves: tuple[Kernel, ...] = ()
    mod_n: int = 0


def measure(operation: Operation, kernel: Kernel, rounds: int) -> dict[str, Any]:
    """Return the medians of an operation.

    Products are timed in every round, and the bound of a round uses the times of this round.
    """
    full, half = Products("product", kernel.modulus), Products("half product", kernel.n)
    runs: dict[str, Callable[[], object]] = {**full.runs, **half.runs, "ours": operation.run}
    if operation.phe is not None:
        runs["phe"] = operation.phe
    before, before_half = _counted([kernel]), _counted(operation.halves)
    times = in_turn(runs, rounds)
    products = _per_round(_counted([kernel]), before, times)
    half_products = _per_round(_counted(operation.halves), before_half, times)
    half_products[GMP] += operation.mod_n
    costs = [*_costs(products, full, times), *_costs(half_products, half, times)]
    bounds_s = [sum(of_round) for of_round in zip(*costs, strict=True)]
    figures: dict[str, Any] = {
        "operation": operation.name,
        "per": operation.per,
        "us": times.median("ours") / operation.count * 1e6,
        "products": sum(products.values()) / operation.count,
        "half_products": sum(half_products.values()) / operation.count,
        "by_vector_unit": (products[VECTOR_UNIT] + half_products[VECTOR_UNIT])
        / (sum(products.values()) + sum(half_products.values())),
        **in_microseconds({unit: statistics.median(taken) for unit, taken in full.seconds(times).items()}),
        "bound_us": statistics.median(bounds_s) / operation.count * 1e6,
        "over_bound": median_ratio(times.seconds["ours"], bounds_s),
        "rounds": times.rounds,
    }
    if operation.phe is not None:
        figures["phe_us"] = times.median("phe") / operation.phe_count * 1e6
        figures["speedup"] = times.ratio("phe", "ours") * operation.count / operation.phe_count
    return figures


def _counted(kernels: Sequence[Kernel]) -> dict[str, int]:
    """Return the products so far, by the unit that computed them.

    Kernels count the products of both units, a vector unit only its own.
    """
    by_vector_unit = sum(kernel.unit.multiplied for kernel in kernels if kernel.unit is not None)
    return {GMP: sum(kernel.counts.products for kernel in kernels) - by_vector_unit, VECTOR_UNIT: by_vector_unit}


def _per_round(after: dict[str, int], before: dict[str, int], times: Times) -> dict[str, float]:
    return {unit: (count - before[unit]) / times.rounds for unit, count in after.items()}


def _costs(counts: dict[str, float], size: Products, times: Times) -> list[list[float]]:
    """Return the seconds of the products in every round, for each unit of this processor."""
    return [[counts[unit] * taken for taken in seconds] for unit, seconds in size.seconds(times).items()]


@dataclass
class Subject:
    """One key, and vectors under it in both libraries."""

    private_key: PrivateKey
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def __post_init__(self) -> None:
        self.public_key = self.private_key.public_key
        self.kernel = self.public_key.kernel
        self.phe_private_key = private_key_to_phe(self.private_key)
        self.phe_public_key = self.phe_private_key.public_key

    @cached_property
    def fast(self) -> ShortExponent:
        """Source of randomness as in a long training. Its table is made at the first draw."""
        source = ShortExponent(self.public_key)
        source._base.widen()
        return source

    def plain(self, *shape: int, bits: int = VALUE_BITS) -> Fixed:
        most = (1 << (bits - 1)) - 1
        return Fixed.from_integers(self.generator.integers(-most, most, shape, endpoint=True))

    @cached_property
    def column(self) -> EncryptedVector[FreshCiphertext]:
        return encrypt(self.plain(ROWS, bits=24), self.fast)

    @cached_property
    def phe_column(self) -> list[Any]:
        return vector_to_phe(self.column)

    @cached_property
    def row(self) -> EncryptedVector[FreshCiphertext]:
        return encrypt(self.plain(COLUMNS, bits=24), self.fast)

    def long_column(self, rows: int) -> EncryptedVector[Ciphertext]:
        """Return distinct ciphertexts for the cost of one product each: sums of pairs of a few hundred encryptions."""
        few = 2 + int((2 * rows) ** 0.5)
        encrypted = encrypt(self.plain(few, bits=24), self.fast)
        first, second = np.triu_indices(few, 1)
        return encrypted.take(first[:rows].tolist()) + encrypted.take(second[:rows].tolist())


# --- one by one -------------------------------------------------------------------------------------


def operations(subject: Subject) -> Iterator[Operation]:
    private_key, phe_key = subject.private_key, subject.phe_public_key
    plain = list(map(int, subject.plain(4, bits=24).values))
    yield from _encryptions(subject, lambda: [phe_key.encrypt(value) for value in plain], len(plain))
    column, phe_column = subject.column, subject.phe_column
    primes = private_key._primes  # their kernels count what the key's own does not
    yield Operation(
        "decrypt", "ciphertext", 32, partial(decrypt, column[:32], private_key),
        lambda: [subject.phe_private_key.decrypt(number) for number in phe_column[:32]], 32,
        halves=tuple(prime.kernel for prime in primes), mod_n=32,
    )  # fmt: skip
    yield Operation(
        "add", "ciphertext", ROWS, lambda: column + column,
        lambda: [a + b for a, b in zip(phe_column, phe_column, strict=True)], ROWS,
    )  # fmt: skip
    yield columns_operation(subject, column)
    yield rows_operation(subject, ROWS)
    slots = packed(subject).layout.slots
    yield Operation(
        "pack", "value", slots * PACKS, partial(pack, column[: slots * PACKS], SLOT_BITS),
        partial(_phe_pack, phe_column[:slots]), slots,
    )  # fmt: skip
    width, data = column.ciphertext.to_wire()
    received = ReceivedCiphertext(width, data)
    yield Operation(
        "check received", "ciphertext", ROWS,
        lambda: received.open(subject.public_key, length=ROWS, culprit="peer"), mod_n=ROWS,
    )  # fmt: skip


def _encryptions(subject: Subject, phe: Callable[[], object], phe_count: int) -> Iterator[Operation]:
    def one(name: str, randomisers: Randomisers, count: int, halves: tuple[Kernel, ...] = ()) -> Operation:
        run = partial(encrypt, subject.plain(count, bits=24), randomisers)
        return Operation(name, "ciphertext", count, run, phe, phe_count, halves)

    own_key = OwnKey(subject.private_key)
    for base in (own_key._mod_p2, own_key._mod_q2):
        base.widen()
    yield one("encrypt, hs^a", subject.fast, 256)
    yield one("encrypt, r^n", FullExponent(subject.public_key), 8)
    yield one("encrypt, own key", own_key, 256, (own_key._mod_p2.kernel, own_key._mod_q2.kernel))


def columns_operation(subject: Subject, column: EncryptedVector[Ciphertext]) -> Operation:
    """X^T [[w]] with as many rows as the vector has."""
    matrix = subject.plain(len(column), COLUMNS)
    numbers = subject.phe_column[:PHE_ROWS]
    part = matrix.values[:PHE_ROWS, :PHE_COLUMNS].T.tolist()
    return Operation(
        "X^T [[w]]", "element", len(column) * COLUMNS, partial(columns_dot, matrix, column),
        lambda: [_phe_dot(numbers, factors) for factors in part], len(numbers) * PHE_COLUMNS,
    )  # fmt: skip


def rows_operation(subject: Subject, rows: int) -> Operation:
    """Return the operation X [[w]] with this many rows."""
    matrix = subject.plain(rows, COLUMNS)
    numbers = vector_to_phe(subject.row)
    part = matrix.values[: PHE_ROWS // 4].tolist()
    return Operation(
        "X [[w]]", "element", rows * COLUMNS, partial(rows_dot, matrix, subject.row),
        lambda: [_phe_dot(numbers, factors) for factors in part], len(part) * COLUMNS,
    )  # fmt: skip


def _phe_dot(numbers: Sequence[Any], factors: Sequence[int]) -> Any:
    total = numbers[0] * factors[0]
    for number, factor in zip(numbers[1:], factors[1:], strict=True):
        total = total + number * factor
    return total


def _phe_pack(numbers: Sequence[Any]) -> Any:
    total = numbers[-1]
    for number in numbers[-2::-1]:
        total = total * (1 << SLOT_BITS) + number
    return total


# --- threshold decryption -----------------------------------------------------------------------------


def packed(subject: Subject) -> PackedVector[FreshCiphertext]:
    """Pack full ciphertexts."""
    slots = pack(subject.row[:1], SLOT_BITS).layout.slots
    return encrypt_packed(subject.plain(slots * PACKS, bits=60), SLOT_BITS, subject.fast)


def threshold(subject: Subject, rounds: int) -> dict[str, Any]:
    """Measure one partial decryption and the combination by two parties, over as many bare powers by GMP."""
    vector, shares = packed(subject), deal(subject.private_key, 2)
    other = partial_decrypt(vector, shares[1])
    numbers = subject.kernel.integers(vector.ciphertext.residues)
    exponent = gmpy2.mpz(subject.private_key.p * subject.private_key.q) ** 2 - 2  # twice the key's bits
    times = in_turn(
        {
            "power": lambda: [gmpy2.powmod(number, exponent, subject.kernel.modulus) for number in numbers],
            "ours": lambda: combine(vector, [partial_decrypt(vector, shares[0]), other], 2),
            "pack": partial(pack, subject.column[: len(vector)], SLOT_BITS),
        },
        rounds,
    )
    return {
        "slots": vector.layout.slots,
        "power_us": times.median("power") / PACKS * 1e6,
        "us_per_value": times.median("ours") / len(vector) * 1e6,
        "pack_us_per_value": times.median("pack") / len(vector) * 1e6,
        "over_bound": times.ratio("ours", "power"),
        "speedup": times.ratio("power", "ours"),
        "rounds": times.rounds,
    }
