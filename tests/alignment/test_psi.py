"""Points of ids: the laws of blinding, a refusal of every wrong point, and set operations on received points."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl import bindings
from scipy.stats import chisquare

from blindfit.algorithms.alignment import psi
from blindfit.algorithms.alignment.psi import GROUP_ORDER, ArrivingSet, BlindingKey, Origin, Points, Threads
from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.algorithms.workers import THIS_PROCESS, Workers
from tests.alignment.bad_points import BAD_POINTS, FIELD, NOT_CANONICAL, SMALL_ORDER
from tests.each_case import each_case

ORIGIN = Origin("bank", "PassedPoints")
IDS = [f"customer-{n}" for n in range(40)]
KEYS = st.integers(1, GROUP_ORDER - 1).map(lambda x: key_of(x))


def key_of(scalar: int) -> BlindingKey:
    return BlindingKey(scalar.to_bytes(32, "little"))


def points_of(*points: bytes) -> Points:
    return np.frombuffer(b"".join(points), np.uint8).reshape(-1, 32)


HASHED = points_of(*map(psi.hash_id, IDS))


# --- from ids to points -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("customer-17", "7be1ddf7e01ce6f2e4f6deb108504843056adabea3c2cffd4e34137aa221ef7b"),
        ("Zoë", "01452e78201f8824142d831a5c0251b28cb5993f4354027c88bd41c1874283da"),
    ],
)
def test_an_id_has_one_point_in_every_version(text: str, point: str) -> None:
    assert psi.hash_id(text).hex() == point


def test_ids_are_compared_as_they_are() -> None:
    spellings = ["Zoë", "Zoe\u0308", "zoë", " Zoë", "Zoë ", ""]
    assert len({psi.hash_id(text) for text in spellings}) == len(spellings)


@each_case(
    ("ids", "said"),
    [
        ([], "no rows"),
        (["anna", "ben", "anna", "anna"], "2 of 4 rows"),
        (["anna", "b\ud800n"], "row 2 is not Unicode"),
    ],
)
def test_wrong_ids_are_counted_and_never_named(ids: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said) as refused:
        psi.check_ids(ids, owner="bank")
    assert "bank" in str(refused.value)
    assert "anna" not in str(refused.value) + refused.value.hint


# --- blinding -----------------------------------------------------------------------------------------


def test_blinding_is_the_multiplication_of_the_group() -> None:
    once = psi.blind_points(HASHED, key_of(1), ORIGIN)
    twice = psi.blind_points(HASHED, key_of(2), ORIGIN)
    negated = psi.blind_points(HASHED, key_of(GROUP_ORDER - 1), ORIGIN)
    assert np.array_equal(once, HASHED)
    assert np.array_equal(twice, points_of(*(bindings.crypto_core_ed25519_add(*[p.tobytes()] * 2) for p in HASHED)))
    assert np.array_equal(negated ^ HASHED, np.tile(points_of(bytes(31) + b"\x80"), (len(IDS), 1)))


@settings(max_examples=20, deadline=None)
@given(KEYS, KEYS)
def test_the_order_of_the_parties_does_not_matter(mine: BlindingKey, theirs: BlindingKey) -> None:
    points = psi.blind_points(psi.blind_ids(IDS[:3], mine), theirs, ORIGIN)
    assert np.array_equal(points, psi.blind_points(psi.blind_ids(IDS[:3], theirs), mine, ORIGIN))
    psi.check_points(points, ORIGIN)


@each_case("count", [0, 1, 7, 40])
@each_case("workers", [THIS_PROCESS, Threads(1), Threads(3)], ids=["alone", "one", "three"])
def test_workers_keep_the_order(workers: Workers, count: int) -> None:
    key = key_of(12345)
    expected = [bindings.crypto_scalarmult_ed25519_noclamp(key.scalar, psi.hash_id(text)) for text in IDS[:count]]
    assert [p.tobytes() for p in psi.blind_ids(IDS[:count], key, workers=workers)] == expected
    assert [p.tobytes() for p in psi.blind_points(HASHED[:count], key, ORIGIN, workers=workers)] == expected


def test_the_work_can_go_to_other_processes() -> None:
    """Functions, tasks and errors are picklable."""

    class Pickled:
        count = 2

        def map(self, function, tasks):  # type: ignore[no-untyped-def]
            function, tasks = pickle.loads(pickle.dumps((function, tasks)))
            return [pickle.loads(pickle.dumps(function(*task))) for task in tasks]

    key = key_of(7)
    assert np.array_equal(psi.blind_points(HASHED, key, ORIGIN, workers=Pickled()), psi.blind_ids(IDS, key))
    with pytest.raises(MalformedMessage) as refused:
        psi.check_points(points_of(SMALL_ORDER["identity"]), ORIGIN)
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.culprit, copy.step) == ("bank", "PassedPoints")


def test_a_key_is_any_scalar_but_zero_and_shows_nowhere() -> None:
    assert BlindingKey.draw(lambda _m: 0) == key_of(1)
    assert BlindingKey.draw(lambda m: m - 1) == key_of(GROUP_ORDER - 1)
    key = BlindingKey.draw(random.Random(1).randrange)
    assert key.scalar.hex() not in repr(key)
    assert repr(key.scalar) not in repr(key)


# --- points of a peer ---------------------------------------------------------------------------------


@each_case("workers", [THIS_PROCESS, Threads(2)], ids=["alone", "threads"])
@each_case("bad", BAD_POINTS)
def test_a_wrong_point_is_refused_wherever_it_stands(bad: str, workers: Workers) -> None:
    points = points_of(*(p.tobytes() for p in HASHED[:5]), BAD_POINTS[bad], HASHED[5].tobytes())
    for use in (
        lambda: psi.blind_points(points, key_of(3), ORIGIN, workers=workers),
        lambda: psi.check_points(points, ORIGIN, workers=workers),
    ):
        with pytest.raises(MalformedMessage, match="prime subgroup") as refused:
            use()
        assert (refused.value.culprit, refused.value.field, refused.value.step) == ("bank", "points", "PassedPoints")


def test_the_list_of_wrong_points_is_what_it_says() -> None:
    """Eight times a point of small order is the identity; every y from p to 2^255 - 1 is there."""
    for point in SMALL_ORDER.values():
        for _ in range(3):
            point = bindings.crypto_core_ed25519_add(point, point)
        assert point == SMALL_ORDER["identity"]
    ys = {int.from_bytes(point, "little") % 2**255 for point in NOT_CANONICAL.values()}
    assert ys == {*range(FIELD, 2**255), 1, FIELD - 1}


@pytest.fixture
def unsound_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bindings, "crypto_core_ed25519_is_valid_point", lambda _: True)
    psi.require_sound_library.cache_clear()
    yield
    psi.require_sound_library.cache_clear()


@pytest.mark.usefixtures("unsound_library")
def test_an_unsound_library_is_refused() -> None:
    for use in (lambda: psi.blind_points(HASHED, key_of(3), ORIGIN), lambda: psi.check_points(HASHED, ORIGIN)):
        with pytest.raises(ConfigError, match="CVE-2025-69277") as refused:
            use()
        assert "PyNaCl" in refused.value.hint


# --- sets that arrive -----------------------------------------------------------------------------------


def test_chunks_make_a_set() -> None:
    arriving = ArrivingSet(40, ORIGIN)
    for start in range(0, 40, 16):
        chunk = HASHED[start : start + 16]
        arriving.add(chunk, size=len(chunk))
    assert np.array_equal(arriving.points, HASHED)


@each_case(
    "chunk", [HASHED[:15], HASHED[:17], HASHED[:0], HASHED[:16, :31], HASHED[:16].ravel()], ids=lambda c: str(c.shape)
)
def test_a_chunk_of_another_size_is_refused(chunk: Points) -> None:
    with pytest.raises(MalformedMessage, match="announced size") as refused:
        ArrivingSet(40, ORIGIN).add(chunk, size=16)
    assert refused.value.culprit == "bank"


@each_case(("first", "second"), [(0, 1), (3, 39), (38, 39)])
def test_a_point_twice_is_refused(first: int, second: int) -> None:
    points = HASHED.copy()
    points[second] = points[first]
    arriving = ArrivingSet(40, ORIGIN)
    arriving.add(points[:20], size=20)
    with pytest.raises(MalformedMessage, match="twice") as refused:
        arriving.add(points[20:], size=20)
    assert refused.value.culprit == "bank"


def test_points_that_differ_in_trailing_zeros_alone_are_different() -> None:
    near = points_of(b"a" + bytes(31), b"a\x00\x01" + bytes(29), b"a" + bytes(30) + b"\x01", bytes(32))
    ArrivingSet(4, ORIGIN).add(near, size=4)
    assert [rows.tolist() for rows in psi.common_rows([near, near[1:2]])] == [[1], [0]]
    assert [rows.tolist() for rows in psi.common_rows([near[:1], near[1:]])] == [[], []]


@given(st.lists(st.sets(st.binary(min_size=32, max_size=32) | st.sampled_from(IDS[:9]).map(psi.hash_id)), min_size=2))
def test_common_rows_are_the_intersection(drawn: list[set[bytes]]) -> None:
    sets = [random.Random(1).sample(sorted(points), len(points)) for points in drawn]
    rows = psi.common_rows([points_of(*points) for points in sets])
    common = [[points[row] for row in own] for points, own in zip(sets, rows, strict=True)]
    assert all(own == common[0] for own in common)
    assert set(common[0]) == set.intersection(*drawn)
    assert len(common[0]) == len(set(common[0]))


# --- the shuffle ----------------------------------------------------------------------------------------


@given(st.integers(0, 200), st.integers(0, 5))
def test_a_permutation_is_one(count: int, seed: int) -> None:
    assert sorted(psi.permutation(count, random.Random(seed).randrange).tolist()) == list(range(count))


def test_every_order_is_as_likely() -> None:
    uniform = random.Random(20).randrange
    seen = Counter(tuple(psi.permutation(4, uniform).tolist()) for _ in range(24_000))
    assert len(seen) == 24
    assert chisquare(list(seen.values())).pvalue > 1e-3


def test_threads_give_results_in_the_order_of_the_tasks() -> None:
    assert Threads(3).map(lambda a, b: a - b, [(n, 1) for n in range(100)]) == list(range(-1, 99))
