"""The server's sum and its release, and the active party's use of it (steps 4 to 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.protocols.walr.messages import (
    MAX_BATCH_ROWS,
    AggregateOpen,
    Bits,
    NoisySum,
    WeightRows,
)
from blindfit.algorithms.protocols.walr.request import MAX_DELTA, MAX_EPSILON, ContentDigest, mechanism_of
from blindfit.algorithms.randomness import UniformInt


def step_6_mean(answer: NoisySum, request: AggregateOpen) -> tuple[npt.NDArray[np.float64], float]:
    """Return mu and the standard deviation of its noise, in the units of the features."""
    if answer.rows_kept < 1:
        raise RangeError("no row counted at the measurement server")
    scale = 2.0**-request.frac_bits / answer.rows_kept
    return answer.sums.astype(np.float64) * scale, answer.noise_std * scale


Join = Callable[[Sequence[str]], tuple[npt.NDArray[Any], Bits]]


@dataclass(frozen=True, slots=True, repr=False)
class Released:
    """A noisy sum in the form of the answer: in the clear, or as ciphertexts."""

    sums: npt.NDArray[np.int64]
    ciphertexts: bytes = b""


@dataclass(repr=False)
class Tally:
    """The growing exact sum; its size does not depend on the number of rows."""

    request: AggregateOpen
    keep_bits: Callable[[bytes], object]  # where the bits of rows that counted go
    sums: npt.NDArray[np.int64] = field(init=False)
    content: ContentDigest = field(init=False)
    rows: int = 0
    rows_kept: int = 0
    rows_scaled: int = 0
    rows_unknown: int = 0  # counted as label 0 because the table does not have their ids; 0 unless that is public
    _pending_bits: list[Bits] = field(default_factory=list)

    batch_kind: ClassVar[type[Any]] = WeightRows

    def __post_init__(self) -> None:
        self.sums = np.zeros(self.request.n_columns, np.int64)
        self.content = ContentDigest(self.request.content_salt)

    def add(self, batch: WeightRows, join: Join, *, consumer: str) -> None:
        """Do step 4 for one batch."""
        step_4_check_batch(batch, self.rows, self.request, consumer=consumer)
        self.content.update(batch)
        labels, kept = join(batch.ids)
        rows, scaled = fixed_point.enforce_norm_bound(batch.weights, self.request.norm_bound)
        self.add_up(labels, kept, rows)
        self.rows_scaled += scaled
        self.count(kept)

    def count(self, kept: Bits) -> None:
        """Count the rows of a batch that count."""
        self.rows += len(kept)
        self.rows_kept += int(kept.sum())
        self._keep(kept)

    def add_up(self, labels: npt.NDArray[Any], kept: Bits, rows: IntegerRows) -> None:
        self.sums += _weighted_sum((labels != 0) & kept, rows)

    def release(self, mechanism: GaussianMechanism, uniform: UniformInt) -> Released:
        """Do step 5: add noise to the sums."""
        return Released(self.wrap(mechanism.release(self.sums.tolist(), uniform)))

    def wrap(self, noisy: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the noisy sum in the form of the answer."""
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
    """Sum the chosen rows, with the same work for every choice; exact, because of MAX_BATCH_ROWS.

    A sum of only the rows with a label would take a time that reveals their number to a party that sends a batch again
    and again and never lets it be charged.
    """
    return (chosen.astype(np.float64) @ rows.astype(np.float64)).astype(np.int64)


def step_4_check_batch(batch: WeightRows, rows_before: int, request: AggregateOpen, *, consumer: str) -> None:
    step_4_check_ids(batch.ids, rows_before, request, consumer=consumer)
    if batch.weights.shape != (len(batch.ids), request.n_columns):
        raise MalformedMessage(
            culprit=consumer,
            field="weights",
            reason="are not one row of n_columns for each id",
            step="WeightRows",
        )
    if batch.weights.dtype == np.int16 and request.norm_bound > fixed_point.MAX_NARROW_BOUND:
        reason = "have 16 bits, and a row within norm_bound may need more"
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
    """Return the exact sum plus discrete Gaussian noise on the same grid; integers to the end."""
    mechanism = mechanism_of(tally.request)
    return Draft(
        released=tally.release(mechanism, uniform),
        noise_std=math.sqrt(mechanism.sigma_squared),
        sensitivity=float(tally.request.sensitivity),
        event=mechanism.event(neighbours),
        rows_kept=tally.rows_kept,
        rows_scaled=tally.rows_scaled,
        rows_unknown=tally.rows_unknown,
    )


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
    require(0 < answer.sensitivity < 2.0**61, "sensitivity", "is out of range")


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits that a server's operator allowed for a population at the time of a release."""

    min_rows: int = 1
    max_epsilon: float = MAX_EPSILON
    max_delta: float = MAX_DELTA
    budget_epsilon: float = MAX_EPSILON
    budget_delta: float = MAX_DELTA


def answer_of(draft: Draft, *, unit: str, terms: Terms) -> NoisySum:
    """Return the answer; its entry and receipt are added when it is charged."""
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
        **asdict(terms),
        entry="",
        receipt=b"",
        receipt_signature=b"",
        rows_unknown=draft.rows_unknown,
    )
