"""The cost of a Taylor training: operations of algorithms/paillier are counted, and timed on this machine.

Randomisers are most of the cost: one for every ciphertext that is sent, so that each party makes one for each row of
an epoch. A party makes them while it waits for the others. With a machine for each party, the party with the most
work sets the pace; on one machine all parties share its cores.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gmpy2
import numpy as np
from gmpy2 import mpz

from blindfit.algorithms.alignment.psi import POINT_BYTES
from blindfit.algorithms.paillier import vector_sums
from blindfit.algorithms.paillier.engines import engine_of
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.multi_exponentiation import column_powers, one_by_one_cost, plan_columns
from blindfit.algorithms.paillier.randomisers import FixedBase, RandomiserPool
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.randomness import system_uniform

MEASURE_S = 0.1  # for each operation
BATCH = 256  # residues
POOL_CHUNK = RandomiserPool.CHUNK
SUM_COLUMNS, SUM_BITS = 16, 15
REFERENCE_BATCH = 4
REFERENCE_BITS = 15  # of a factor in a sum of products, with its sign
BUSY = 0.88  # used share of a machine's cores if all parties share it: they also wait for each other
# The unit is one product, so that the values follow the speed of the machine:
MESSAGE = 450  # packing, TLS, unpacking, waking up: 1.8 ms
START = 40_000  # for each data party, mainly tables of randomisers: 0.16 s
RECEIVED = 2  # for a ciphertext that arrives: its check, and an addition
SENT = 3  # for a ciphertext that is sent: the product with its randomiser, and its normal form
BYTES_PER_POSITION = 4
BYTES_PER_SCORE = 8


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of one core of this machine if nothing else uses it. A product includes its overhead."""

    product_s: float
    randomiser_s: float
    decryption_s: float
    unit_product: float | None = None  # of a vector unit in a sum of products, in products; None without the unit


@dataclass(frozen=True, slots=True)
class Work:
    products: float = 0.0
    randomisers: int = 0
    decryptions: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.products + other.products,
            self.randomisers + other.randomisers,
            self.decryptions + other.decryptions,
        )

    def seconds(self, speed: Speed) -> float:
        return (
            self.products * speed.product_s
            + self.randomisers * speed.randomiser_s
            + self.decryptions * speed.decryption_s
        )


