"""WALR: logistic regression from one noisy weighted aggregate of labels.

Source: Yuan and Lazarsfeld, "Weighted Aggregate Logistic Regression".
Model: the measurement server is trusted with the labels and sees the consumer's (the active party's) rows; the consumer
    may do what it likes, and learns no more about a label than (epsilon, delta) label DP allows.

    step  who      does                                                                  sends
    1     active   clips rows to norm R, rounds them toward zero to a grid               AggregateOpen
    2     server   checks ranges, policy, budget, receipt; the same request is known     Opened
    3     active   the rows, in batches                                                  WeightRows ..., RowsEnd
    4     server   joins by id, makes too long rows shorter, keeps at most m of a
                   person, sum = sum of label x row (exact integers); refuses, after
                   the last row, what it cannot join                                     --
    5     server   sum + discrete Gaussian noise; charge and answer in one transaction,
                   signed together with what was asked (walr_statement)                  NoisySum, RowsKept ...

                   (a request that was answered before goes from 2 to its stored answer)
    6     active   mu = noisy sum / N; minimises 1/N sum softplus(x.w) - w.mu + l2/2 |w|^2  --

Departures: norms in place of the range [0, 1]; analytic in place of classic Gaussian, drawn on the integer grid; an
    intercept; l2 > 0 from the noise, because without it no minimum need exist; Newton or L-BFGS beside the spec's
    hybrid minibatch.
Learns: the server, the rows and ids; the active party, the noisy sum, and which of its rows did not count because
    their person had m rows before (a matter of ids and persons, not of labels).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms import fixed_point
from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import (
    Channel,
    Integer,
    IntegerTensor,
    NarrowTensor,
    Octets,
    Real,
    Text,
    Texts,
    parameters_digest,
)
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, MEASUREMENT, ONCE, Arrow, Table
from blindfit.algorithms.randomness import UniformInt

BATCH_BYTES = 2**21  # of one message, half of what gRPC lets through: two sides work side by side, and a server that
# maps its index piece by piece goes through it once for each message
BATCH_ROWS = 16384
MAX_BATCH_ROWS = 2**20  # with fixed_point.MAX_NORM_BOUND, the sum of a batch is exact in float64
MIN_EPSILON, MAX_EPSILON = 1e-6, 50.0
MIN_DELTA, MAX_DELTA = 1e-100, 0.5
MAX_REQUEST_ID_CHARS = 128
KEPT_PIECE_BYTES = 2**20
SALT_BYTES = 32
MAX_SLOT_BITS = 128
NOT_CONTENT = frozenset(
    (
        "protocol_version",
        "request_id",
        "content_sha256",
        "content_salt",
        "receipt",
        "receipt_signature",
        "session",
        "public_key",
    )
)  # fields of a request on which its answer does not depend, but for the rows' hash
DIGEST = DigestFormat()
"""How fields of a request are written in its digest, in its name and in the statement that a ledger's entry proves."""
_NAMED = (
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

Bits = npt.NDArray[np.bool_]
R = TypeVar("R")


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateOpen:
    protocol_version: Text
    request_id: Text
    dataset: Text
    snapshot: Text
    n_rows: Integer
    n_columns: Integer
    frac_bits: Integer
    norm_bound: Integer  # grid steps
    max_rows_per_person: Integer  # 0: the unit is a row
    epsilon: Real
    delta: Real
    mechanism: Text
    content_sha256: Octets
    receipt: Octets  # empty: the consumer has none of this server
    receipt_signature: Octets
    session: Text = ""  # the job that it belongs to; a server whose operator approves each job wants one
    content_salt: Octets = b""  # of the hash, which a ledger shows to auditors: who lacks it cannot try rows out
    key: Text = ""  # fingerprint of the consumer's, under which rows and sum are encrypted; empty: they are not
    public_key: Octets = b""
    slot_bits: Integer = 0  # of one number in a ciphertext
    in_shares: Integer = 0  # 1: rows come less masks, to two servers (walr_shares)
    blocks: Text = ""  # of passive parties that hold columns of the same people (walr_blocks); empty: none

    @property
    def sensitivity(self) -> int:
        """L2, in grid steps: one label of the unit changes, N public."""
        return self.norm_bound * max(1, self.max_rows_per_person)


@dataclass(frozen=True, slots=True)
class Opened:
    send_rows: Integer  # 0: answered before, the answer follows


@dataclass(frozen=True, slots=True, repr=False)
class WeightRows:
    ids: Texts
    weights: NarrowTensor  # (rows, n_columns); answer and hash do not depend on how wide they are


@dataclass(frozen=True, slots=True)
class RowsEnd:
    pass


@dataclass(frozen=True, slots=True)
class NoisySum:
    sums: IntegerTensor  # (n_columns,), grid steps
    noise_std: Real  # grid steps
    sensitivity: Real  # grid steps
    event: Text
    unit: Text
    neighbours: Text
    rows_kept: Integer
    rows_scaled: Integer
    least_rows: Integer  # this and the next four: the policy and the population's budget under which it was released
    most_epsilon: Real
    most_delta: Real
    budget_epsilon: Real
    budget_delta: Real
    entry: Text  # the ledger's line of the charge, whose answer_sha256 is that of walr_statement.statement
    receipt: Octets
    receipt_signature: Octets
    ciphertexts: Octets = b""  # the sum under the request's key, where it has one; then `sums` is empty
    rows_unknown: Integer = (
        0  # rows that counted as label 0 because the table does not have their ids, if that is public
    )


@dataclass(frozen=True, slots=True, repr=False)
class RowsKept:
    bits: Octets


_NEW = "a request that was not answered before"

TABLE = Table(
    "walr",
    Arrow("1", ACTIVE, MEASUREMENT, AggregateOpen, ONCE, "what is asked for, and the hash of the rows"),
    Arrow("2", MEASUREMENT, ACTIVE, Opened, ONCE, "whether the request was answered before"),
    Arrow("3", ACTIVE, MEASUREMENT, WeightRows, CHUNKS, "rows and their ids", _NEW),
    Arrow("3", ACTIVE, MEASUREMENT, RowsEnd, ONCE, "that these were all", _NEW),
    Arrow("5", MEASUREMENT, ACTIVE, NoisySum, ONCE, "the noisy sum"),
    Arrow("5", MEASUREMENT, ACTIVE, RowsKept, CHUNKS, "which rows counted", "rows that did not count"),
)


# --- steps of the active party ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ConsumerRows:
    """What the consumer sends and later trains on: the same integers."""

    ids: Sequence[str]  # of which a slice is a tuple
    weights: IntegerRows  # (n_rows, n_columns)

    def batches(self, batch_rows: int | None = None) -> Iterator[WeightRows]:
        """By default as many rows as surely fit in one message; the answer does not depend on it."""
        batch_rows = batch_rows or self.rows_that_fit(self.weights.itemsize * int(self.weights.shape[1]))
        for start in range(0, len(self.ids), batch_rows):
            stop = start + batch_rows
            yield WeightRows(tuple(self.ids[start:stop]), self.weights[start:stop])

    def rows_that_fit(self, row_bytes: int) -> int:
        """Takes the bytes of a row without its id."""
        longest = max(map(len, self.ids), default=0)
        return min(BATCH_ROWS, max(1, BATCH_BYTES // (row_bytes + 4 * (longest + 1))))  # a character has 4 at most


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What the consumer asks for; public."""

    dataset: str
    snapshot: str
    epsilon: float
    delta: float
    mechanism: str = "analytic"
    frac_bits: int = 16
    max_rows_per_person: int = 0
    release: str = ""  # a new name asks for a new draw, and is charged again
    content_salt: bytes = b""  # 32 secret bytes, always the same for the same rows; or none


def step_1_open(
    rows: ConsumerRows,
    norm_bound: int,
    settings: ReleaseSettings,
    receipt: tuple[bytes, bytes] = (b"", b""),
    session: str = "",
) -> AggregateOpen:
    """The request; its id follows from the content, so that asking twice costs once.

    Raises:
        RangeError: rows of 16 bits, of which one within the bound may need more.
    """
    if rows.weights.dtype == np.int16 and norm_bound > fixed_point.MAX_NARROW_BOUND:
        raise RangeError(f"rows of 16 bits hold no norm of {norm_bound} grid steps", hint="send rows of 32 bits")
    content = ContentDigest(settings.content_salt)
    with ThreadPoolExecutor(1) as beside:  # a hash lets go of the interpreter's lock
        hashed = beside.submit(content.update_weights, rows.weights)
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
    """What a request is called, whatever it is called now; an auditor computes it again.

    Args:
        release: as in ReleaseSettings.
    """
    named = DIGEST.fields({name: getattr(request, name) for name in _NAMED})
    return parameters_digest({**named, "release": release, "content": request.content_sha256.hex()}).hex()


class ContentDigest:
    """SHA-256 over salt, ids and weights, whatever the batches: ids, their lengths and the weights run apart.

    Weights count as 32-bit integers, however wide they travel: so to ask again in another width costs nothing either.
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


def step_6_mean(answer: NoisySum, request: AggregateOpen) -> tuple[npt.NDArray[np.float64], float]:
    """mu and the standard deviation of its noise, in the units of the features."""
    if answer.rows_kept < 1:
        raise RangeError("no row counted at the measurement server")
    scale = 2.0**-request.frac_bits / answer.rows_kept
    return answer.sums.astype(np.float64) * scale, answer.noise_std * scale


# --- steps of the measurement server ---------------------------------------------------------------


def step_2_check(request: AggregateOpen, *, consumer: str) -> None:
    """Every number of the request within the range in which the integer arithmetic is exact.

    Raises:
        MalformedMessage: names the field.
    """

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=consumer, field=name, reason=reason, step="AggregateOpen")

    require(
        request.protocol_version == PROTOCOL_VERSION,
        "protocol_version",
        f"this server speaks version {PROTOCOL_VERSION}",
    )
    require(0 < len(request.request_id) <= MAX_REQUEST_ID_CHARS, "request_id", "has a wrong length")
    require(1 <= request.n_rows <= fixed_point.MAX_ROWS, "n_rows", "is out of range")
    require(1 <= request.n_columns <= fixed_point.MAX_COLUMNS, "n_columns", "is out of range")
    low, high = fixed_point.MIN_FRAC_BITS, fixed_point.MAX_FRAC_BITS
    require(low <= request.frac_bits <= high, "frac_bits", f"is not between {low} and {high}")
    require(1 <= request.norm_bound <= fixed_point.MAX_NORM_BOUND, "norm_bound", "is out of range")
    require(0 <= request.max_rows_per_person <= 2**16, "max_rows_per_person", "is out of range")
    require(len(request.content_sha256) == 32, "content_sha256", "is not 32 bytes")
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
    """Return the digest of all that the answer depends on: one request id stands for one such digest."""
    names = [f.name for f in fields(request) if f.name not in NOT_CONTENT]
    content = DIGEST.fields({name: getattr(request, name) for name in names})
    return parameters_digest({**content, "rows": request.content_sha256.hex()})


def mechanism_of(request: AggregateOpen) -> GaussianMechanism:
    """Raises RangeError: the grid is too coarse for this noise."""
    multiplier = gaussian.noise_multiplier(request.mechanism, request.epsilon, request.delta)
    return GaussianMechanism(multiplier, request.sensitivity**2)


Join = Callable[[Sequence[str]], tuple[npt.NDArray[Any], Bits]]


@dataclass(frozen=True, slots=True, repr=False)
class Released:
    """A noisy sum as it is answered: in the clear, or as ciphertexts."""

    sums: npt.NDArray[np.int64]
    ciphertexts: bytes = b""


@dataclass(repr=False)
class Tally:
    """The exact sum as it grows; of a size that does not depend on the number of rows."""

    request: AggregateOpen
    keep_bits: Callable[[bytes], object]  # where the bits of rows that counted go
    sums: npt.NDArray[np.int64] = field(init=False)
    content: ContentDigest = field(init=False)
    rows: int = 0
    rows_kept: int = 0
    rows_scaled: int = 0
    rows_unknown: int = 0  # as label 0, because the table does not have their ids; 0 unless that is public
    _pending_bits: list[Bits] = field(default_factory=list)

    batch_kind: ClassVar[type[Any]] = WeightRows

    def __post_init__(self) -> None:
        self.sums = np.zeros(self.request.n_columns, np.int64)
        self.content = ContentDigest(self.request.content_salt)

    def add(self, batch: WeightRows, join: Join, *, consumer: str) -> None:
        """Step 4 for one batch."""
        step_4_check_batch(batch, self.rows, self.request, consumer=consumer)
        self.content.update(batch)
        labels, kept = join(batch.ids)
        rows, scaled = fixed_point.enforce_norm_bound(batch.weights, self.request.norm_bound)
        self.add_up(labels, kept, rows)
        self.rows_scaled += scaled
        self.count(kept)

    def count(self, kept: Bits) -> None:
        """Takes which rows of a batch count."""
        self.rows += len(kept)
        self.rows_kept += int(kept.sum())
        self._keep(kept)

    def add_up(self, labels: npt.NDArray[Any], kept: Bits, rows: IntegerRows) -> None:
        self.sums += _weighted_sum((labels != 0) & kept, rows)

    def released(self, mechanism: GaussianMechanism, uniform: UniformInt) -> Released:
        """Step 5."""
        return Released(self.wrapped(mechanism.release(self.sums.tolist(), uniform)))

    def wrapped(self, noisy: Sequence[int]) -> npt.NDArray[np.int64]:
        """The noisy sum as it is answered."""
        return np.array(noisy, np.int64)

    def _keep(self, kept: Bits, *, last: bool = False) -> None:
        bits = np.concatenate([*self._pending_bits, kept])
        whole = len(bits) if last else len(bits) // 8 * 8
        self.keep_bits(np.packbits(bits[:whole]).tobytes())
        self._pending_bits = [bits[whole:]]

    def finish(self, *, consumer: str) -> None:
        if self.rows != self.request.n_rows:
            raise MalformedMessage(
                culprit=consumer, field="n_rows", reason="is not the number of rows that came", step="RowsEnd"
            )
        self.check_content(consumer=consumer)
        self._keep(np.zeros(0, np.bool_), last=True)

    def check_content(self, *, consumer: str) -> None:
        if self.content.digest() != self.request.content_sha256:
            raise MalformedMessage(
                culprit=consumer, field="content_sha256", reason="is not the hash of the rows", step="RowsEnd"
            )


def _weighted_sum(chosen: Bits, rows: IntegerRows) -> npt.NDArray[np.int64]:
    """The same work whatever is chosen; exact, as MAX_BATCH_ROWS says.

    To pick out the rows with a label would take a time that tells their number to whoever sends a batch again and again
    and never lets it be charged.
    """
    return (chosen.astype(np.float64) @ rows.astype(np.float64)).astype(np.int64)


def step_4_check_batch(batch: WeightRows, rows_before: int, request: AggregateOpen, *, consumer: str) -> None:
    step_4_check_ids(batch.ids, rows_before, request, consumer=consumer)
    if batch.weights.shape != (len(batch.ids), request.n_columns):
        raise MalformedMessage(
            culprit=consumer,
            field="weights",
            reason="not one row of n_columns for each id",
            step="WeightRows",
        )
    if batch.weights.dtype == np.int16 and request.norm_bound > fixed_point.MAX_NARROW_BOUND:
        reason = "are of 16 bits, of which a row within norm_bound may need more"
        raise MalformedMessage(culprit=consumer, field="weights", reason=reason, step="WeightRows")


def step_4_check_ids(ids: Sequence[str], rows_before: int, request: AggregateOpen, *, consumer: str) -> None:
    n = len(ids)
    if not 0 < n <= MAX_BATCH_ROWS:
        raise MalformedMessage(
            culprit=consumer, field="ids", reason=f"not 1 to {MAX_BATCH_ROWS} in a batch", step="WeightRows"
        )
    if rows_before + n > request.n_rows:
        raise MalformedMessage(culprit=consumer, field="ids", reason="more rows than n_rows", step="WeightRows")


@dataclass(frozen=True, slots=True, repr=False)
class Draft:
    """A release that is not yet charged: it must not leave before the ledger has it."""

    released: Released
    noise_std: float
    sensitivity: float
    event: ReleaseEvent
    rows_kept: int
    rows_scaled: int
    rows_unknown: int


def step_5_draft(tally: Tally, uniform: UniformInt, *, neighbours: str) -> Draft:
    """The exact sum plus discrete Gaussian noise on the same grid; integers to the end."""
    mechanism = mechanism_of(tally.request)
    return Draft(
        released=tally.released(mechanism, uniform),
        noise_std=math.sqrt(mechanism.sigma_squared),
        sensitivity=float(tally.request.sensitivity),
        event=mechanism.event(neighbours),
        rows_kept=tally.rows_kept,
        rows_scaled=tally.rows_scaled,
        rows_unknown=tally.rows_unknown,
    )


# --- roles -----------------------------------------------------------------------------------------


class SentRows(Protocol):
    """Rows as they go to a server."""

    def batches(self) -> Iterator[Any]:
        """Messages with `ids`."""
        ...


class InBackground(Protocol):
    """Does work off the event loop."""

    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]: ...


async def run_active(
    rows: SentRows,
    request: AggregateOpen,
    server: str,
    channel: Channel,
    in_background: InBackground,
    on_rows: Callable[[int], None] = lambda _: None,
) -> tuple[NoisySum, Bits]:
    """Returns the answer and which rows counted."""
    await channel.send(server, request)
    opened = await channel.receive(server, Opened)
    if opened.send_rows:
        batches = rows.batches()
        while (batch := await in_background(lambda: next(batches, None))) is not None:
            await channel.send(server, batch)
            on_rows(len(batch.ids))
        await channel.send(server, RowsEnd())
    answer = await channel.receive(server, NoisySum)
    step_6_check(answer, request, server=server)
    if answer.rows_kept == request.n_rows:
        return answer, np.ones(request.n_rows, np.bool_)
    if request.blocks:  # which rows others have is not told
        return answer, np.zeros(0, np.bool_)
    return answer, await receive_kept(answer, request, server, channel)


def step_6_check(answer: NoisySum, request: AggregateOpen, *, server: str) -> None:
    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=server, field=name, reason=reason, step="NoisySum")

    sums = 0 if request.key else request.n_columns
    fewer = bool(request.blocks) and 1 <= len(answer.sums) < request.n_columns  # those of its own block
    require(answer.sums.shape == (sums,) or fewer, "sums", "not one for each column")
    require(bool(answer.ciphertexts) == bool(request.key), "ciphertexts", "not where there is a key, and only there")
    require(0 <= answer.rows_kept <= request.n_rows, "rows_kept", "is out of range")
    require(0 <= answer.rows_scaled <= request.n_rows, "rows_scaled", "is out of range")
    require(0 <= answer.rows_unknown <= request.n_rows, "rows_unknown", "is out of range")
    require(0 < answer.noise_std < 2.0**61, "noise_std", "is out of range")


