"""A request of WALR: its settings, its rows, its checks and its digest (steps 1 and 2)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from blindfit.algorithms import fixed_point
from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.walr.messages import BATCH_BYTES, BATCH_ROWS, NOT_CONTENT, AggregateOpen, WeightRows

DIGEST = DigestFormat()
"""Form of a request's fields in its digest, in its name and in the statement that a ledger's entry proves."""
MIN_EPSILON, MAX_EPSILON = 1e-6, 50.0
MIN_DELTA, MAX_DELTA = 1e-100, 0.5
MAX_REQUEST_ID_CHARS = 128
SALT_BYTES = 32
MAX_SLOT_BITS = 128
NAMED = (
    "dataset",
    "snapshot",
    "n_rows",
    "n_columns",
    "frac_bits",
    "norm_bound",
    "max_rows_per_person",
    "epsilon",
    "delta",
    "mechanism",
)


@dataclass(frozen=True, slots=True, repr=False)
class ConsumerRows:
    """Rows that the active party sends and later trains on: the same integers."""

    ids: Sequence[str]  # a slice of it is a tuple
    weights: IntegerRows  # (n_rows, n_columns)

    def batches(self, batch_rows: int | None = None) -> Iterator[WeightRows]:
        """Yield messages; by default of as many rows as surely fit. The answer does not depend on that number."""
        batch_rows = batch_rows or self.rows_that_fit(self.weights.itemsize * int(self.weights.shape[1]))
        for start in range(0, len(self.ids), batch_rows):
            stop = start + batch_rows
            yield WeightRows(tuple(self.ids[start:stop]), self.weights[start:stop])

    def rows_that_fit(self, row_bytes: int) -> int:
        """Return the number of rows that surely fit in a message, from the bytes of a row without its id."""
        longest = max(map(len, self.ids), default=0)
        return min(BATCH_ROWS, max(1, BATCH_BYTES // (row_bytes + 4 * (longest + 1))))  # a character has 4 at most


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """Settings of the active party's request; public."""

    dataset: str
    snapshot: str
    epsilon: float
    delta: float
    mechanism: str = "analytic"
    frac_bits: int = 16
    max_rows_per_person: int = 0
    release: str = ""  # a new name requests a new draw, and is charged again
    content_salt: bytes = b""  # 32 secret bytes, always the same for the same rows; or empty


def step_1_open(
    rows: ConsumerRows,
    norm_bound: int,
    settings: ReleaseSettings,
    receipt: tuple[bytes, bytes] = (b"", b""),
    session: str = "",
) -> AggregateOpen:
    """Return the request; its id follows from the content, so that a repeated request costs nothing more.

    Raises:
        RangeError: the rows have 16 bits, and a row within the bound may need more.
    """
    if rows.weights.dtype == np.int16 and norm_bound > fixed_point.MAX_NARROW_BOUND:
        raise RangeError(f"rows of 16 bits hold no norm of {norm_bound} grid steps", hint="send rows of 32 bits")
    content = ContentDigest(settings.content_salt)
    with ThreadPoolExecutor(1) as hasher:  # a hash releases the interpreter's lock
        hashed = hasher.submit(content.update_weights, rows.weights)
        content.update_ids(rows.ids)
        hashed.result()
    request = AggregateOpen(
        protocol_version=PROTOCOL_VERSION,
        request_id="",
        dataset=settings.dataset,
        snapshot=settings.snapshot,
        n_rows=len(rows.ids),
        n_columns=int(rows.weights.shape[1]),
        frac_bits=settings.frac_bits,
        norm_bound=norm_bound,
        max_rows_per_person=settings.max_rows_per_person,
        epsilon=float(settings.epsilon),  # the id is a hash: 1 and 1.0 are one request
        delta=float(settings.delta),
        mechanism=settings.mechanism,
        content_sha256=content.digest(),
        receipt=receipt[0],
        receipt_signature=receipt[1],
        session=session,
        content_salt=settings.content_salt,
    )
    return replace(request, request_id=step_1_name(request, settings.release))


def step_1_name(request: AggregateOpen, release: str) -> str:
    """Return the name of a request, independent of its present name; an auditor computes it again.

    Args:
        release: see ReleaseSettings.
    """
    named = DIGEST.fields({name: getattr(request, name) for name in NAMED})
    return parameters_digest({**named, "release": release, "content": request.content_sha256.hex()}).hex()