def measure(key_bits: int) -> Speed:
    """Measure operations under a modulus whose key nobody has; this takes half a second."""
    kernel = Kernel(_modulus(key_bits))
    a, b = (_units(kernel, BATCH) for _ in range(2))
    base = FixedBase(kernel, _unit(kernel), key_bits // 2)
    product_s = _seconds_each(lambda: kernel.products(a, b), BATCH)
    return Speed(
        product_s,
        _seconds_each(lambda: base.random_powers(POOL_CHUNK, system_uniform), POOL_CHUNK),
        _seconds_each(lambda: _decrypt_like(kernel, int(a.values[0])), 1),
        None if kernel.unit is None else _unit_product_seconds(kernel, a) / product_s,
    )


def _unit_product_seconds(kernel: Kernel, bases: Residues) -> float:
    """Return the seconds of one product in a sum of products, with all the work around it."""
    factors = np.array([[secrets.randbits(SUM_BITS) for _ in range(SUM_COLUMNS)] for _ in range(len(bases))])
    return _seconds_each(
        lambda: column_powers(kernel, bases, factors), vector_sums.column_products(len(bases), SUM_COLUMNS, SUM_BITS)
    )


def measure_reference(key_bits: int) -> Speed:
    """Measure python-paillier: a power for each element of a sum of products, and r^n for a randomiser.

    Raises:
        ConfigError: python-paillier is not installed.
    """
    kernel = engine_of("phe").kernel(_modulus(key_bits))
    bases = _units(kernel, REFERENCE_BATCH)
    numbers = [(-1) ** i * ((1 << REFERENCE_BITS) - 1 - i) for i in range(REFERENCE_BATCH)]
    factors = np.array(numbers, dtype=np.int64)[:, None]
    return Speed(
        _seconds_each(
            lambda: column_powers(kernel, bases, factors), one_by_one_cost(REFERENCE_BATCH, 1, REFERENCE_BITS)
        ),
        _seconds_each(lambda: kernel.nth_powers(bases.values), REFERENCE_BATCH),
        _seconds_each(lambda: _decrypt_like(kernel, bases.values[0]), 1),
    )


def _modulus(key_bits: int) -> int:
    return secrets.randbits(key_bits) | 1 << (key_bits - 1) | 1


def _units(kernel: Kernel, count: int) -> Residues:
    return kernel.residues(_unit(kernel) for _ in range(count))


def _unit(kernel: Kernel) -> int:
    """Return a random number that is prime to n, as ciphertexts are."""
    while gmpy2.gcd(unit := secrets.randbelow(int(kernel.modulus)), kernel.n) != 1:
        pass
    return unit


def _seconds_each(operation: Callable[[], object], count: float) -> float:
    """Return seconds of this thread's own time, so that other programs do not count."""
    started, rounds = time.thread_time(), 0
    while (taken := time.thread_time() - started) < MEASURE_S:
        operation()
        rounds += 1
    return taken / (rounds * count)


def _decrypt_like(kernel: Kernel, value: int) -> None:
    """Compute two powers of the size of a decryption's. The moduli are not primes, and nothing is decrypted."""
    half = mpz(kernel.n) >> int(kernel.n).bit_length() // 2 | 1
    for _ in range(2):
        gmpy2.powmod(value, half - 1, half * half)


@dataclass(frozen=True)
class Cost:
    """
    Args:
        batch_rows: rows of every batch. held_out: rows of the hold-out loss. test: rows to evaluate on.
        rows: number of aligned rows.
    """

    parameters: TaylorParameters
    batch_rows: Sequence[int]
    held_out: int
    test: int
    rows: int
    one_by_one: bool = False  # the reference engine: a power for each element of a sum of products
    unit_product: float | None = None  # as Speed has it

    # --- time

    def epoch_seconds(self, speed: Speed, cores: int) -> float:
        """Return the seconds of an epoch, with all parties on one machine."""
        works = self._epoch_works()
        total = sum((work.seconds(speed) for work in works), self._epoch_messages() * MESSAGE * speed.product_s)
        return max(total / (BUSY * cores), *(work.seconds(speed) for work in works))

    def train_seconds(self, speed: Speed, cores: int, epochs: int) -> float:
        """Return the seconds of a training, with all parties on one machine that runs nothing else."""
        return self.start_seconds(speed) + epochs * self.epoch_seconds(speed, cores)

    def start_seconds(self, speed: Speed) -> float:
        """Return the seconds before the first epoch: tables, worker processes, labels of the hold-out rows."""
        passive = self._passive_count
        labels = self._work_to_send(passive * self.held_out)
        sums = Work(sum(self._dot(self.held_out, k, self._feature_bits) for k in self.parameters.columns[1:]))
        return START * (passive + 1) * speed.product_s + (labels + sums).seconds(speed)

    def longest_step_seconds(self, speed: Speed) -> float:
        """Return the largest time that peers wait for the slowest party."""
        works = [self._work_to_send(self.held_out)]
        for place, columns in enumerate(self.parameters.columns):
            works.append(self._batch_work(place, max(self.batch_rows), columns))
            if self.parameters.hold_out_loss:
                works.append(self._loss_work(place, columns))
        return max(work.seconds(speed) for work in works)

    def _epoch_works(self) -> list[Work]:
        """Return the work of each data party and of the key node in an epoch."""
        works = [Work() for _ in (*self.parameters.data_parties, self.parameters.key_node)]
        for rows in self.batch_rows:
            for place, columns in enumerate(self.parameters.columns):
                works[place] += self._batch_work(place, rows, columns)
                works[-1] += self._work_to_decrypt(self._count_packed(rows, columns))
        if self.parameters.hold_out_loss:
            for place, columns in enumerate(self.parameters.columns):
                works[place] += self._loss_work(place, columns)
            works[-1] += self._work_to_decrypt(1)
        return works

    def _batch_work(self, place: int, rows: int, columns: int) -> Work:
        """Return the work of one party in steps 1 to 3."""
        grid = self.parameters.grid
        is_passive, is_last = place > 0, place == self._passive_count
        received = rows * (is_passive + (not is_last))
        sums = self._dot(rows, columns, self._feature_bits) + columns * (9 / 8 * grid.slot_bits(rows) + 1)
        scaled = self._work_to_scale(rows, grid.residual_bits)
        return self._work_to_send(rows + self._count_packed(rows, columns)) + Work(RECEIVED * received + sums + scaled)

    def _loss_work(self, place: int, columns: int) -> Work:
        """Return the work of one party in step 6; the last party sends only the loss."""
        grid, rows = self.parameters.grid, self.held_out
        sums = self._work_to_scale(rows, grid.score_bits) + (
            self._has_factors and self._dot(rows, 1, 2 * grid.score_bits)
        )
        if place > 0:
            sums += self._dot(rows, 1, grid.score_bits) + self._dot(columns, 1, grid.weight_bits) + RECEIVED * rows
        return self._work_to_send(1 if place == self._passive_count else rows + 1) + Work(sums)

    def _work_to_send(self, ciphertexts: int) -> Work:
        return Work(SENT * ciphertexts, randomisers=ciphertexts)

    def _work_to_decrypt(self, ciphertexts: int) -> Work:
        return Work((RECEIVED + 1) * ciphertexts, decryptions=ciphertexts)  # one product blinds

    def _work_to_scale(self, rows: int, bits: int) -> float:
        """Return the work of [[f]] o values: a power for each row, if factors are encrypted."""
        return rows * 9 / 8 * bits if self._has_factors else 0.0

    @property
    def _has_factors(self) -> bool:
        return self.parameters.encrypted_factors or self.parameters.masked

    def _dot(self, rows: int, columns: int, bits: int) -> float:
        if self.one_by_one:
            return one_by_one_cost(rows, columns, bits)
        if self.unit_product is not None:
            return self.unit_product * vector_sums.column_products(rows, columns, bits)
        return plan_columns(rows, columns, bits).cost

    @property
    def _feature_bits(self) -> int:
        return (self.parameters.grid.feature_steps - 1).bit_length()

    @property
    def _passive_count(self) -> int:
        return len(self.parameters.data_parties) - 1

    def _count_packed(self, rows: int, columns: int) -> int:
        """Return the number of ciphertexts of a packed gradient."""
        slots = (self.parameters.key_bits - 2) // self.parameters.grid.slot_bits(rows)
        return -(-columns // slots)

    def _epoch_messages(self) -> int:
        data, passive = self._passive_count + 1, self._passive_count
        of_loss = passive + 1 + data if self.parameters.hold_out_loss else 0
        return len(self.batch_rows) * (2 * passive + 2 * data) + of_loss

    # --- bytes

    def epoch_bytes(self) -> int:
        """Return the bytes that all parties send in an epoch."""
        passive, width = self._passive_count, self._ciphertext_bytes
        sent = 0
        for rows in self.batch_rows:
            answers = sum(self.parameters.columns) * (self.parameters.grid.slot_bits(rows) // 8 + 2)
            gradients = sum(self._count_packed(rows, columns) for columns in self.parameters.columns)
            sent += (2 * passive * rows + gradients) * width + answers
        return sent + (passive * (self.held_out + 1) + 1) * width if self.parameters.hold_out_loss else sent

    def start_bytes(self) -> int:
        """Return the bytes of ids, labels of hold-out rows, and parts of test rows' scores."""
        data, passive, width = self._passive_count + 1, self._passive_count, self._ciphertext_bytes
        ids = data * self.rows * (data * POINT_BYTES + BYTES_PER_POSITION)
        labels = passive * self.held_out * width if self.parameters.hold_out_loss else 0
        factors = passive * self.rows * width if self.parameters.encrypted_factors else 0
        return ids + labels + factors + passive * self.test * BYTES_PER_SCORE

    @property
    def _ciphertext_bytes(self) -> int:
        return self.parameters.key_bits // 4