async def receive_kept(answer: NoisySum, request: AggregateOpen, server: str, channel: Channel) -> Bits:
    packed = bytearray()
    size = -(-request.n_rows // 8)
    while len(packed) < size:
        piece = (await channel.receive(server, RowsKept)).bits
        if not 0 < len(piece) <= size - len(packed):
            raise MalformedMessage(culprit=server, field="bits", reason="has a wrong length", step="RowsKept")
        packed += piece
    kept = np.unpackbits(np.frombuffer(packed, np.uint8), count=request.n_rows).astype(np.bool_)
    if int(kept.sum()) != answer.rows_kept:
        raise MalformedMessage(culprit=server, field="bits", reason="do not add up to rows_kept", step="RowsKept")
    return kept


class Desk(Protocol):
    """What the measurement server brings to its role: policy, ledger, labels, and a place for the kept bits."""

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        """Raises what refuses the request; returns the stored answer of the same request."""

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:
        """Raises what another server has against it; `answer`, where it is remembered."""

    def tally(self, request: AggregateOpen) -> Tally: ...

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[Any], Bits]:
        """The same work whatever the ids; what is wrong with them is said in `release`."""
        ...

    def keep_bits(self, bits: bytes) -> object: ...

    def kept_pieces(self) -> Iterator[bytes]:
        """Which rows counted in the answer; kept with it, so that they belong to each other for good."""
        ...

    async def before_release(self, tally: Tally) -> None:
        """All rows have come. Raises what another server has against it."""

    def release(self, tally: Tally) -> NoisySum:
        """Raises what refuses the rows; draws, charges and stores in one transaction; the same request gets the stored
        answer."""

    def told(self, answer: NoisySum) -> NoisySum:
        """What of it the consumer gets."""
        ...

    def in_background(self, work: Callable[[], R]) -> Awaitable[R]:
        """Off the event loop: hashing, the database, the noise."""
        ...


