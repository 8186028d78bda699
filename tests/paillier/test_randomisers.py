"""Encryptions of zero: each drawn once, of the law that their source claims, and repeatable from a seed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import gmpy2
import numpy as np
import numpy.typing as npt
import phe
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from blindfit.algorithms.errors import ComputeFailed, ConfigError, RangeError
from blindfit.algorithms.paillier import randomisers
from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.interop import private_key_from_phe
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.randomisers import (
    NARROW_BITS,
    NARROW_POWERS,
    WINDOW_BITS,
    FixedBase,
    FullExponent,
    GrowingBase,
    OwnKey,
    RandomiserPool,
    ShortExponent,
    other_digits,
    random_digits,
    randomisers_for,
)
from blindfit.algorithms.randomness import UniformInt, system_uniform
from tests.each_case import each_case
from tests.paillier.tools import PicklingWorkers, seeded

Make = Callable[[PrivateKey, UniformInt], Randomisers]


def without_hs(key: PrivateKey) -> PrivateKey:
    return PrivateKey(key.p, key.q, PublicKey(key.public_key.n, None))


def filled_pool(key: PrivateKey, uniform: UniformInt) -> RandomiserPool:
    pool = RandomiserPool(ShortExponent(key.public_key, uniform=uniform), capacity=10)
    pool.fill()
    return pool


SOURCES: dict[str, Make] = {
    "ShortExponent": lambda key, uniform: ShortExponent(key.public_key, uniform=uniform),
    "FullExponent": lambda key, uniform: FullExponent(key.public_key, uniform=uniform),
    "OwnKey": lambda key, uniform: OwnKey(key, uniform=uniform),
    "OwnKey without hs": lambda key, uniform: OwnKey(without_hs(key), uniform=uniform),
    "RandomiserPool": filled_pool,
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def drawn(source: Randomisers, count: int) -> list[int]:
    return [int(integer) for integer in source.public_key.kernel.integers(source.draw(count))]


def plaintexts(key: PrivateKey, integers: list[int]) -> list[int]:
    return key.decrypt_residues(key.public_key.kernel.residues(integers))


# --- every source ---------------------------------------------------------------------------------


@every_source
def test_draws_are_distinct_encryptions_of_zero(make: Make, insecure_test_key: PrivateKey) -> None:
    n, source = insecure_test_key.public_key.n, make(insecure_test_key, system_uniform)
    integers = [integer for count in (0, 1, 150, 7) for integer in drawn(source, count)]
    assert len(set(integers)) == len({integer % n for integer in integers}) == 158
    assert plaintexts(insecure_test_key, integers) == [0] * 158
    assert 1 not in {integer % n for integer in integers}


@every_source
def test_draws_at_2048_bits(make: Make, real_key: PrivateKey) -> None:
    integers = drawn(make(real_key, system_uniform), 6)
    assert len(set(integers)) == 6
    assert plaintexts(real_key, integers) == [0] * 6


@every_source
def test_no_draws(make: Make, insecure_test_key: PrivateKey) -> None:
    assert len(make(insecure_test_key, system_uniform).draw(0)) == 0


@every_source
def test_a_seed_repeats_a_run(make: Make, insecure_test_key: PrivateKey) -> None:
    def run(uniform: UniformInt) -> list[int]:
        source = make(insecure_test_key, uniform)
        return drawn(source, 12) + drawn(source, 3)

    assert run(seeded(1)) == run(seeded(1))
    others = [run(seeded(1)), run(seeded(2)), run(system_uniform), run(system_uniform)]
    assert len({integer for integers in others for integer in integers}) == 60


@pytest.mark.parametrize("kind", [ShortExponent, FullExponent])
def test_what_workers_compute_is_the_same(
    kind: type[ShortExponent | FullExponent], insecure_test_key: PrivateKey
) -> None:
    alone, workers = PublicKey.from_bytes(insecure_test_key.public_key.to_bytes()), PicklingWorkers(3)
    shared = PublicKey.from_bytes(insecure_test_key.public_key.to_bytes())
    expected = drawn(kind(alone, uniform=seeded()), 200)
    assert drawn(kind(shared, workers=workers, uniform=seeded()), 200) == expected
    assert workers.tasks == 3
    assert len(kind(shared, workers=workers).draw(0)) == 0
    if kind is FullExponent:  # the other has a table of its own in each place
        assert shared.kernel.counts == alone.kernel.counts


# --- each one's own -------------------------------------------------------------------------------


def test_short_exponents_need_an_hs(insecure_test_key: PrivateKey) -> None:
    public_key = without_hs(insecure_test_key).public_key
    for make in (ShortExponent, lambda key: randomisers_for(key, maker_trusted=True)):
        with pytest.raises(ConfigError, match="has no hs") as refused:
            make(public_key)
        assert "FullExponent" in refused.value.hint


def test_who_does_not_trust_the_maker_gets_full_exponents(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    assert type(randomisers_for(public_key, maker_trusted=True)) is ShortExponent
    assert type(randomisers_for(public_key, maker_trusted=False)) is FullExponent
    assert type(randomisers_for(without_hs(insecure_test_key).public_key, maker_trusted=False)) is FullExponent


def test_a_key_of_python_paillier_draws_for_its_owner() -> None:
    """The primes of such a key seldom allow an hs; the owner does not need one."""
    _, theirs = phe.generate_paillier_keypair(n_length=512)
    for key in (private_key_from_phe(theirs), without_hs(private_key_from_phe(theirs))):
        integers = drawn(OwnKey(key), 20)
        assert [theirs.raw_decrypt(integer) for integer in integers] == [0] * 20
        assert len(set(integers)) == 20


def test_full_exponents_are_n_th_powers_of_what_was_drawn(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    n, again = public_key.n, seeded(3)
    units = [again(n - 1) + 1 for _ in range(5)]
    assert drawn(FullExponent(public_key, uniform=seeded(3)), 5) == [pow(unit, n, n * n) for unit in units]


def test_a_drawn_number_that_shares_a_factor_with_n_is_drawn_again(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    answers = iter([insecure_test_key.p - 1, 2 * insecure_test_key.q - 1, 6])
    assert drawn(FullExponent(public_key, uniform=lambda _: next(answers)), 1) == [
        pow(7, public_key.n, public_key.n**2)
    ]


def test_own_draws_are_independent_mod_both_primes(insecure_test_key: PrivateKey) -> None:
    """Residues and others mod p and mod q occur in all four combinations; hs^a has only two of them."""
    p, q = insecure_test_key.p, insecure_test_key.q

    def kinds(source: Randomisers) -> Counter[tuple[int, int]]:
        integers = drawn(source, 800)
        return Counter((gmpy2.legendre(integer % p, p), gmpy2.legendre(integer % q, q)) for integer in integers)

    own = kinds(OwnKey(insecure_test_key, uniform=seeded(4)))
    assert len(own) == 4
    assert chisquare(list(own.values())).pvalue > 1e-4
    short = kinds(ShortExponent(insecure_test_key.public_key, uniform=seeded(5)))
    assert set(short) == {(1, 1), (-1, -1)}
    assert chisquare(list(short.values())).pvalue > 1e-4


# --- fixed bases ----------------------------------------------------------------------------------


@each_case(("exponent_bits", "window_bits"), [(256, 8), (40, 8), (37, 5), (1, 8), (9, 3)])
def test_random_powers_are_those_of_their_digits(exponent_bits: int, window_bits: int) -> None:
    n, base = (2**89 - 1) * (2**107 - 1), 7**60
    fixed = FixedBase(Kernel(n), base, exponent_bits, window_bits)
    assert (fixed.positions - 1) * window_bits < exponent_bits <= fixed.positions * window_bits
    digits = random_digits(20, fixed.positions, window_bits, seeded())
    powers = fixed.kernel.integers(fixed.random_powers(20, seeded()))
    for power, row in zip(powers, digits.tolist(), strict=True):
        assert power == pow(base, sum(digit << (window_bits * s) for s, digit in enumerate(row)), n * n)


@given(st.data(), st.integers(1, 8), st.integers(1, 8), st.integers(0, 5), st.integers(1, 9))
def test_other_digits_are_of_the_same_exponents(
    data: st.DataObject, bits: int, other_bits: int, count: int, positions: int
) -> None:
    drawn = st.lists(st.integers(0, 2**bits - 1), min_size=positions, max_size=positions)
    digits = np.array([data.draw(drawn) for _ in range(count)], dtype=np.uint8).reshape(count, positions)
    others = other_digits(digits, bits, other_bits)
    assert others.shape == (count, -(-positions * bits // other_bits))
    assert 0 <= others.min(initial=0) <= others.max(initial=0) < 2**other_bits
    assert exponents(others, other_bits) == exponents(digits, bits)


def exponents(digits: npt.NDArray[np.integer], bits: int) -> list[int]:
    return [sum(digit << bits * s for s, digit in enumerate(row)) for row in digits.tolist()]


@pytest.mark.parametrize("exponent_bits", [1, 40, 256, 290])
def test_a_growing_base_gives_the_same_powers_from_either_table(
    exponent_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, base = (2**89 - 1) * (2**107 - 1), 7**60
    monkeypatch.setattr(randomisers, "NARROW_POWERS", 25)
    kernel = Kernel(n)
    growing = GrowingBase(kernel, base, exponent_bits)
    digits = random_digits(20, growing.positions, WINDOW_BITS, seeded())
    expected = [pow(base, exponent, n * n) for exponent in exponents(digits, WINDOW_BITS)]
    narrow, wide, wide_again = (kernel.integers(growing.powers(digits)) for _ in range(3))
    assert narrow == wide == wide_again == expected
    assert kernel.integers(growing.random_powers(20, seeded())) == expected


def test_the_wide_table_is_made_when_it_pays(insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is made once, and never for a small training."""
    made: list[int] = []

    class Noted(FixedBase):
        def __init__(self, kernel: Kernel, base: int, exponent_bits: int, window_bits: int = WINDOW_BITS) -> None:
            made.append(window_bits)
            super().__init__(kernel, base, exponent_bits, window_bits)

    monkeypatch.setattr(randomisers, "FixedBase", Noted)
    source = ShortExponent(insecure_test_key.public_key)
    assert made == []
    source.draw(1)
    source.draw(NARROW_POWERS - 1)
    assert made == [NARROW_BITS]
    source.draw(1)
    source.draw(NARROW_POWERS)
    assert made == [NARROW_BITS, WINDOW_BITS]
    ShortExponent(insecure_test_key.public_key).draw(NARROW_POWERS + 1)
    assert made == [NARROW_BITS, WINDOW_BITS, WINDOW_BITS]
    told = ShortExponent(insecure_test_key.public_key)
    told._base.widen()
    told.draw(1)
    assert made == [NARROW_BITS, WINDOW_BITS, WINDOW_BITS, WINDOW_BITS]


