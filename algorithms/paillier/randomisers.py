"""Encryptions of zero: they hide a plaintext, and they cause nearly all the cost of encryption.

    ShortExponent   hs^a, a of half the key's bits, from tables of powers. Fast; it takes trust in the key's maker, as
                    hs = 1 hides nothing.
    FullExponent    r^n with our own r. It takes no trust: the key's proof shows that r^n mixes.
    OwnKey          powers mod p^2 and mod q^2, joined, for the owner of the private key. Uniform among the powers of
                    one base, and half the size.

Source: Paillier 1999 (r^n); Damgard, Jurik, Nielsen 2010, section 4.2 (hs^a, from a short a).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from blindfit.algorithms.errors import BlindfitError, ConfigError, RangeError
from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.kernel import Counts, Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.workers import THIS_PROCESS, Workers, even_slices

WINDOW_BITS = 8
NARROW_BITS = 6  # a third of the entries, which stay in a cache: a vector unit makes them in a quarter of the time
NARROW_POWERS = 2048  # before the wide table is made; at 2048 bits it pays after 762 (GMP) or 4,000 (vector unit)
HIDING_BITS = 40  # extra bits of an exponent: it is then uniform in the group to 2^-40
LEAST_SHARE = 64  # randomisers for one task: fewer are not worth another process


def digits_of(bits: int, window_bits: int) -> int:
    return -(-bits // window_bits)


class FixedBase:
    """Random powers of one base from a table of its powers.

    The table holds base^(d 2^(w s)) for every digit d of w bits and position s: 2^w products a position, once. A
    power is then one product for each position: with GMP half of them without a reduction, with a vector unit eight
    at a time.
    """

    def __init__(self, kernel: Kernel, base: int, exponent_bits: int, window_bits: int = WINDOW_BITS) -> None:
        self.kernel, self.window_bits = kernel, window_bits
        self.positions = digits_of(exponent_bits, window_bits)
        shifted = [kernel.residues([base])]
        for _ in range(self.positions - 1):
            shifted.append(kernel.powers(shifted[-1], 1 << window_bits))
        bases = Residues.concatenate(shifted)
        self._unit = kernel.unit
        if self._unit is None:
            self._table = kernel.power_tables(bases, 1 << window_bits)
        else:
            self._rows = self._unit.power_tables(kernel.integers(bases), window_bits)
            kernel.counts.products += len(self._rows)

    def random_powers(self, count: int, uniform: UniformInt) -> Residues:
        """`count` powers with exponents uniform on [0, 2^(positions w)); `positions` products each."""
        return self.powers(random_digits(count, self.positions, self.window_bits, uniform))

    def powers(self, digits: npt.NDArray[np.integer]) -> Residues:
        """Return the powers whose exponents have these digits, shape (count, positions), lowest first."""
        entries = digits + (np.arange(self.positions, dtype=np.int64) << self.window_bits)
        if self._unit is not None:
            self.kernel.counts.products += entries.size
            return self.kernel.residues(self._unit.integers(self._unit.multiply_groups(self._rows, entries)))
        ends = np.arange(1, len(digits) + 1, dtype=np.int64) * self.positions
        return self.kernel.multiply_groups(self._table, entries.reshape(-1), ends)


class GrowingBase:
    """Any number of powers of one base: from a narrow table first, and from a wide one as soon as that pays.

    The same exponents have the same powers in both tables.
    """

    def __init__(self, kernel: Kernel, base: int, exponent_bits: int) -> None:
        self.kernel, self.positions = kernel, digits_of(exponent_bits, WINDOW_BITS)
        self._base, self._taken = base, 0
        self._table: FixedBase | None = None

    def widen(self) -> None:
        """Take the next powers from a wide table, as the caller knows that many will follow."""
        self._taken += NARROW_POWERS

    def random_powers(self, count: int, uniform: UniformInt) -> Residues:
        return self.powers(random_digits(count, self.positions, WINDOW_BITS, uniform))

    def powers(self, digits: npt.NDArray[np.integer]) -> Residues:
        """Return the powers, as FixedBase does, for digits of WINDOW_BITS bits."""
        self._taken += len(digits)
        window_bits = WINDOW_BITS if self._taken > NARROW_POWERS else NARROW_BITS
        if self._table is None or self._table.window_bits < window_bits:
            self._table = FixedBase(self.kernel, self._base, self.positions * WINDOW_BITS, window_bits)
        return self._table.powers(other_digits(digits, WINDOW_BITS, self._table.window_bits))


def other_digits(digits: npt.NDArray[np.integer], bits: int, other_bits: int) -> npt.NDArray[np.int64]:
    """Return the same exponents, shape (count, positions), in digits of `other_bits` bits."""
    count, width = len(digits), digits.shape[1] * bits
    positions = digits_of(width, other_bits)
    flat = ((digits[..., None] >> np.arange(bits)) & 1).reshape(count, width)
    padded = np.pad(flat, ((0, 0), (0, positions * other_bits - width)))
    return _join(padded.reshape(count, positions, other_bits))


def random_digits(count: int, positions: int, window_bits: int, uniform: UniformInt) -> npt.NDArray[np.int64]:
    """Draw uniform digits of `window_bits` bits, shape (count, positions)."""
    octets = -(-positions * window_bits // 8)
    drawn = uniform(1 << 8 * octets * count).to_bytes(octets * count, "big")
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(count, octets), axis=1)
    return _join(bits[:, : positions * window_bits].reshape(count, positions, window_bits))


def _join(bits: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Join bits, lowest first, to digits."""
    return np.asarray(bits @ (1 << np.arange(bits.shape[-1], dtype=np.int64)))


