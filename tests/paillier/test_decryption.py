"""Decryption is right, and a bad ciphertext is never decrypted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.paillier.blinding import MOST_SQUARES, Blinding
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.interop import private_key_to_phe, public_key_to_phe
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from tests.each_case import each_case

same_key_for_all = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def encrypted(key: PublicKey, plaintexts: list[int], seed: int = 0) -> Residues:
    """(1 + n)^m r^n, by the definition."""
    generator, n = random.Random(seed), key.n
    return key.kernel.residues((1 + m * n) * pow(generator.randrange(1, n), n, n * n) % (n * n) for m in plaintexts)


# --- right ----------------------------------------------------------------------------------------


@same_key_for_all
@given(st.data())
def test_decryption_inverts_encryption(insecure_test_key: PrivateKey, data: st.DataObject) -> None:
    public_key = insecure_test_key.public_key
    half = public_key.n // 2
    plaintexts = data.draw(st.lists(st.integers(-half, half) | st.sampled_from([0, 1, -1, half, -half]), max_size=6))
    threads = data.draw(st.integers(1, 4))
    ciphertexts = encrypted(public_key, plaintexts)
    assert insecure_test_key.decrypt_residues(ciphertexts, threads=threads) == plaintexts


def test_plaintexts_are_python_integers(insecure_test_key: PrivateKey) -> None:
    (plaintext,) = insecure_test_key.decrypt_residues(encrypted(insecure_test_key.public_key, [-3]))
    assert type(plaintext) is int


def test_a_product_of_ciphertexts_decrypts_to_the_sum(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    kernel, half = public_key.kernel, public_key.n // 2
    products = kernel.products(encrypted(public_key, [3, -4, half]), encrypted(public_key, [5, 1, 1], seed=1))
    products = kernel.products(products, kernel.ones_plus([100, -100, 0]))
    assert insecure_test_key.decrypt_residues(products) == [108, -103, -half]  # the last one wraps round


@pytest.mark.parametrize("threads", [2, 3, 8, 40])
def test_threads_change_nothing(insecure_test_key: PrivateKey, threads: int) -> None:
    plaintexts = list(range(-7, 8))
    ciphertexts = encrypted(insecure_test_key.public_key, plaintexts)
    assert insecure_test_key.decrypt_residues(ciphertexts, threads=threads) == plaintexts


def test_no_threads_are_refused(insecure_test_key: PrivateKey) -> None:
    with pytest.raises(RangeError):
        insecure_test_key.decrypt_residues(encrypted(insecure_test_key.public_key, [1]), threads=0)


def test_phe_agrees_at_full_size(real_key: PrivateKey) -> None:
    ours, theirs = real_key, private_key_to_phe(real_key)
    n = ours.public_key.n
    plaintexts = [0, 1, -1, 2**100, n // 2, -(n // 2)]
    from_phe = [public_key_to_phe(ours.public_key).raw_encrypt(m % n) for m in plaintexts]
    assert ours.decrypt_residues(ours.public_key.kernel.residues(from_phe), threads=2) == plaintexts
    for_phe = ours.public_key.kernel.integers(encrypted(ours.public_key, plaintexts))
    assert [theirs.raw_decrypt(int(c)) for c in for_phe] == [m % n for m in plaintexts]


# --- blinded --------------------------------------------------------------------------------------


@pytest.fixture
def bases(insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every base that is raised to a secret power, in order."""
    seen: list[int] = []
    powers = Kernel.powers

    def spied(kernel: Kernel, bases: Residues, exponent: int) -> Residues:
        if exponent in (insecure_test_key.p - 1, insecure_test_key.q - 1):
            seen.extend(int(base) for base in kernel.integers(bases))
        return powers(kernel, bases, exponent)

    monkeypatch.setattr(Kernel, "powers", spied)
    return seen


def test_no_base_of_a_peers_choice_meets_the_private_key(insecure_test_key: PrivateKey, bases: list[int]) -> None:
    """This holds even if the peer repeats a base: every base is new, in one batch and from run to run."""
    public_key = insecure_test_key.public_key
    one = public_key.kernel.integers(encrypted(public_key, [5]))[0]
    ciphertexts = public_key.kernel.residues([one] * 10)
    assert (
        insecure_test_key.decrypt_residues(ciphertexts) == insecure_test_key.decrypt_residues(ciphertexts) == [5] * 10
    )
    assert len(bases) == len(set(bases)) == 40
    assert not {one % insecure_test_key.p**2, one % insecure_test_key.q**2} & set(bases)


def test_the_blinding_comes_from_the_randomness_given(insecure_test_key: PrivateKey, bases: list[int]) -> None:
    ciphertexts = encrypted(insecure_test_key.public_key, [5, 6])
    for seed in (1, 1, 2):
        key = replace(insecure_test_key)  # with no blinding in use yet
        assert key.decrypt_residues(ciphertexts, uniform=random.Random(seed).randrange) == [5, 6]
    first, again, other = bases[:4], bases[4:8], bases[8:]
    assert first == again
    assert not set(first) & set(other)


def test_a_blinding_is_squared_and_now_and_then_drawn_anew(insecure_test_key: PrivateKey) -> None:
    n = int(insecure_test_key.public_key.n)
    kernel, draws = Kernel(n), iter([pow(3, n, n * n), pow(5, n, n * n)])
    taken = kernel.integers(Blinding(kernel).take(MOST_SQUARES + 3, lambda: next(draws)))
    assert taken[: MOST_SQUARES + 1] == [pow(3, n << i, n * n) for i in range(MOST_SQUARES + 1)]
    assert taken[MOST_SQUARES + 1 :] == [pow(5, n, n * n), pow(5, 2 * n, n * n)]


