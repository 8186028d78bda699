"""Ids as points of ed25519, blinded by every data party in turn: equal ids end as equal points, and only so.

A point of an id is H(id) = 8 E(SHA-512(domain || id), first half), E the Elligator 2 map: in the prime subgroup, whose
order is L. A data party's secret is x, uniform on [1, L), new in every session. Blinding is x P, of constant time, and
the order in which parties blind does not matter. Without x nobody can try ids: that x H(id) looks random is the
decisional Diffie-Hellman assumption, with SHA-512 as a random oracle. E reaches half of the curve; that is enough, as a
simulator can turn a point of known logarithm, when E reaches it, into the hash that leads there.

If P is a point of a peer's choice, x P reveals x modulo the order of P. So every P is checked first: it must be
canonical, on the curve, and in the prime subgroup, which excludes the identity and the points of small order. The
cofactor needs nothing more: H multiplies by it, and a point that passes the check has no part for it to clear.

Ids are compared as they are, in UTF-8: no change of case, no trimming, no Unicode normalisation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from nacl import bindings
from nacl.exceptions import CryptoError

from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.algorithms.randomness import UniformInt
from blindfit.algorithms.workers import THIS_PROCESS, Workers, even_slices

POINT_BYTES = 32
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493  # L
DOMAIN = b"blindfit psi v1/"
TASKS_PER_WORKER = 4  # so that a slow worker does not keep the others waiting
POINTS_PER_TASK = 64  # at least: some milliseconds of work, against which the cost of one more task is small

Points = npt.NDArray[np.uint8]  # (count, 32)
Rows = npt.NDArray[np.int64]
R = TypeVar("R")


class Threads:
    """Threads of this process: libsodium does not hold Python's lock, so they compute at the same time."""

    def __init__(self, count: int) -> None:
        self.count = count

    def map(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]) -> list[R]:
        if len(tasks) == 1:
            return [function(*tasks[0])]
        with ThreadPoolExecutor(self.count) as pool:
            return list(pool.map(lambda task: function(*task), tasks))


@dataclass(frozen=True, slots=True)
class Origin:
    """The sender and the message of some points, for the error if a point is wrong."""

    sender: str
    step: str

    def error(self, reason: str) -> MalformedMessage:
        return MalformedMessage(culprit=self.sender, field="points", reason=reason, step=self.step)


# --- what a party brings -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class BlindingKey:
    """A data party's secret of one session."""

    scalar: bytes  # 32 bytes, little-endian

    @classmethod
    def draw(cls, uniform: UniformInt) -> BlindingKey:
        return cls((1 + uniform(GROUP_ORDER - 1)).to_bytes(POINT_BYTES, "little"))


