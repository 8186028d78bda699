"""The reference engine: what Blindfit computes, python-paillier computes too, by other means."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import phe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Randomisers, ReceivedCiphertext
from blindfit.algorithms.paillier.engines import Engine, engine_of
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.packing import decrypt_packed, encrypt_packed, pack
from blindfit.algorithms.paillier.phe_engine import PheKernel
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt, encrypt
from tests.paillier.tools import LAW, PicklingWorkers, integers_of, seeded, source

NUMBERS = st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5)
REFERENCE = engine_of("phe")


@pytest.fixture(scope="session")
def phe_key(insecure_test_key: PrivateKey) -> PrivateKey:
    """The same primes, with which phe computes."""
    return REFERENCE.adopt_private(insecure_test_key)


def zeros(key: PrivateKey, seed: int = 0) -> Randomisers:
    return FullExponent(key.public_key, uniform=seeded(seed))


def matrix(rows: int, columns: int, seed: int = 0) -> Fixed:
    return Fixed(np.random.default_rng(seed).integers(-(2**15), 2**15, (rows, columns)), 5)


# --- one plaintext, two engines ---------------------------------------------------------------------


@LAW
@given(NUMBERS)
def test_what_one_engine_encrypts_the_other_decrypts(
    insecure_test_key: PrivateKey, phe_key: PrivateKey, numbers: list[int]
) -> None:
    values = Fixed.from_integers(numbers, 4)
    by_phe, by_us = encrypt(values, zeros(phe_key)), encrypt(values, source(insecure_test_key))
    received = {key: over_a_wire(v, key) for v, key in ((by_phe, insecure_test_key), (by_us, phe_key))}
    for key, vector in received.items():
        assert decrypt(vector, key).values.tolist() == numbers


def over_a_wire(vector: EncryptedVector[Any], key: PrivateKey) -> EncryptedVector[Any]:
    """Receive the vector as the key's own party does: checked, and computed with by its engine."""
    return EncryptedVector.receive(
        ReceivedCiphertext(*vector.ciphertext.to_wire()),
        key.public_key,
        length=len(vector),
        frac_bits=vector.frac_bits,
        bound=vector.bound,
        culprit="peer",
    )


@LAW
@given(NUMBERS, st.randoms(use_true_random=False))
def test_every_operation_gives_the_ciphertext_that_blindfits_kernel_gives(
    insecure_test_key: PrivateKey, phe_key: PrivateKey, numbers: list[int], draw: random.Random
) -> None:
    """The same residue mod n^2, not only the same plaintext: both compute in one group."""
    others = Fixed.from_integers([draw.randrange(-(2**60), 2**60) for _ in numbers], 4)
    X = matrix(len(numbers), 3, draw.randrange(2**32))
    results = []
    for key in (phe_key, insecure_test_key):
        a, b = (encrypt(v, zeros(key, seed)) for seed, v in ((1, Fixed.from_integers(numbers, 4)), (2, others)))
        found = {name: operation(a, b, others, X).ciphertext for name, operation in OPERATIONS.items()}
        results.append({name: integers_of(ciphertext) for name, ciphertext in found.items()})
    assert results[0] == results[1]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, b, *_: a + b,
    "difference": lambda a, b, *_: a - b,
    "sum with plain numbers": lambda a, _b, plain, _X: a + plain,
    "product with plain numbers": lambda a, _b, plain, _X: a.scale(plain),
    "X^T [[w]]": lambda a, _b, _plain, X: columns_dot(X, a),
    "X [[w]]": lambda a, _b, _plain, X: rows_dot(Fixed(X.values.T, 5), a),
    "pack": lambda a, *_: pack(a, 80),
    "take": lambda a, *_: a.take([0, 0]),
}


def test_nothing_times_zero_and_no_rows(phe_key: PrivateKey) -> None:
    w_enc = encrypt(Fixed.from_integers([3, -4]), zeros(phe_key))
    assert decrypt(columns_dot(Fixed.from_integers([[0, 1], [0, 2]]), w_enc), phe_key).values.tolist() == [0, -5]
    none = w_enc[:0]
    empty = columns_dot(Fixed(np.zeros((0, 2), dtype=np.int64), 0), none)
    assert decrypt(empty, phe_key).values.tolist() == [0, 0]