@pytest.mark.parametrize(("positions", "window_bits"), [(32, 8), (13, 5)])
def test_digits_are_uniform_and_neighbours_independent(positions: int, window_bits: int) -> None:
    size = 1 << window_bits
    digits = random_digits(2000, positions, window_bits, seeded(6))
    assert digits.shape == (2000, positions)
    assert chisquare(np.bincount(digits.ravel(), minlength=size)).pvalue > 1e-4
    first = [chisquare(np.bincount(column >> (window_bits - 3), minlength=8)).pvalue for column in digits.T]
    assert min(first) > 1e-4
    low = digits % 8
    pairs = low[:, :-1] * 8 + low[:, 1:]
    assert chisquare(np.bincount(pairs.ravel(), minlength=64)).pvalue > 1e-4


# --- the pool -------------------------------------------------------------------------------------


class Numbered:
    """Draws the residues 2, 3, 4 ..; notices two threads at once."""

    def __init__(self, public_key: PublicKey, delay_s: float = 0) -> None:
        self.public_key, self.delay_s = public_key, delay_s
        self.next, self.busy = 2, False

    def draw(self, count: int) -> Residues:
        assert not self.busy
        self.busy = True
        time.sleep(self.delay_s)
        self.next, start = self.next + count, self.next
        self.busy = False
        return self.public_key.kernel.residues(range(start, start + count))