class ShortExponent:
    """A fast source of encryptions of zero hs^a with a of half the key's bits, for a key whose maker is trusted.

    Each costs bits / 12 products, from a table that is made at the first draw. With 2,048 bits the table has 10,944
    entries in 7 MB. After 2,048 draws each costs bits / 16 products, from another table of 32,768 entries in 20 MB.

    Args:
        public_key: the key, with an hs.
        workers: processes that share the powers, from `open_workers`; this process by default.
        uniform: source of uniform integers; the operating system's generator by default.

    Raises:
        ConfigError: the key has no hs.

    Example:
        >>> fast = paillier.ShortExponent(key.public_key)
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), fast)
        >>> paillier.decrypt(vector, key).to_reals().tolist()
        [0.5, 1.5]
    """

    def __init__(
        self, public_key: PublicKey, *, workers: Workers = THIS_PROCESS, uniform: UniformInt = system_uniform
    ) -> None:
        if public_key.hs is None:
            raise ConfigError(
                "the public key has no hs, which fast encryption needs",
                hint="a key made by Blindfit has one; under a key from elsewhere use FullExponent",
            )
        self.public_key, self._workers, self._uniform = public_key, workers, uniform
        self._base = GrowingBase(public_key.kernel, public_key.hs, public_key.bits // 2)

    def draw(self, count: int) -> Residues:
        """Return encryptions of zero.

        This process draws the digits and sends them to the workers, so the result does not depend on the workers.

        Args:
            count: number of encryptions.
        """
        parts = _parts(count, self._workers)
        if len(parts) <= 1:
            return self._base.random_powers(count, self._uniform)
        n, hs = int(self.public_key.n), int(self.public_key.hs or 0)
        digits = random_digits(count, self._base.positions, WINDOW_BITS, self._uniform).astype(np.uint8)
        tasks = [(n, hs, digits[part]) for part in parts]
        return _gather(self.public_key.kernel, self._workers.map(_short_powers, tasks))


class FullExponent:
    """A source of encryptions of zero r^n with r uniform and prime to n, for a key whose maker is not trusted.

    Each costs a full power. The key's proof shows that r^n hides: check it with `check_public_key`.

    Args:
        public_key: the key.
        workers: processes that share the powers, from `open_workers`; this process by default.
        uniform: source of uniform integers; the operating system's generator by default.

    Example:
        >>> slow = paillier.FullExponent(key.public_key)
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), slow)
        >>> paillier.decrypt(vector, key).to_reals().tolist()
        [0.5, 1.5]
    """

    def __init__(
        self, public_key: PublicKey, *, workers: Workers = THIS_PROCESS, uniform: UniformInt = system_uniform
    ) -> None:
        self.public_key, self._workers, self._uniform = public_key, workers, uniform

    def draw(self, count: int) -> Residues:
        """Return encryptions of zero.

        Args:
            count: number of encryptions.
        """
        n = int(self.public_key.n)
        units = [_random_unit(n, self._uniform) for _ in range(count)]
        kernel = self.public_key.kernel
        parts = _parts(count, self._workers, least=4)
        if len(parts) <= 1:
            return kernel.nth_powers(units)
        tasks = [(type(kernel), n, units[part]) for part in parts]
        return _gather(kernel, self._workers.map(_nth_powers, tasks))


class OwnKey:
    """A source of encryptions of zero for the owner of the private key, which stays in this process.

    It joins powers mod p^2 and mod q^2 with independent uniform exponents by CRT. Each costs bits / 6 products of half
    the size; after 2,048 of them, bits / 8.

    Args:
        private_key: the key.
        uniform: source of uniform integers; the operating system's generator by default.

    Example:
        >>> own = paillier.OwnKey(key)
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), own)
        >>> paillier.decrypt(vector, key).to_reals().tolist()
        [0.5, 1.5]
    """

    def __init__(self, private_key: PrivateKey, *, uniform: UniformInt = system_uniform) -> None:
        self.public_key = private_key.public_key
        self._uniform = uniform
        p, q = mpz(private_key.p), mpz(private_key.q)
        n = p * q
        base = self.public_key.hs or gmpy2.powmod(_random_unit(int(n), uniform), n, n * n)
        bits = self.public_key.bits // 2 + HIDING_BITS
        self._mod_p2 = GrowingBase(Kernel(p), base % (p * p), bits)
        self._mod_q2 = GrowingBase(Kernel(q), base % (q * q), bits)
        self._q2 = q * q
        self._q2_inverse = gmpy2.invert(self._q2, p * p)
        self._p2 = p * p

    def draw(self, count: int) -> Residues:
        """Return encryptions of zero.

        Args:
            count: number of encryptions.
        """
        mod_p2 = self._mod_p2.kernel.integers(self._mod_p2.random_powers(count, self._uniform))
        mod_q2 = self._mod_q2.kernel.integers(self._mod_q2.random_powers(count, self._uniform))
        joined = [b + (a - b) * self._q2_inverse % self._p2 * self._q2 for a, b in zip(mod_p2, mod_q2, strict=True)]
        return self.public_key.kernel.residues(joined)


class RandomiserPool:
    """A store of encryptions of zero that are made in idle time and drawn later, each once.

    Args:
        source: source that makes them.
        capacity: largest number in the store, at least 1.
        needed: number that the caller expects to draw. The store makes no more; any number may be drawn. None for no
            expectation.

    Raises:
        RangeError: the capacity is below 1.

    Example:
        >>> pool = paillier.RandomiserPool(randomisers, capacity=100)
        >>> pool.fill(10)
        >>> len(pool)
        10
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), pool)
        >>> len(pool)
        8
    """

    CHUNK = 32  # made at a time, so that `filling` ends within milliseconds

    def __init__(self, source: Randomisers, capacity: int, needed: int | None = None) -> None:
        if capacity < 1:
            raise RangeError(f"a pool of {capacity} randomisers holds none")
        self.public_key, self.capacity, self.needed = source.public_key, capacity, needed
        self._source, self._drawn = source, 0
        self._made: deque[Residues] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._made)

    def draw(self, count: int) -> Residues:
        """Return encryptions of zero from the store, and the rest from the source.

        Args:
            count: number of encryptions.
        """
        self._drawn += count
        drawn: list[Residues] = []
        with suppress(IndexError):
            while len(drawn) < count:
                drawn.append(self._made.popleft())
        if len(drawn) < count:
            with self._lock:  # a source is not made for two threads
                drawn.append(self._source.draw(count - len(drawn)))
        return Residues.concatenate(drawn)

    def fill(self, count: int | None = None) -> None:
        """Make more encryptions of zero, at most as many as fit.

        Args:
            count: number of encryptions; None makes as many as fit.
        """
        space = self._space()
        wanted = space if count is None else min(count, space)
        if wanted > 0:
            with self._lock:
                made = self._source.draw(wanted)
            self._made.extend(made[i : i + 1] for i in range(len(made)))

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Fill the store in a thread until the block ends or the store is full."""
        stop = threading.Event()

        def work() -> None:
            with suppress(BlindfitError):  # the next draw meets the error again, where a caller can act on it
                while not stop.is_set() and self._space() > 0:
                    self.fill(self.CHUNK)

        thread = threading.Thread(target=work, name="randomisers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _space(self) -> int:
        needed = self.capacity if self.needed is None else self.needed - self._drawn
        return min(self.capacity, needed) - len(self._made)


def randomisers_for(public_key: PublicKey, *, maker_trusted: bool, workers: Workers = THIS_PROCESS) -> Randomisers:
    """Return the fast source of encryptions of zero for a trusted maker of the key, and r^n for an untrusted one.

    Args:
        public_key: the key.
        maker_trusted: True if the key's maker is trusted to have chosen hs as Blindfit does.
        workers: processes that share the powers, from `open_workers`; this process by default.

    Returns:
        A ShortExponent, or a FullExponent if `maker_trusted` is False.

    Raises:
        ConfigError: the maker is trusted, and the key has no hs.

    Example:
        >>> type(paillier.randomisers_for(key.public_key, maker_trusted=False)).__name__
        'FullExponent'
    """
    return ShortExponent(public_key, workers=workers) if maker_trusted else FullExponent(public_key, workers=workers)


def _random_unit(n: int, uniform: UniformInt) -> int:
    while gmpy2.gcd(unit := uniform(n - 1) + 1, n) != 1:
        pass
    return unit


def _parts(count: int, workers: Workers, least: int = LEAST_SHARE) -> list[slice]:
    return even_slices(count, min(workers.count, count // least))


def _gather(kernel: Kernel, results: Sequence[tuple[Residues, Counts]]) -> Residues:
    for _, counts in results:
        kernel.counts.add(counts)
    return Residues.concatenate([residues for residues, _ in results])


# --- what workers run ------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _table_of(n: int, hs: int) -> FixedBase:
    return FixedBase(Kernel(n), hs, n.bit_length() // 2)


def _short_powers(n: int, hs: int, digits: npt.NDArray[np.uint8]) -> tuple[Residues, Counts]:
    table = _table_of(n, hs)
    table.kernel.counts = Counts()
    return table.powers(digits), table.kernel.counts


def _nth_powers(kernel_type: type[Kernel], n: int, units: list[Any]) -> tuple[Residues, Counts]:
    kernel = kernel_type(n)
    return kernel.nth_powers(units), kernel.counts