def test_packs_pass_between_the_engines(insecure_test_key: PrivateKey, phe_key: PrivateKey) -> None:
    numbers = [7, -9, 2**50, 0, -(2**50)] * 5
    for maker, reader in ((phe_key, insecure_test_key), (insecure_test_key, phe_key)):
        randomisers = zeros(phe_key) if maker is phe_key else source(insecure_test_key)
        packed = encrypt_packed(Fixed.from_integers(numbers, 3), 64, randomisers)
        kernel = reader.public_key.kernel
        residues = kernel.residues(integers_of(packed.ciphertext))
        assert packed.layout.split(reader.decrypt_residues(residues)) == numbers
    assert len(packed.ciphertext) < len(numbers)
    total = packed.rerandomize(source(insecure_test_key)) + Fixed.from_integers(numbers, 3)
    assert decrypt_packed(total, insecure_test_key).values.tolist() == [2 * number for number in numbers]


# --- that it is phe --------------------------------------------------------------------------------------


def test_every_ciphertext_passes_through_phe(phe_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ciphertext passes through a table, a bucket or a product of Blindfit's kernel."""
    calls: dict[str, int] = {}

    def counted(kind: type[Any], name: str) -> None:
        inner = getattr(kind, name)

        def outer(*arguments: Any, **named: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            return inner(*arguments, **named)

        monkeypatch.setattr(kind, name, outer)

    for kind, name in (
        (phe.PaillierPublicKey, "raw_encrypt"),
        (phe.PaillierPrivateKey, "raw_decrypt"),
        (phe.EncryptedNumber, "_raw_add"),
        (phe.EncryptedNumber, "_raw_mul"),
    ):
        counted(kind, name)
    rows, columns = 6, 4
    w_enc = encrypt(Fixed.from_integers(range(rows)), zeros(phe_key))
    assert calls == {"raw_encrypt": 2 * rows, "_raw_add": rows}  # plain, and its randomiser; joined
    g_enc = columns_dot(matrix(rows, columns), w_enc)
    assert calls["_raw_mul"] == rows * columns
    assert calls["_raw_add"] == rows + rows * columns
    decrypt(g_enc, phe_key)
    assert calls["raw_decrypt"] == columns
    with pytest.raises(LocalProtocolError, match="no tables"):
        phe_key.public_key.kernel.split(w_enc.residues)


def test_phe_is_imported_only_when_it_is_chosen() -> None:
    code = (
        "import sys, blindfit, blindfit.paillier, blindfit.parties.node, blindfit.coordinator.cli.main;"
        "assert 'phe' not in sys.modules;"
        "from blindfit.algorithms.paillier.engines import engine_of; engine_of('phe'); assert 'phe' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_phe_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    assert engine_of("blindfit").name == "blindfit"
    with pytest.raises(ConfigError, match="python-paillier is not installed") as missing:
        engine_of("phe")
    assert missing.value.hint == "run `pip install 'phe>=1.5'`"


# --- keys ---------------------------------------------------------------------------------------------------


def test_a_key_of_phe_is_one_whose_maker_needs_no_trust() -> None:
    key = REFERENCE.generate_private_key(2048)
    public_key = PublicKey.from_bytes(key.public_key.to_bytes())  # as a data party gets it
    assert public_key.bits == 2048
    assert public_key.hs is None
    check_public_key(public_key, maker_trusted=False)
    with pytest.raises(MalformedMessage, match="no hs"):
        check_public_key(public_key, maker_trusted=True, culprit="notary")
    again = REFERENCE.adopt_private(PrivateKey.from_bytes(key.to_bytes()))  # as from a checkpoint
    adopted = REFERENCE.adopt_public(public_key)
    values = encrypt(Fixed.from_integers([5, -6]), REFERENCE.randomisers(adopted))
    assert decrypt(values, again).values.tolist() == [5, -6]
    with pytest.raises(RangeError, match="1024 bits is not on offer"):
        REFERENCE.generate_private_key(1024)


def test_an_adopted_key_ignores_hs_and_stays_private(insecure_test_key: PrivateKey, phe_key: PrivateKey) -> None:
    assert insecure_test_key.public_key.hs is not None
    assert phe_key.public_key.hs is None
    assert isinstance(phe_key.public_key.kernel, PheKernel)
    phe_key.decrypt_residues(zeros(phe_key).draw(1))  # phe's own object is there now
    assert str(phe_key.p) not in repr(phe_key) + repr(vars(phe_key)["_phe_key"])
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(phe_key)


@pytest.mark.parametrize("name", ["blindfit", "phe"])
def test_both_sources_of_randomisers_hide_and_differ(insecure_test_key: PrivateKey, name: Any) -> None:
    engine: Engine = engine_of(name)
    key = engine.adopt_private(insecure_test_key)
    for randomisers in (engine.randomisers(key.public_key), engine.own_randomisers(key)):
        drawn = key.public_key.kernel.integers(randomisers.draw(8))
        assert len(set(drawn)) == 8
        assert all(integer % key.public_key.n != 1 for integer in drawn)
        assert key.decrypt_residues(key.public_key.kernel.residues(drawn)) == [0] * 8


# --- workers, bad ciphertexts ---------------------------------------------------------------------------------


def test_workers_compute_with_phe_too(phe_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = PicklingWorkers(3)
    key = PublicKey(phe_key.public_key.n, None, (), PheKernel)
    alone, shared = (FullExponent(key, workers=w, uniform=seeded()) for w in (PicklingWorkers(1), workers))
    assert key.kernel.integers(alone.draw(12)) == key.kernel.integers(shared.draw(12))
    assert workers.tasks == 3
    X, w_enc = matrix(300, 30), encrypt(Fixed.from_integers(range(300)), FullExponent(key, uniform=seeded()))
    g_enc = columns_dot(X, w_enc, workers=workers)
    assert workers.tasks == 6
    assert key.kernel.counts.products > 300 * 30 * 15  # the workers' powers are counted
    assert decrypt(g_enc, phe_key).values.tolist() == (X.values.T @ np.arange(300)).tolist()


@pytest.mark.parametrize("bad", [lambda key: 0, lambda key: key.p, lambda key: key.public_key.n**2])
def test_a_ciphertext_that_would_tell_the_key_is_not_decrypted(
    phe_key: PrivateKey, bad: Callable[[PrivateKey], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phe.PaillierPrivateKey, "raw_decrypt", lambda *_: pytest.fail("it was decrypted"))
    kernel = phe_key.public_key.kernel
    with pytest.raises(RangeError, match="a ciphertext is invalid"):
        phe_key.decrypt_residues(kernel.residues([bad(phe_key)]))


def test_phe_sees_no_ciphertext_as_a_peer_chose_it(phe_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ciphertext is blinded by another r^n, so that the time of a decryption reveals nothing."""
    seen: list[int] = []
    inner = phe.PaillierPrivateKey.raw_decrypt
    monkeypatch.setattr(phe.PaillierPrivateKey, "raw_decrypt", lambda key, c: seen.append(c) or inner(key, c))
    chosen = phe_key.public_key.kernel.integers(zeros(phe_key).draw(1)) * 3
    assert phe_key.decrypt_residues(phe_key.public_key.kernel.residues(chosen)) == [0, 0, 0]
    assert len({*seen, *chosen}) == 4


def test_what_phe_would_refuse_in_its_own_words_is_one_line(phe_key: PrivateKey) -> None:
    kernel = phe_key.public_key.kernel
    one = zeros(phe_key).draw(1)
    with pytest.raises(RangeError, match="does not fit under the key"):
        kernel.powers(one, phe_key.public_key.n)
    with pytest.raises(RangeError, match="not prime to its modulus"):
        kernel.inverses(kernel.residues([phe_key.p]))