@pytest.fixture
def numbered(insecure_test_key: PrivateKey) -> Numbered:
    return Numbered(insecure_test_key.public_key)


def test_a_pool_gives_each_randomiser_once(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 10)
    pool.fill()
    assert (len(pool), numbered.next) == (10, 12)
    assert drawn(pool, 4) == [2, 3, 4, 5]
    assert drawn(pool, 0) == []
    pool.fill(3)
    assert (len(pool), numbered.next) == (9, 15)
    assert drawn(pool, 9) == list(range(6, 15))
    assert len(pool) == 0


def test_what_a_pool_lacks_comes_from_its_source(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 10)
    assert drawn(pool, 2) == [2, 3]
    pool.fill(3)
    assert drawn(pool, 7) == list(range(4, 11))
    assert len(pool) == 0


def test_a_pool_holds_no_more_than_its_capacity(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 5)
    for count in (3, 100, None, 0):
        pool.fill(count)
    assert (len(pool), numbered.next) == (5, 7)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_pool_of_none_is_refused(numbered: Numbered, capacity: int) -> None:
    with pytest.raises(RangeError, match="holds none"):
        RandomiserPool(numbered, capacity)


def test_a_pool_makes_no_more_than_are_needed_and_gives_more(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 10, needed=13)
    pool.fill()
    assert drawn(pool, 4) == [2, 3, 4, 5]
    pool.fill()
    assert (len(pool), numbered.next) == (9, 15)  # 4 and 9
    with pool.filling():
        wait_until(lambda: not threads())
    assert numbered.next == 15
    assert drawn(pool, 11) == list(range(6, 17))
    pool.fill()
    assert (len(pool), numbered.next) == (0, 17)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "randomisers"]