def check_ids(ids: Sequence[str], *, owner: str) -> None:
    """Raise DataError, which names no id, if the list is empty, repeats an id or has an id that is not Unicode."""
    if not ids:
        raise DataError(f"{owner} has no rows to align")
    repeats = len(ids) - len(set(ids))
    if repeats:
        raise DataError(
            f"{owner}: {repeats:,} of {len(ids):,} rows have an id that another row has too",
            hint="give every row its own id, or keep only one row of each id",
        )
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        row = next(row for row, text in enumerate(ids, 1) if not _is_unicode(text))
        raise DataError(f"{owner}: the id of row {row:,} is not Unicode text (it has half of a character)") from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def permutation(count: int, uniform: UniformInt) -> Rows:
    """Draw an order of range(count), uniform among all orders (Fisher and Yates)."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = uniform(last + 1)
        order[last], order[other] = order[other], order[last]
    return np.array(order, np.int64)


# --- points, many at once ----------------------------------------------------------------------------


def hash_id(text: str) -> bytes:
    return bindings.crypto_core_ed25519_from_uniform(hashlib.sha512(DOMAIN + text.encode()).digest()[:POINT_BYTES])


def blind_ids(ids: Sequence[str], key: BlindingKey, *, workers: Workers = THIS_PROCESS) -> Points:
    """Return x H(id) for each id, in order."""
    parts = _parts(len(ids), workers)
    return _join(workers.map(_blind_ids, [(ids[part], key.scalar) for part in parts]))


def blind_points(points: Points, key: BlindingKey, origin: Origin, *, workers: Workers = THIS_PROCESS) -> Points:
    """Return x P for each point of a peer, in order.

    Raises:
        MalformedMessage: a point is not canonical, or not in the prime subgroup without the identity.
    """
    parts = _parts(len(points), workers)
    return _join(workers.map(_blind_points, [(points[part].tobytes(), key.scalar, origin) for part in parts]))


def check_points(points: Points, origin: Origin, *, workers: Workers = THIS_PROCESS) -> None:
    """Raise MalformedMessage where `blind_points` would; for a party that does not blind the points."""
    parts = _parts(len(points), workers)
    workers.map(_check_points, [(points[part].tobytes(), origin) for part in parts])


def _parts(count: int, workers: Workers) -> list[slice]:
    return even_slices(count, min(TASKS_PER_WORKER * workers.count, count // POINTS_PER_TASK))


def _blind_ids(ids: Sequence[str], scalar: bytes) -> bytes:
    return b"".join(bindings.crypto_scalarmult_ed25519_noclamp(scalar, hash_id(text)) for text in ids)


def _blind_points(points: bytes, scalar: bytes, origin: Origin) -> bytes:
    require_sound_library()
    try:
        return b"".join(bindings.crypto_scalarmult_ed25519_noclamp(scalar, point) for point in _split(points))
    except CryptoError:  # libsodium checks as `_check_points` does
        raise _not_a_point(origin) from None


def _check_points(points: bytes, origin: Origin) -> None:
    require_sound_library()
    if not all(map(bindings.crypto_core_ed25519_is_valid_point, _split(points))):
        raise _not_a_point(origin)


def _not_a_point(origin: Origin) -> MalformedMessage:
    return origin.error("hold one that is not canonical, or not in the prime subgroup without the identity")


def _split(points: bytes) -> list[bytes]:
    return [points[start : start + POINT_BYTES] for start in range(0, len(points), POINT_BYTES)]


def _join(parts: Sequence[bytes]) -> Points:
    return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, POINT_BYTES)


@cache
def require_sound_library() -> None:
    """Raise ConfigError if libsodium takes P + T, T of order 2, for a point of the prime subgroup.

    Versions before December 2025 do. The wheels of PyNaCl from 1.6.2 on are sound; a system's libsodium may not be.
    """
    point_of_order_2 = (2**255 - 20).to_bytes(POINT_BYTES, "little")  # (0, -1)
    point = bindings.crypto_core_ed25519_add(hash_id(""), point_of_order_2)
    if bindings.crypto_core_ed25519_is_valid_point(point):
        raise ConfigError(
            "the libsodium that PyNaCl uses accepts points off the prime subgroup (CVE-2025-69277)",
            hint="run `pip install --force-reinstall --only-binary PyNaCl 'PyNaCl>=1.6.2'`",
        )


# --- whole sets --------------------------------------------------------------------------------------


@dataclass(slots=True, repr=False)
class ArrivingSet:
    """A set of points that a peer sends in chunks: as many as were announced, none twice."""

    count: int
    origin: Origin
    arrived: int = 0
    points: Points = field(init=False)

    def __post_init__(self) -> None:
        self.points = np.empty((self.count, POINT_BYTES), np.uint8)

    def add(self, chunk: Points, *, size: int) -> None:
        """Add a chunk; raise MalformedMessage if its size differs, or if the complete set has a point twice."""
        if chunk.shape != (size, POINT_BYTES):
            raise self.origin.error(f"not {size} of {POINT_BYTES} bytes, as the announced size of the set asks for")
        self.points[self.arrived : self.arrived + size] = chunk
        self.arrived += size
        if self.arrived == self.count:
            ordered = np.sort(_sortable(self.points))
            if (ordered[1:] == ordered[:-1]).any():
                raise self.origin.error("hold one twice")


def common_rows(sets: Sequence[Points]) -> list[Rows]:
    """Return, for each set of distinct points, the rows of the points that all sets have, sorted by point."""
    orders = [np.argsort(_sortable(points)) for points in sets]
    ordered = [_sortable(points)[order] for points, order in zip(sets, orders, strict=True)]
    common = ordered[0]
    for other in ordered[1:]:
        common = np.intersect1d(common, other, assume_unique=True)
    return [order[np.searchsorted(points, common)] for points, order in zip(ordered, orders, strict=True)]


def _sortable(points: Points) -> npt.NDArray[np.bytes_]:
    """View points as (count,) texts of one width, so that a comparison heeds trailing zeros."""
    return np.ascontiguousarray(points).view(f"S{POINT_BYTES}")[:, 0]