async def run_measurement_server(consumer: str, channel: Channel, desk: Desk) -> NoisySum:
    request = await channel.receive(consumer, AggregateOpen)
    step_2_check(request, consumer=consumer)
    answer = await desk.in_background(lambda: desk.admit(request))
    await desk.before_rows(request, answer)
    await channel.send(consumer, Opened(int(answer is None)))
    if answer is None:
        tally = await receive_rows(request, consumer, channel, desk)
        await desk.before_release(tally)
        answer = await desk.in_background(lambda: desk.release(tally))
    await channel.send(consumer, desk.told(answer))
    if answer.rows_kept < request.n_rows and not request.blocks:
        pieces = desk.kept_pieces()
        while piece := await desk.in_background(lambda: next(pieces, b"")):
            await channel.send(consumer, RowsKept(piece))
    return answer


async def receive_rows(request: AggregateOpen, consumer: str, channel: Channel, desk: Desk) -> Tally:
    tally = await desk.in_background(lambda: desk.tally(request))
    while tally.rows < request.n_rows:
        batch = await channel.receive(consumer, tally.batch_kind)
        await desk.in_background(partial(tally.add, batch, desk.join, consumer=consumer))
    await channel.receive(consumer, RowsEnd)
    tally.finish(consumer=consumer)
    return tally