def test_a_thread_fills_the_pool_and_ends(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 50)
    with pool.filling():
        wait_until(lambda: len(pool) == 50)
    assert not threads()
    assert drawn(pool, 50) == list(range(2, 52))


def test_the_thread_stops_with_its_block(insecure_test_key: PrivateKey) -> None:
    pool = RandomiserPool(Numbered(insecure_test_key.public_key, delay_s=0.001), 10**6)
    with pool.filling():
        assert len(threads()) == 1
        wait_until(lambda: len(pool) > 0)
    assert not threads()
    size = len(pool)
    assert 0 < size < pool.capacity
    assert size % RandomiserPool.CHUNK == 0
    time.sleep(0.01)
    assert len(pool) == size


def test_a_thread_stops_when_the_block_fails(numbered: Numbered) -> None:
    pool = RandomiserPool(numbered, 10**6)
    with pytest.raises(KeyError), pool.filling():
        raise KeyError
    assert not threads()


def test_draws_while_a_thread_fills(insecure_test_key: PrivateKey) -> None:
    numbered = Numbered(insecure_test_key.public_key, delay_s=0.0001)
    pool = RandomiserPool(numbered, 40)
    with pool.filling():
        integers = [integer for count in range(60) for integer in drawn(pool, count)]
    integers += drawn(pool, len(pool))
    assert sorted(integers) == list(range(2, numbered.next))


def test_real_draws_while_a_thread_fills(insecure_test_key: PrivateKey) -> None:
    pool = RandomiserPool(ShortExponent(insecure_test_key.public_key), 100)
    with pool.filling():
        integers = [integer for count in range(20) for integer in drawn(pool, count)]
    assert len(set(integers)) == len(integers) == 190
    assert plaintexts(insecure_test_key, integers) == [0] * 190


@pytest.mark.filterwarnings("error")
def test_a_source_that_fails_in_the_thread_fails_again_at_the_draw(insecure_test_key: PrivateKey) -> None:
    class Failing:
        public_key = insecure_test_key.public_key

        def draw(self, count: int) -> Residues:
            raise ComputeFailed(backend="loky", reason="workers died")

    pool = RandomiserPool(Failing(), 10)
    with pool.filling():
        wait_until(lambda: not threads())
        with pytest.raises(ComputeFailed, match="workers died"):
            pool.draw(1)
