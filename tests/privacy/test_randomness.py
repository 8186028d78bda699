from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms import randomness
from blindfit.algorithms.randomness import keyed_normals, keyed_uniform, public_generator, system_uniform
from tests.each_case import each_case
from tests.privacy.noise_checks import FALSE_ALARM, faults_of_normal


def test_system_uniform_is_uniform() -> None:
    counts = Counter(system_uniform(7) for _ in range(20_000))
    assert set(counts) == set(range(7))
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM / 10  # unseeded: 1e-7


def test_system_uniform_of_one_and_of_nothing() -> None:
    assert system_uniform(1) == 0
    with pytest.raises(ValueError, match="positive"):
        system_uniform(0)


def test_a_public_seed_repeats() -> None:
    first, second = (public_generator(7, "split").integers(2**63, size=100) for _ in range(2))
    assert np.array_equal(first, second)


@each_case(("seed", "purpose"), [(8, "split"), (7, "batches"), (71, "/split")])
def test_purposes_and_seeds_are_apart(seed: int, purpose: str) -> None:
    first = public_generator(7, "split").integers(2**63, size=100)
    assert not np.intersect1d(first, public_generator(seed, purpose).integers(2**63, size=100)).size


def test_parties_on_different_versions_draw_the_same_plan() -> None:
    assert public_generator(1, "split").integers(1000, size=3).tolist() == PLAN_OF_SEED_1


PLAN_OF_SEED_1 = [669, 68, 520]


# --- keyed randomness ---------------------------------------------------------------------------------

KEY = b"a secret of 32 bytes or of any ."


def drawn(key: bytes, purpose: str, m: int = 2**64, count: int = 50) -> list[int]:
    uniform = keyed_uniform(key, purpose)
    return [uniform(m) for _ in range(count)]


@each_case("m", [2, 7, 255, 256, 257, 1000])
def test_keyed_uniform_is_uniform(m: int) -> None:
    counts = Counter(drawn(KEY, f"law of {m}", m, 20_000))
    assert set(counts) <= set(range(m))
    assert stats.chisquare([counts[value] for value in range(m)]).pvalue > FALSE_ALARM


@each_case("m", [3 << 62, 2**64 + 1, 5 * 2**90, 2**300 - 1])
def test_keyed_uniform_is_uniform_where_m_is_large(m: int) -> None:
    scaled = [value / m for value in drawn(KEY, "large", m, 5000)]
    assert max(scaled) < 1
    assert stats.kstest(scaled, "uniform").pvalue > FALSE_ALARM


def test_keyed_uniform_of_one_is_zero() -> None:
    assert drawn(KEY, "one", 1, 5) == [0] * 5


def test_keyed_uniform_repeats_for_who_has_the_key() -> None:
    assert drawn(KEY, "noise") == drawn(KEY, "noise")


@each_case(
    ("key", "purpose"),
    [(KEY, "noise2"), (KEY, "nois"), (KEY, ""), (KEY[:-1], ".noise"), (KEY + b"n", "oise"), (b"", "")],
)
def test_keys_and_purposes_are_apart(key: bytes, purpose: str) -> None:
    """This holds even if key and purpose, one after the other, are the same octets."""
    assert not set(drawn(KEY, "noise")) & set(drawn(key, purpose))


def test_keyed_uniform_reads_on_in_one_stream() -> None:
    """9 octets a number of 8 bits: past the first 4096 and every later end, nothing is read twice or left out."""
    start = b"blindfit keyed randomness v1/" + len(KEY).to_bytes(4, "big") + KEY + b"stream"
    stream = hashlib.shake_256(start).digest(9 * 5000)
    expected = [int.from_bytes(stream[i : i + 9], "big") % 256 for i in range(0, len(stream), 9)]
    assert drawn(KEY, "stream", 256, 5000) == expected


def test_values_past_the_last_multiple_are_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise small numbers would be likelier: 2^72 is 1 more than a multiple of 255, and of 5."""

    class Stream:
        def __init__(self, _start: bytes) -> None: ...

        def digest(self, size: int) -> bytes:
            return (b"\xff" * 9 + bytes(8) + b"\x07" + bytes(size))[:size]

    monkeypatch.setattr(randomness.hashlib, "shake_256", Stream)
    assert keyed_uniform(KEY, "")(255) == 7
    assert keyed_uniform(KEY, "")(256) == 255


def test_keyed_normals_are_standard_normal() -> None:
    assert faults_of_normal(keyed_normals(KEY, "jitter", 20_000), 1.0) == []
    assert faults_of_normal(keyed_normals(KEY, "jitter", 20_000), 1.05) != []


def test_keyed_normals_repeat_and_are_apart() -> None:
    first = keyed_normals(KEY, "jitter", 100)
    assert np.array_equal(first, keyed_normals(KEY, "jitter", 100))
    assert not np.intersect1d(first, keyed_normals(KEY, "jitter2", 100)).size
    assert not np.intersect1d(first, keyed_normals(KEY[1:], "jitter", 100)).size
    assert keyed_normals(KEY, "jitter", 0).shape == (0,)


def test_the_largest_draws_are_finite_and_symmetric(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([lambda m: 0, lambda m: m - 1, lambda m: m // 2 - 1, lambda m: m // 2])
    monkeypatch.setattr(randomness, "keyed_uniform", lambda _key, _purpose: lambda m: next(ends)(m))
    low, high, below, above = keyed_normals(KEY, "", 4).tolist()
    assert -9 < low < -8
    assert (high, above) == pytest.approx((-low, -below), rel=1e-9)
    assert below < 0 < above < 1e-15