# --- the specification: both seats in one process, no channel ---------------------------------------


def run_locally(rows: ConsumerRows, request: AggregateOpen, labels: Mapping[str, int], uniform: UniformInt) -> NoisySum:
    """One label for each row, unit = row, no ledger: what the two roles compute, on one page."""
    step_2_check(request, consumer="active")
    tally = Tally(request, lambda _: None)

    def join(ids: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Bits]:
        return np.array([labels[i] for i in ids], np.uint8), np.ones(len(ids), np.bool_)

    for batch in rows.batches():
        tally.add(batch, join, consumer="active")
    tally.finish(consumer="active")
    draft = step_5_draft(tally, uniform, neighbours="row")
    return answer_of(draft, unit="row", terms=Terms())


@dataclass(frozen=True, slots=True)
class Terms:
    """Of a server and a population, when it released: what its operator allowed."""

    least_rows: int = 1
    most_epsilon: float = MAX_EPSILON
    most_delta: float = MAX_DELTA
    budget_epsilon: float = MAX_EPSILON
    budget_delta: float = MAX_DELTA


def answer_of(draft: Draft, *, unit: str, terms: Terms) -> NoisySum:
    """Return what is released; its entry and receipt are put in when it is charged."""
    return NoisySum(
        sums=draft.released.sums,
        ciphertexts=draft.released.ciphertexts,
        noise_std=draft.noise_std,
        sensitivity=draft.sensitivity,
        event=draft.event.canonical(),
        unit=unit,
        neighbours=draft.event.neighbours,
        rows_kept=draft.rows_kept,
        rows_scaled=draft.rows_scaled,
        least_rows=terms.least_rows,
        most_epsilon=terms.most_epsilon,
        most_delta=terms.most_delta,
        budget_epsilon=terms.budget_epsilon,
        budget_delta=terms.budget_delta,
        entry="",
        receipt=b"",
        receipt_signature=b"",
        rows_unknown=draft.rows_unknown,
    )