class ContentDigest:
    """SHA-256 over salt, ids and weights, the same for all batches: ids, their lengths and weights are hashed apart.

    Weights count as 32-bit integers, in every width in which they are sent. So the same request in another width costs
    nothing either.
    """

    def __init__(self, salt: bytes = b"") -> None:
        self._salt = salt
        self._ids, self._lengths, self._weights = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()

    def update(self, batch: WeightRows) -> None:
        self.update_ids(batch.ids)
        self.update_weights(batch.weights)

    def update_ids(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), BATCH_ROWS):
            some = ids[start : start + BATCH_ROWS]
            self._ids.update("".join(some).encode())
            self._lengths.update(np.fromiter(map(len, some), "<u4", len(some)).tobytes())

    def update_weights(self, weights: IntegerRows) -> None:
        for start in range(0, len(weights), BATCH_ROWS):
            self._weights.update(np.ascontiguousarray(weights[start : start + BATCH_ROWS], "<i4").data)

    def digest(self) -> bytes:
        parts = (self._salt, self._ids.digest(), self._lengths.digest(), self._weights.digest())
        return hashlib.sha256(b"".join(parts)).digest()


Require = Callable[[bool, str, str], None]


def begin_check(request: Any, *, consumer: str) -> Require:
    """Check the fields that every request to a measurement server has; return the check of each further field.

    Args:
        request: request with `protocol_version`, `request_id`, `n_rows` and `content_sha256`.

    Raises:
        MalformedMessage: a field is wrong; the error names it.
    """

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=consumer, field=name, reason=reason, step=type(request).__name__)

    version = request.protocol_version == PROTOCOL_VERSION
    require(version, "protocol_version", f"this server supports version {PROTOCOL_VERSION}")
    require(0 < len(request.request_id) <= MAX_REQUEST_ID_CHARS, "request_id", "has a wrong length")
    require(1 <= request.n_rows <= fixed_point.MAX_ROWS, "n_rows", "is out of range")
    require(len(request.content_sha256) == 32, "content_sha256", "is not 32 bytes")
    return require


def step_2_check(request: AggregateOpen, *, consumer: str) -> None:
    """Check that every number of the request is within the range in which integer arithmetic is exact.

    Raises:
        MalformedMessage: a field is wrong; the error names it.
    """
    require = begin_check(request, consumer=consumer)
    require(1 <= request.n_columns <= fixed_point.MAX_COLUMNS, "n_columns", "is out of range")
    low, high = fixed_point.MIN_FRAC_BITS, fixed_point.MAX_FRAC_BITS
    require(low <= request.frac_bits <= high, "frac_bits", f"is not between {low} and {high}")
    require(1 <= request.norm_bound <= fixed_point.MAX_NORM_BOUND, "norm_bound", "is out of range")
    require(0 <= request.max_rows_per_person <= 2**16, "max_rows_per_person", "is out of range")
    require(len(request.content_salt) in (0, SALT_BYTES), "content_salt", f"is not {SALT_BYTES} bytes, nor empty")
    require(bool(request.key) == bool(request.public_key), "key", "goes with a public key, and a public key with it")
    low, high = (1, MAX_SLOT_BITS) if request.key else (0, 0)
    require(low <= request.slot_bits <= high, "slot_bits", "is out of range")
    require(request.in_shares in (0, 1), "in_shares", "is not 0 or 1")
    require(not (request.in_shares and request.key), "key", "hides rows that are hidden in shares")
    low_epsilon, high_epsilon = MIN_EPSILON, MAX_EPSILON
    require(
        low_epsilon <= request.epsilon <= high_epsilon,
        "epsilon",
        f"is not between {low_epsilon:g} and {high_epsilon:g}",
    )
    require(MIN_DELTA <= request.delta < MAX_DELTA, "delta", f"is not between {MIN_DELTA:g} and {MAX_DELTA:g}")
    require(request.mechanism in gaussian.NOISE_MULTIPLIERS, "mechanism", "is unknown")
    require(request.mechanism != "classic" or request.epsilon < 1, "mechanism", "classic needs epsilon < 1")
    try:
        noise_std = math.sqrt(mechanism_of(request).sigma_squared)
    except RangeError:
        noise_std = 0.0
    require(noise_std > 0, "frac_bits", "the noise would be smaller than 65,536 grid steps: take more fraction bits")
    reach = request.n_rows * request.norm_bound + gaussian.NOISE_REACH * noise_std
    require(reach < 2**63, "frac_bits", "the noisy sum would not fit in 64 bits: take fewer fraction bits")


def request_digest(request: AggregateOpen) -> bytes:
    """Return the digest of all fields on which the answer depends: one request id stands for one such digest."""
    names = [f.name for f in fields(request) if f.name not in NOT_CONTENT]
    content = DIGEST.fields({name: getattr(request, name) for name in names})
    return parameters_digest({**content, "rows": request.content_sha256.hex()})


def mechanism_of(request: AggregateOpen) -> GaussianMechanism:
    """Return the mechanism; raise RangeError if the grid is too coarse for its noise."""
    multiplier = gaussian.noise_multiplier(request.mechanism, request.epsilon, request.delta)
    return GaussianMechanism(multiplier, request.sensitivity**2)
