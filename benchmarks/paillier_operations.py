"""The operations that benchmarks.paillier times, and the same through python-paillier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from benchmarks.in_turn import in_turn
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
PRODUCTS = 500  # at a time, for the time of one

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Operation:
    """One operation in both libraries.

    Attributes:
        name: as the table shows it.
        per: what the time is given for.
        count: of those in one run.
        run: our way.
        phe: python-paillier's way; None where it has none.
        phe_count: how many of what is counted one run of it does.
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
    """Medians; the time of a product is taken in every round, before and after ours."""
    runs: dict[str, Callable[[], object]] = {
        "product": partial(multiply, kernel.modulus),
        "half product": partial(multiply, kernel.n),
        "ours": operation.run,
        "product again": partial(multiply, kernel.modulus),
    }
    if operation.phe is not None:
        runs["phe"] = operation.phe
    kernels = (kernel, *operation.halves)
    before = [one.counts.products for one in kernels]
    times = in_turn(runs, rounds)
    products, *halves = ((one.counts.products - n) / times.rounds for one, n in zip(kernels, before, strict=True))
    half_products = sum(halves) + operation.mod_n
    product_s = (times.median("product") + times.median("product again")) / 2 / PRODUCTS
    bound_s = products * product_s + half_products * times.median("half product") / PRODUCTS
    figures: dict[str, Any] = {
        "operation": operation.name,
        "per": operation.per,
        "us": times.median("ours") / operation.count * 1e6,
        "products": products / operation.count,
        "half_products": half_products / operation.count,
        "product_us": product_s * 1e6,
        "bound_us": bound_s / operation.count * 1e6,
        "over_bound": times.median("ours") / bound_s,
        "rounds": times.rounds,
    }
    if operation.phe is not None:
        figures["phe_us"] = times.median("phe") / operation.phe_count * 1e6
        figures["speedup"] = times.ratio("phe", "ours") * operation.count / operation.phe_count
    return figures


def multiply(modulus: int) -> None:
    """PRODUCTS products of numbers of the modulus' size."""
    x, y = modulus * 2 // 3, modulus * 3 // 5
    for _ in range(PRODUCTS):
        x = x * y % modulus


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
        """Its table is made at the first draw."""
        return ShortExponent(self.public_key)

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
        """Distinct ciphertexts for the price of a product each: of every pair of a few hundred encryptions."""
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
    """X [[w]] with so many rows."""
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
    """PACKS full ciphertexts."""
    slots = pack(subject.row[:1], SLOT_BITS).layout.slots
    return encrypt_packed(subject.plain(slots * PACKS, bits=60), SLOT_BITS, subject.fast)


def threshold(subject: Subject, rounds: int) -> dict[str, Any]:
    """Two parties: one partial decryption and the combination, over bare powers of as many ciphertexts."""
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
        "rounds": times.rounds,
    }