def test_a_blinding_factor_is_a_power_of_the_unit_drawn(insecure_test_key: PrivateKey) -> None:
    """The owner computes it by the factors of n in a quarter of the time, and yet it is some unit's n-th power."""
    n = insecure_test_key.public_key.n
    order = (insecure_test_key.p - 1) * (insecure_test_key.q - 1)
    factors = {insecure_test_key._nth_power(unit) for unit in range(2, 12)}
    assert len(factors) == 10
    assert all(pow(factor, order, n * n) == 1 for factor in factors)


# --- what is refused ------------------------------------------------------------------------------


def stolen_factors(n: int, decrypted: int) -> tuple[int, int]:
    """Compute p and q from x = (p + q)^-1 mod n: x = 1/q mod p and x = 1/p mod q, so that (p + q) x = 1 mod both."""
    total = pow(decrypted, -1, n)
    difference = isqrt(total * total - 4 * n)
    return (total - difference) // 2, (total + difference) // 2


@each_case("multiple", [0, 1, 12345])
def test_whoever_decrypts_a_multiple_of_n_gives_the_key_away(real_key: PrivateKey, multiple: int) -> None:
    """A key of python-paillier reveals itself; here such a multiple is refused."""
    n = real_key.public_key.n
    bait = multiple * n
    decrypted = private_key_to_phe(real_key).raw_decrypt(bait)
    assert stolen_factors(n, decrypted) == (real_key.p, real_key.q)
    with pytest.raises(RangeError, match=r"^a ciphertext is invalid$"):
        real_key.decrypt_residues(real_key.public_key.kernel.residues([bait]))


INVALID: dict[str, Callable[[PrivateKey, random.Random], int]] = {
    "0": lambda key, draw: 0,
    "n": lambda key, draw: key.public_key.n,
    "kn": lambda key, draw: draw.randrange(2, key.public_key.n) * key.public_key.n,
    "n^2": lambda key, draw: key.public_key.n**2,
    "n^2 - n": lambda key, draw: key.public_key.n**2 - key.public_key.n,
    "c + n^2": lambda key, draw: 1 + 3 * key.public_key.n + key.public_key.n**2,
    "c + k n^2": lambda key, draw: valid(key, draw) + draw.randrange(1, 2**70) * key.public_key.n**2,
    "negative": lambda key, draw: -valid(key, draw),
    "c - n^2": lambda key, draw: valid(key, draw) - key.public_key.n**2,
    "oversize": lambda key, draw: draw.getrandbits(4 * key.public_key.bits) | 1 << 3 * key.public_key.bits,
    "multiple of p": lambda key, draw: draw.randrange(1, key.q * key.public_key.n) * key.p,
    "multiple of q": lambda key, draw: draw.randrange(1, key.p * key.public_key.n) * key.q,
    "p": lambda key, draw: key.p,
    "q^2": lambda key, draw: key.q**2,
}


def valid(key: PrivateKey, draw: random.Random) -> int:
    return draw.randrange(1, key.public_key.n**2)  # prime to n, but for one in 2^255


@pytest.fixture
def no_powers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Residues:
        pytest.fail("a power was computed")

    monkeypatch.setattr(Kernel, "powers", refuse)


def refusal(key: PrivateKey, ciphertexts: list[int]) -> tuple[type, str, str]:
    residues = key.public_key.kernel.residues(ciphertexts)
    try:  # quicker than pytest.raises, a hundred thousand times
        key.decrypt_residues(residues)
    except RangeError as refused:
        return type(refused), str(refused), refused.hint
    pytest.fail("it was decrypted")


ONE_REFUSAL = (RangeError, "a ciphertext is invalid", "")


@pytest.mark.usefixtures("no_powers")
@each_case("kind", INVALID)
@each_case("position", [0, 1, 2])
def test_an_invalid_ciphertext_is_refused_wherever_it_stands(
    insecure_test_key: PrivateKey, kind: str, position: int
) -> None:
    draw = random.Random(8)
    batch = [valid(insecure_test_key, draw) for _ in range(3)]
    check_ciphertexts(insecure_test_key.public_key.n, batch)
    batch[position] = INVALID[kind](insecure_test_key, draw)
    assert refusal(insecure_test_key, batch) == ONE_REFUSAL


@pytest.mark.usefixtures("no_powers")
def test_a_hundred_thousand_invalid_ciphertexts_are_refused_with_one_error(insecure_test_key: PrivateKey) -> None:
    key, draw, kinds = insecure_test_key, random.Random(88), list(INVALID.values())
    refusals: dict[tuple[type, str, str], int] = {}
    for i in range(100_000):
        batch = [kinds[i % len(kinds)](key, draw), 1 + key.public_key.n][:: draw.choice([1, -1])]
        seen = refusal(key, batch)
        refusals[seen] = refusals.get(seen, 0) + 1
    assert refusals == {ONE_REFUSAL: 100_000}


def test_valid_ciphertexts_pass(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    check_ciphertexts(public_key.n, [])
    check_ciphertexts(public_key.n, [1, public_key.n - 1, public_key.n + 1, public_key.n**2 - 1])
