"""Vertical logistic or linear regression on the Taylor loss, under Paillier, with or without an encrypted mask.

Source: Hardy et al. 2017 (arXiv 1711.10677), Algorithms 1 to 3, and its fourth, for mu.
Model: semi-honest; the key node colludes with nobody. One active party (labels), any number of passive parties, in one
    order, the chain. theta, X and y never leave their owners. Trains on rows that were aligned before (align, link).

    step  who        does                                                               sends
    0     key node   key pair                                                           TaylorKey
    0     active     [[f]] = [[m]] o c: class weights, where used                       RowFactors
    0     active     [[f o y]] on the hold-out rows                                     HoldOutLabels
    0     passive    [[mu]] = X_H^T [[f o y]], kept                                     --
    1     active     on batch S: [[w]] = [[f]] o (2a z_A - b y + n), re-randomised      ChainedResiduals
    2     passive    [[w]] <- [[w]] + [[f]] o 2a z_p, re-randomised                     to the next; the last to all
    3     each       [[g]] = X_S^T [[w]], packed, plus rho, re-randomised               MaskedGradient
    4     key node   decrypts, adds noise                                               NoisyGradient to its owner
    5     each       theta <- theta - rate ((g + noise) / s + l2 theta)                 --
    6     active     each epoch, hold-out: [[f o z_A]], [[loss of z_A]]                 PartialLoss
    6     passive    adds 2a z_p . [[f o z_before]] + a [[f]] . z_p^2 - b theta . mu    the last: HoldOutLoss
    7     key node   decrypts the loss; patience                                        Verdict to all

    f_i multiplies row i: 1 without a mask (then nothing is sent and factors are plain), the mask's 0 or 1 (then all
    hold [[m]] from the alignment), a class's weight c_i, or both. n is the jitter of each row, drawn once. a and b are
    those of statistics.taylor. The loss is the mean of f_i loss_i over the slots, as the gradient is.

Departures from the paper: the corrections 2 theta.mu / 4h, u' = (u o u), v = log 2 / h; the mean over a batch is of its
    slots; every ciphertext is re-randomised before it leaves (else the active party divides what comes back by what it
    sent and reads 2a z_p); gradients are masked, packed and noised; any number of passive parties.
Learns: each party, its own noisy gradients; the key node, masked gradients, the hold-out loss of each epoch, which it
    tells as "go on" or "stop"; nobody else's weights, scores or labels. What gradients give away, and the defences, is
    in docs/threat-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, LocalProtocolError, MalformedMessage, PrivacyError, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.messages import Channel, CiphertextVector, Integer, OctetVector, PublicKeyKind
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, Randomisers
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.packing import Layout, PackedVector, decrypt_packed, pack
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.paillier.vectors import C_co, EncryptedVector, decrypt, encrypt
from blindfit.algorithms.privacy import discrete_gaussian
from blindfit.algorithms.protocols.table import (
    ACTIVE,
    BATCH,
    CIPHERTEXTS,
    DATA,
    EPOCH,
    KEY,
    ONCE,
    PASSIVE,
    Arrow,
    Table,
)
from blindfit.algorithms.randomness import UniformInt, keyed_uniform
from blindfit.algorithms.statistics.taylor import Optimiser, Patience
from blindfit.algorithms.statistics.taylor_plan import LABEL_TERM_BOUND, SCORE_TERM_BOUND, Grid, RowPlan, Rows
from blindfit.algorithms.workers import THIS_PROCESS, Workers

Floats = npt.NDArray[np.float64]
Encrypted = EncryptedVector[Ciphertext]
Fresh = EncryptedVector[FreshCiphertext]
NOISE_REACH = 64  # standard deviations: no noise goes so far
R = TypeVar("R")


# --- messages ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaylorKey:
    public_key: PublicKeyKind


@dataclass(frozen=True, slots=True)
class RowFactors:
    factors: CiphertextVector  # (rows,)


@dataclass(frozen=True, slots=True)
class HoldOutLabels:
    labels: CiphertextVector  # (hold-out rows,)


@dataclass(frozen=True, slots=True)
class ChainedResiduals:
    residuals: CiphertextVector  # (batch rows,)


@dataclass(frozen=True, slots=True)
class Residuals:
    residuals: CiphertextVector  # (batch rows,)


@dataclass(frozen=True, slots=True)
class MaskedGradient:
    gradient: CiphertextVector  # packed


@dataclass(frozen=True, slots=True, repr=False)
class NoisyGradient:
    values: OctetVector  # (columns, width): g + rho + noise, two's complement, big-endian


@dataclass(frozen=True, slots=True)
class PartialLoss:
    scores: CiphertextVector  # (hold-out rows,)
    loss: CiphertextVector  # (1,)


@dataclass(frozen=True, slots=True)
class HoldOutLoss:
    loss: CiphertextVector  # (1,)


@dataclass(frozen=True, slots=True)
class Verdict:
    go_on: Integer


_CLASS_WEIGHTS, _HOLD_OUT = "class weights", "a hold-out loss"

TABLE = Table(
    "taylor",
    Arrow("0", KEY, DATA, TaylorKey, ONCE, "the public key"),
    Arrow("0", ACTIVE, PASSIVE, RowFactors, ONCE, CIPHERTEXTS, _CLASS_WEIGHTS),
    Arrow("0", ACTIVE, PASSIVE, HoldOutLabels, ONCE, CIPHERTEXTS, _HOLD_OUT),
    Arrow("1", ACTIVE, PASSIVE, ChainedResiduals, BATCH, CIPHERTEXTS),
    Arrow("2", PASSIVE, PASSIVE, ChainedResiduals, BATCH, CIPHERTEXTS, "two passive parties or more"),
    Arrow("2", PASSIVE, DATA, Residuals, BATCH, CIPHERTEXTS),
    Arrow("3", DATA, KEY, MaskedGradient, BATCH, "a gradient plus a uniform mask"),
    Arrow("4", KEY, DATA, NoisyGradient, BATCH, "own noisy gradient"),
    Arrow("6", DATA, PASSIVE, PartialLoss, EPOCH, CIPHERTEXTS, _HOLD_OUT),
    Arrow("6", PASSIVE, KEY, HoldOutLoss, EPOCH, "the hold-out loss", _HOLD_OUT),
    Arrow("7", KEY, DATA, Verdict, EPOCH, "go on or stop", _HOLD_OUT),
)


# --- what is agreed, and what each role holds ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaylorParameters:
    """Public: the same at every party.

    Attributes:
        data_parties: the chain, the active party first.
        columns: of each data party, in the same order.
        encrypted_factors: rows have factors that the active party alone knows (class weights), and sends encrypted.
        masked: rows have a mask, which every data party holds encrypted since the alignment.
        noise_std: of the key node's noise on every coordinate of a batch's sum, in units of the features.
        noise_kept: drawn once for each batch and the same in every epoch (label DP), not afresh.
        hold_out_loss: whether step 6 runs; without it every epoch runs.
    """

    data_parties: tuple[str, ...]
    key_node: str
    columns: tuple[int, ...]
    grid: Grid
    key_bits: int = 2048
    epochs: int = 20
    patience: int = 3
    tolerance: float = 1e-4
    encrypted_factors: bool = False
    masked: bool = False
    noise_std: float = 1.0
    noise_kept: bool = False
    hold_out_loss: bool = True

    @property
    def active(self) -> str:
        return self.data_parties[0]

    @property
    def last(self) -> str:
        return self.data_parties[-1]

    def after(self, party: str) -> str:
        return self.data_parties[self.data_parties.index(party) + 1]

    def before(self, party: str) -> str:
        return self.data_parties[self.data_parties.index(party) - 1]

    def columns_of(self, party: str) -> int:
        return self.columns[self.data_parties.index(party)]


@dataclass(slots=True, repr=False)
class DataSeat:
    """One data party's own: rows in the common order, weights, randomness.

    Attributes:
        features: (rows, k) integers of the grid.
        label_terms: (rows,) -b y + n, at the active party; None elsewhere.
        y: (rows,) at the active party.
        factors: (rows,) class weights in steps, at the active party.
        mask_enc: (rows,) [[m]] where there is a mask.
        factors_enc: (rows,) [[f]], which step 0 sets: the mask, or what the active party makes of it.
        uniform: for the masks rho.
    """

    name: str
    features: Rows
    optimiser: Optimiser
    randomisers: Randomisers
    uniform: UniformInt
    label_terms: Rows | None = None
    y: Floats | None = None
    factors: Rows | None = None
    mask_enc: Encrypted | None = None
    factors_enc: Encrypted | None = None
    workers: Workers = THIS_PROCESS


@dataclass(slots=True, repr=False)
class KeySeat:
    """The key node's own: the private key, and the secret that its noise is drawn from, the same when resumed."""

    private_key: PrivateKey
    noise_key: bytes
    patience: Patience
    threads: int = 1


# --- what is checked before the first ciphertext --------------------------------------------------------


def check_parameters(parameters: TaylorParameters, batch_rows: Sequence[int], validation_rows: int) -> None:
    """That no number of this training can pass what holds it, and that what is combined may be.

    Raises:
        RangeError: a bound does not fit under the key, in a slot or in 62 bits.
        ConfigError: too few parties, or no rows where there must be some.
        PrivacyError: label DP with something that would break its claim.
    """
    if len(parameters.data_parties) < 2 or parameters.grid.data_parties != len(parameters.data_parties):
        raise ConfigError("a training has an active and at least one passive party, and a grid for as many")
    if len(parameters.columns) != len(parameters.data_parties) or min(parameters.columns) < 1:
        raise ConfigError("each party of a training has at least one column")
    if not batch_rows or min(batch_rows) < 1:
        raise ConfigError("a training has batches of at least one row")
    if parameters.hold_out_loss and validation_rows < 1:
        raise ConfigError("no row is held out, so there is no loss to stop by", hint="choose a validation_fraction")
    if not parameters.encrypted_factors and (parameters.grid.factor_bits, parameters.grid.factor_bound) != (0, 1):
        raise ConfigError("the grid has room for class weights, and there are none")
    if parameters.noise_kept and parameters.encrypted_factors:
        raise PrivacyError("class weights break label DP: what a label changes would grow with the score")
    if parameters.noise_kept and parameters.hold_out_loss:
        raise PrivacyError(
            "stopping by the hold-out loss breaks label DP: it tells of the labels",
            hint="fix the number of epochs: validation_fraction = 0",
        )
    _check_bounds(parameters, max(batch_rows), validation_rows)


def _check_bounds(parameters: TaylorParameters, batch_rows: int, validation_rows: int) -> None:
    grid, columns = parameters.grid, max(parameters.columns)
    grid.check()
    slot_bits = grid.slot_bits(batch_rows)
    most_noise = math.ldexp(grid.hiding_bound(batch_rows), -grid.gradient_bits) / NOISE_REACH
    if not 0 <= parameters.noise_std < most_noise:
        raise RangeError(f"gradient_noise = {parameters.noise_std:g} is not between 0 and {most_noise:.3g}")
    most = max(
        1 << (slot_bits + 1),  # a slot and its place below half the modulus, as Layout has it
        grid.partial_loss_bound(validation_rows, columns) if parameters.hold_out_loss else 0,
    )
    if 2 * most >= 1 << (parameters.key_bits - 1):
        raise RangeError(
            f"a number of the training could need {most.bit_length() + 1} bits, more than a key of "
            f"{parameters.key_bits} bits holds",
            hint="use fewer fraction bits, fewer rows to a batch or a larger key",
        )


def check_seat(seat: DataSeat, plan: RowPlan, parameters: TaylorParameters) -> None:
    """That a party's own rows are what the parameters say.

    Raises:
        LocalProtocolError: something is missing, or has another shape.
        RangeError: a feature passes the grid's bound.
    """
    rows, grid = len(seat.features), parameters.grid
    active = seat.name == parameters.active
    shape = (rows, parameters.columns_of(seat.name))
    wrong = {
        "features": seat.features.shape != shape or len(seat.optimiser.weights) != shape[1],
        "plan": any(
            part.size and not 0 <= part.min() <= part.max() < rows for part in (*plan.batches, plan.validation)
        ),
        "label_terms": active and (seat.label_terms is None or len(seat.label_terms) != rows),
        "y": active and parameters.hold_out_loss and (seat.y is None or len(seat.y) != rows),
        "factors": (seat.factors is not None) != (active and parameters.encrypted_factors),
        "mask_enc": _wrong_mask(seat.mask_enc, rows) if parameters.masked else seat.mask_enc is not None,
    }
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise LocalProtocolError(f"{seat.name}: {name} is missing, or is not what the parameters say")
    if seat.features.size and max(int(seat.features.max()), -int(seat.features.min())) > grid.feature_steps:
        raise RangeError(f"a feature of {seat.name} passes {grid.feature_bound:g}", hint="clip with Grid.features")


def _wrong_mask(mask_enc: Encrypted | None, rows: int) -> bool:
    return mask_enc is None or (len(mask_enc), mask_enc.frac_bits, mask_enc.bound) != (rows, 0, 1)


# --- steps of the data parties --------------------------------------------------------------------------


def step_0_factors(seat: DataSeat, grid: Grid) -> Fresh:
    """[[m]] o c, or Enc(c) without a mask, for one passive party."""
    if seat.factors is None:
        raise LocalProtocolError("the active party has no factors to send")
    factors = Fixed(seat.factors, grid.factor_bits)
    if seat.mask_enc is None:
        return encrypt(factors, seat.randomisers, bound=grid.factor_bound)
    return _bounded(seat.mask_enc.scale(factors), grid.factor_bound).rerandomize(seat.randomisers)


def step_0_own_factors(seat: DataSeat, grid: Grid) -> Encrypted | None:
    """[[f]] as the party itself uses it, before a passive party gets the active party's; None where it is plain."""
    if seat.factors is not None and seat.mask_enc is not None:
        return _bounded(seat.mask_enc.scale(Fixed(seat.factors, grid.factor_bits)), grid.factor_bound)
    return seat.mask_enc


def step_1_residuals(seat: DataSeat, batch: Rows, grid: Grid) -> Fresh:
    """[[f]] o (2a z_A - b y + n) on the batch; without encrypted factors the randomisers are nearly all the cost."""
    if seat.label_terms is None:
        raise LocalProtocolError("only the active party has labels")
    residuals = _own_terms(seat, batch, grid) + seat.label_terms[batch]
    return _weighted(seat, batch, residuals, grid, grid.residual_bits, grid.residual_bound_after(1))


def step_2_add(seat: DataSeat, batch: Rows, grid: Grid, residuals_enc: Encrypted) -> Fresh:
    """[[w]] + [[f]] o 2a z_p, re-randomised."""
    added = _added(seat, batch, residuals_enc, _own_terms(seat, batch, grid), grid.residual_bits)
    bound = residuals_enc.bound + (SCORE_TERM_BOUND << grid.residual_bits) * grid.factor_bound
    return _bounded(added, bound).rerandomize(seat.randomisers)


def step_3_gradient(
    seat: DataSeat, batch: Rows, grid: Grid, residuals_enc: Encrypted
) -> tuple[PackedVector[FreshCiphertext], list[int]]:
    """[[X^T w + rho]], packed, and rho."""
    gradient = columns_dot(Fixed(seat.features[batch], grid.feature_bits), residuals_enc, workers=seat.workers)
    rho = [seat.uniform(grid.hiding_bound(len(batch))) for _ in range(len(gradient))]
    packed = pack(_bounded(gradient, grid.gradient_bound(len(batch))), grid.slot_bits(len(batch)))
    masked = packed + Fixed(np.array(rho, dtype=object), grid.gradient_bits)
    return masked.rerandomize(seat.randomisers), rho


def step_5_gradient(answer: NoisyGradient, rho: Sequence[int], batch_rows: int, parameters: TaylorParameters) -> Floats:
    """(g + noise) / s as reals.

    Raises:
        MalformedMessage: not one number for each column, or one past what a gradient and its noise can be.
    """
    values = integers_of(answer.values)
    grid = parameters.grid
    reach = grid.gradient_bound(batch_rows) + NOISE_REACH * noise_steps(parameters)
    if len(values) != len(rho) or any(abs(value - mask) > reach for value, mask in zip(values, rho, strict=True)):
        raise MalformedMessage(
            culprit=parameters.key_node,
            field="values",
            reason="is not the gradient asked for",
            step="NoisyGradient",
        )
    scale = (1 << grid.gradient_bits) * batch_rows
    return np.array([(value - mask) / scale for value, mask in zip(values, rho, strict=True)])


def _own_terms(seat: DataSeat, rows: Rows, grid: Grid) -> Rows:
    return grid.score_terms(grid.scores(seat.features[rows], seat.optimiser.weights))


def _bounded(vector: EncryptedVector[C_co], bound: int) -> EncryptedVector[C_co]:
    """The vector under a bound that follows from what is public, and that its own operations keep to.

    Raises:
        RangeError: they do not.
    """
    if vector.bound > bound:
        raise RangeError("a number of this party passes the bound of the protocol")
    return vector.within(bound)


def _weighted(seat: DataSeat, rows: Rows, values: Rows, grid: Grid, frac_bits: int, bound: int) -> Fresh:
    """[[f]] o values: from encrypted factors, from plain ones, or from none."""
    bound *= grid.factor_bound
    if seat.factors_enc is not None:
        scaled = seat.factors_enc.take(rows.tolist()).scale(Fixed(values, frac_bits))
        return _bounded(scaled, bound).rerandomize(seat.randomisers)
    if seat.factors is not None:
        values = seat.factors[rows] * values
        frac_bits += grid.factor_bits
    return encrypt(Fixed(values, frac_bits), seat.randomisers, bound=bound)


def _added(seat: DataSeat, rows: Rows, vector: Encrypted, values: Rows, frac_bits: int) -> Encrypted:
    """vector + [[f]] o values."""
    if seat.factors_enc is not None:
        return vector + seat.factors_enc.take(rows.tolist()).scale(Fixed(values, frac_bits))
    return vector + Fixed(values, vector.frac_bits)


# --- steps of the hold-out loss ---------------------------------------------------------------------------


def step_0_labels(seat: DataSeat, rows: Rows, grid: Grid) -> Fresh:
    """[[f o y]] on the hold-out rows."""
    y = Fixed.from_reals(_labels(seat)[rows], grid.label_bits).values
    return _weighted(seat, rows, y, grid, grid.label_bits, LABEL_TERM_BOUND << grid.label_bits)


def step_0_mu(seat: DataSeat, rows: Rows, grid: Grid, labels_enc: Encrypted) -> Encrypted:
    """[[mu]] = X_H^T [[f o y]], once for the whole training."""
    return columns_dot(Fixed(seat.features[rows], grid.feature_bits), labels_enc, workers=seat.workers)


def step_6_start(seat: DataSeat, rows: Rows, grid: Grid) -> tuple[Fresh, Fresh]:
    """[[f o z_A]] and [[sum f (c - b y z_A + a z_A^2)]]."""
    y, scores = _labels(seat)[rows], grid.scores(seat.features[rows], seat.optimiser.weights)
    scores_enc = _weighted(seat, rows, _score_steps(scores, grid), grid, grid.score_bits, grid.score_bound)
    losses = grid.loss.constants(y) - grid.loss.cross * y * scores + grid.loss.square * scores**2
    loss = _bounded(_weighted_sum(seat, rows, losses, grid), grid.loss_bound(len(rows)))
    return scores_enc, loss.rerandomize(seat.randomisers)


def step_6_loss(
    seat: DataSeat, rows: Rows, grid: Grid, scores_enc: Encrypted, loss_enc: Encrypted, mu_enc: Encrypted
) -> Fresh:
    """The loss with this party's scores, re-randomised; `scores_enc` are those of the parties before.

    The operations' bound of the loss is checked against the key; the bound that it leaves with is the smaller one that
    every mean of such losses keeps to (Grid.loss_bound), whatever the weights.
    """
    scores = grid.scores(seat.features[rows], seat.optimiser.weights)
    _score_steps(scores, grid)
    cross = Fixed.from_reals(2 * grid.loss.square * scores[:, None], grid.score_bits)
    total = (
        loss_enc
        + columns_dot(cross, scores_enc, workers=seat.workers)
        + _weighted_sum(seat, rows, grid.loss.square * scores**2, grid)
        + _label_product(seat, mu_enc, grid)
    )
    return total.within(grid.loss_bound(len(rows))).rerandomize(seat.randomisers)


def step_6_scores(seat: DataSeat, rows: Rows, grid: Grid, scores_enc: Encrypted) -> Fresh:
    """The scores of the parties so far, re-randomised, for the next in the chain."""
    own = _score_steps(grid.scores(seat.features[rows], seat.optimiser.weights), grid)
    bound = scores_enc.bound + grid.score_bound * grid.factor_bound
    scores_enc = _bounded(_added(seat, rows, scores_enc, own, grid.score_bits), bound)
    return scores_enc.rerandomize(seat.randomisers)


def _labels(seat: DataSeat) -> Floats:
    if seat.y is None:
        raise LocalProtocolError("only the active party has labels")
    return seat.y


def _score_steps(scores: Floats, grid: Grid) -> Rows:
    steps = np.rint(np.ldexp(scores, grid.score_bits))
    if steps.size and not float(np.abs(steps).max()) <= grid.score_bound:
        raise RangeError("the scores grow past the bound of the protocol", hint="lower taylor.learning_rate")
    return steps.astype(np.int64)


def _weighted_sum(seat: DataSeat, rows: Rows, losses: Floats, grid: Grid) -> Encrypted:
    """[[sum f_i losses_i]] at loss_bits; un-randomised where factors are plain."""
    fixed = Fixed.from_reals(losses[:, None], 2 * grid.score_bits)
    if seat.factors_enc is not None:
        return columns_dot(fixed, seat.factors_enc.take(rows.tolist()), workers=seat.workers)
    factors = [1] * len(rows) if seat.factors is None else seat.factors[rows].tolist()
    total = sum(f * v for f, v in zip(factors, fixed.values[:, 0].tolist(), strict=True))
    kernel = seat.randomisers.public_key.kernel
    plain = Ciphertext(seat.randomisers.public_key, kernel.ones_plus([total]))
    return EncryptedVector(plain, grid.loss_bits, abs(total))


def _label_product(seat: DataSeat, mu_enc: Encrypted, grid: Grid) -> Encrypted:
    """[[-b theta . mu]] at loss_bits."""
    bits = grid.loss_bits - mu_enc.frac_bits
    weights = Fixed.from_reals(-grid.loss.cross * seat.optimiser.weights[:, None], bits)
    return columns_dot(weights, mu_enc)


# --- steps of the key node --------------------------------------------------------------------------------


def step_4_answer(
    seat: KeySeat, masked: PackedVector[Ciphertext], parameters: TaylorParameters, where: tuple[str, int, int]
) -> NoisyGradient:
    """g + rho + noise; `where` is party, epoch and batch, from which the noise follows.

    Raises:
        MalformedMessage: the plaintext is larger than a masked gradient can be.
    """
    try:
        values = decrypt_packed(masked, seat.private_key, threads=seat.threads).values
    except RangeError as bad:
        raise MalformedMessage(culprit=where[0], field="gradient", reason=str(bad), step="MaskedGradient") from None
    noise = gradient_noise(seat.noise_key, parameters, where, len(values))
    noisy = [int(value) + drawn for value, drawn in zip(values, noise, strict=True)]
    return NoisyGradient(octets_of(noisy, masked.layout.slot_bits // 8 + 2))


def gradient_noise(
    noise_key: bytes, parameters: TaylorParameters, where: tuple[str, int, int], columns: int
) -> list[int]:
    """Discrete Gaussian noise in steps of the gradient's grid: one for each epoch, or one kept for all (label DP)."""
    steps = noise_steps(parameters)
    if steps == 0:
        return [0] * columns
    party, epoch, batch = where
    purpose = f"gradient/{party}/{'kept' if parameters.noise_kept else epoch}/{batch}"
    return discrete_gaussian.sample_vector(columns, Fraction(steps) ** 2, keyed_uniform(noise_key, purpose))


def noise_steps(parameters: TaylorParameters) -> int:
    """The noise's standard deviation in steps, rounded up."""
    scaled = parameters.noise_std * 2.0**parameters.grid.gradient_bits
    return int(-(-scaled // 1))


def step_7_verdict(seat: KeySeat, loss_enc: Encrypted, rows: int, parameters: TaylorParameters) -> Verdict:
    """Takes the mean loss of the hold-out rows and says whether training goes on.

    Raises:
        MalformedMessage: the plaintext is larger than a loss can be.
    """
    try:
        total = decrypt(loss_enc, seat.private_key).to_reals()[0]
    except RangeError as bad:
        raise MalformedMessage(culprit=parameters.last, field="loss", reason=str(bad), step="HoldOutLoss") from None
    return Verdict(int(seat.patience.goes_on(float(total) / rows)))


# --- octets ---------------------------------------------------------------------------------------------


def octets_of(values: Sequence[int], width: int) -> npt.NDArray[np.uint8]:
    """Two's complement, big-endian; (n, width)."""
    data = b"".join(int(value).to_bytes(width, "big", signed=True) for value in values)
    return np.array(bytearray(data), dtype=np.uint8).reshape(len(values), width)


def integers_of(octets: npt.NDArray[np.uint8]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "big", signed=True) for row in octets]


# --- roles ------------------------------------------------------------------------------------------------

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


async def directly(function: Callable[[], R]) -> R:
    """Where nobody waits for an event loop: tests, run_locally."""
    return function()


@dataclass(slots=True)
class Progress:
    """What a party tells of itself: (epoch, batch, batches)."""

    report: Callable[[str, int, int], None] = lambda _step, _done, _total: None
    keep: Callable[[int, bool], None] = lambda _epoch, _go_on: None  # a checkpoint after this epoch


async def share_key(public_key: PublicKey, data_parties: Sequence[str], channel: Channel) -> None:
    """Step 0 at the key node."""
    for party in data_parties:
        await channel.send(party, TaylorKey(public_key))


async def run_key_exchange(key_node: str, key_bits: int, channel: Channel, *, maker_trusted: bool = True) -> PublicKey:
    """Step 0 at a data party: the key node's public key, checked; untrusted, its hs will not be used."""
    key = (await channel.receive(key_node, TaylorKey)).public_key
    check_public_key(key, least_bits=key_bits, maker_trusted=maker_trusted, culprit=key_node)
    return key


async def run_data_party(
    seat: DataSeat,
    plan: RowPlan,
    parameters: TaylorParameters,
    channel: Channel,
    *,
    first_epoch: int = 0,
    progress: Progress | None = None,
    in_thread: InThread = directly,
) -> int:
    """Trains; returns how many epochs ran. The weights are the seat's optimiser's."""
    check_parameters(parameters, [len(batch) for batch in plan.batches], len(plan.validation))
    check_seat(seat, plan, parameters)
    told = progress or Progress()
    link = _Chain(seat, parameters, channel, in_thread)
    await link.share_factors()
    mu_enc = await link.share_labels(plan.validation) if parameters.hold_out_loss else None
    for epoch in range(first_epoch, parameters.epochs):
        for number, batch in enumerate(plan.batches):
            told.report(f"epoch {epoch + 1}", number, len(plan.batches))
            residuals = await link.residuals(batch)
            gradient = await link.gradient(batch, residuals)
            seat.optimiser.step(gradient, epoch, number)
        go_on = await link.verdict(plan.validation, mu_enc) if parameters.hold_out_loss else True
        told.keep(epoch + 1, go_on)
        if not go_on:
            return epoch + 1
    return parameters.epochs


@dataclass(slots=True)
class _Chain:
    """One data party's place in the chain: every line a step, a send or a receive."""

    seat: DataSeat
    parameters: TaylorParameters
    channel: Channel
    in_thread: InThread

    @property
    def _me(self) -> str:
        return self.seat.name

    @property
    def _is_active(self) -> bool:
        return self._me == self.parameters.active

    @property
    def _is_last(self) -> bool:
        return self._me == self.parameters.last

    @property
    def _place(self) -> int:
        return self.parameters.data_parties.index(self._me)

    async def _run(self, function: Callable[[], R]) -> R:
        result: R = await self.in_thread(function)
        return result

    def _received(
        self, ciphertexts: CiphertextVector, length: int, frac_bits: int, bound: int, sender: str
    ) -> Encrypted:
        return EncryptedVector.receive(
            ciphertexts,
            self.seat.randomisers.public_key,
            length=length,
            frac_bits=frac_bits,
            bound=bound,
            culprit=sender,
        )

    async def share_factors(self) -> None:
        """The mask as it is; with class weights, what the active party makes of it, to every passive party."""
        grid, active = self.parameters.grid, self.parameters.active
        if self._is_active or not self.parameters.encrypted_factors:
            self.seat.factors_enc = await self._run(lambda: step_0_own_factors(self.seat, grid))
        if not self.parameters.encrypted_factors:
            return
        if not self._is_active:
            received = (await self.channel.receive(active, RowFactors)).factors
            rows = len(self.seat.features)
            self.seat.factors_enc = self._received(received, rows, grid.factor_bits, grid.factor_bound, active)
            return
        for passive in self.parameters.data_parties[1:]:
            fresh = await self._run(lambda: step_0_factors(self.seat, grid))
            await self.channel.send(passive, RowFactors(fresh.ciphertext))

    async def share_labels(self, rows: Rows) -> Encrypted | None:
        grid, active = self.parameters.grid, self.parameters.active
        if self._is_active:
            for passive in self.parameters.data_parties[1:]:
                fresh = await self._run(lambda: step_0_labels(self.seat, rows, grid))
                await self.channel.send(passive, HoldOutLabels(fresh.ciphertext))
            return None
        received = (await self.channel.receive(active, HoldOutLabels)).labels
        bound = (LABEL_TERM_BOUND << grid.label_bits) * grid.factor_bound
        labels = self._received(received, len(rows), grid.label_bits + grid.factor_bits, bound, active)
        return await self._run(lambda: step_0_mu(self.seat, rows, grid, labels))

    async def residuals(self, batch: Rows) -> Encrypted:
        """Steps 1 and 2: what every party ends with is [[w]]."""
        grid, bits = self.parameters.grid, self.parameters.grid.weighted_residual_bits
        if self._is_active:
            fresh = await self._run(lambda: step_1_residuals(self.seat, batch, grid))
            await self.channel.send(self.parameters.after(self._me), ChainedResiduals(fresh.ciphertext))
        else:
            sender = self.parameters.before(self._me)
            received = (await self.channel.receive(sender, ChainedResiduals)).residuals
            bound = grid.residual_bound_after(self._place) * grid.factor_bound
            chained = self._received(received, len(batch), bits, bound, sender)
            fresh = await self._run(lambda: step_2_add(self.seat, batch, grid, chained))
            if self._is_last:
                for party in self.parameters.data_parties[:-1]:
                    await self.channel.send(party, Residuals(fresh.ciphertext))
                return fresh
            await self.channel.send(self.parameters.after(self._me), ChainedResiduals(fresh.ciphertext))
        last = self.parameters.last
        received = (await self.channel.receive(last, Residuals)).residuals
        return self._received(received, len(batch), bits, grid.residual_bound * grid.factor_bound, last)

    async def gradient(self, batch: Rows, residuals_enc: Encrypted) -> Floats:
        """Steps 3 to 5."""
        key_node, grid = self.parameters.key_node, self.parameters.grid
        masked, rho = await self._run(lambda: step_3_gradient(self.seat, batch, grid, residuals_enc))
        await self.channel.send(key_node, MaskedGradient(masked.ciphertext))
        answer = await self.channel.receive(key_node, NoisyGradient)
        return step_5_gradient(answer, rho, len(batch), self.parameters)

    async def verdict(self, rows: Rows, mu_enc: Encrypted | None) -> bool:
        """Steps 6 and 7."""
        await self._pass_loss(rows, mu_enc)
        verdict = await self.channel.receive(self.parameters.key_node, Verdict)
        if verdict.go_on not in (0, 1):
            culprit = self.parameters.key_node
            raise MalformedMessage(culprit=culprit, field="go_on", reason="is not 0 or 1", step="Verdict")
        return bool(verdict.go_on)

    async def _pass_loss(self, rows: Rows, mu_enc: Encrypted | None) -> None:
        grid = self.parameters.grid
        if self._is_active or mu_enc is None:
            scores, loss = await self._run(lambda: step_6_start(self.seat, rows, grid))
            await self.channel.send(self.parameters.after(self._me), PartialLoss(scores.ciphertext, loss.ciphertext))
            return
        sender = self.parameters.before(self._me)
        message = await self.channel.receive(sender, PartialLoss)
        bound = self._place * grid.score_bound * grid.factor_bound
        before = self._received(message.scores, len(rows), grid.score_bits + grid.factor_bits, bound, sender)
        so_far = self._received(message.loss, 1, grid.loss_bits, grid.loss_bound(len(rows)), sender)
        loss = await self._run(lambda: step_6_loss(self.seat, rows, grid, before, so_far, mu_enc))
        if self._is_last:
            await self.channel.send(self.parameters.key_node, HoldOutLoss(loss.ciphertext))
            return
        scores = await self._run(lambda: step_6_scores(self.seat, rows, grid, before))
        await self.channel.send(self.parameters.after(self._me), PartialLoss(scores.ciphertext, loss.ciphertext))


async def run_key_node(
    seat: KeySeat,
    batch_rows: Sequence[int],
    validation_rows: int,
    parameters: TaylorParameters,
    channel: Channel,
    *,
    first_epoch: int = 0,
    progress: Progress | None = None,
    in_thread: InThread = directly,
) -> int:
    """Decrypts masked gradients and the hold-out loss; returns how many epochs ran."""
    check_parameters(parameters, batch_rows, validation_rows)
    told = progress or Progress()
    public_key = seat.private_key.public_key
    for epoch in range(first_epoch, parameters.epochs):
        for number, rows in enumerate(batch_rows):
            told.report(f"epoch {epoch + 1}", number, len(batch_rows))
            for party in parameters.data_parties:
                message = await channel.receive(party, MaskedGradient)
                masked = _masked_gradient(message, party, rows, public_key, parameters)
                answer = await in_thread(partial(step_4_answer, seat, masked, parameters, (party, epoch, number)))
                await channel.send(party, answer)
        judged = parameters.hold_out_loss
        go_on = await _judge(seat, validation_rows, parameters, channel, in_thread) if judged else True
        told.keep(epoch + 1, go_on)
        if not go_on:
            return epoch + 1
    return parameters.epochs


async def _judge(
    seat: KeySeat,
    rows: int,
    parameters: TaylorParameters,
    channel: Channel,
    in_thread: InThread,
) -> bool:
    """Step 7, told to all."""
    loss_enc: Encrypted = EncryptedVector.receive(
        (await channel.receive(parameters.last, HoldOutLoss)).loss,
        seat.private_key.public_key,
        length=1,
        frac_bits=parameters.grid.loss_bits,
        bound=parameters.grid.loss_bound(rows),
        culprit=parameters.last,
    )
    verdict: Verdict = await in_thread(lambda: step_7_verdict(seat, loss_enc, rows, parameters))
    for party in parameters.data_parties:
        await channel.send(party, verdict)
    return bool(verdict.go_on)


def _masked_gradient(
    message: MaskedGradient, party: str, rows: int, public_key: PublicKey, parameters: TaylorParameters
) -> PackedVector[Ciphertext]:
    grid = parameters.grid
    return PackedVector.receive(
        message.gradient,
        public_key,
        Layout.of(public_key, parameters.columns_of(party), grid.slot_bits(rows)),
        frac_bits=grid.gradient_bits,
        bound=grid.gradient_bound(rows) + grid.hiding_bound(rows),
        culprit=party,
    )


# --- the specification: all seats in one process, no channel ---------------------------------------------


def run_locally(seats: Sequence[DataSeat], key_seat: KeySeat, plan: RowPlan, parameters: TaylorParameters) -> int:
    """What the roles compute, on one page; returns how many epochs ran. `seats`: the chain, the active party first."""
    check_parameters(parameters, [len(batch) for batch in plan.batches], len(plan.validation))
    for seat in seats:
        check_seat(seat, plan, parameters)
    grid, held_out = parameters.grid, plan.validation
    active, *passives = seats
    _share_locally(active, passives, parameters)
    mu_enc = _mu_locally(active, passives, held_out, grid) if parameters.hold_out_loss else {}
    for epoch in range(parameters.epochs):
        for number, batch in enumerate(plan.batches):
            residuals = step_1_residuals(active, batch, grid)
            for seat in passives:
                residuals = step_2_add(seat, batch, grid, residuals)
            for seat in seats:
                masked, rho = step_3_gradient(seat, batch, grid, residuals)
                answer = step_4_answer(key_seat, masked, parameters, (seat.name, epoch, number))
                seat.optimiser.step(step_5_gradient(answer, rho, len(batch), parameters), epoch, number)
        if not parameters.hold_out_loss:
            continue
        scores, loss = step_6_start(active, held_out, grid)
        for seat in passives:
            loss = step_6_loss(seat, held_out, grid, scores, loss, mu_enc[seat.name])
            if seat is not passives[-1]:
                scores = step_6_scores(seat, held_out, grid, scores)
        if not step_7_verdict(key_seat, loss, len(held_out), parameters).go_on:
            return epoch + 1
    return parameters.epochs


def _share_locally(active: DataSeat, passives: Sequence[DataSeat], parameters: TaylorParameters) -> None:
    active.factors_enc = step_0_own_factors(active, parameters.grid)
    step = step_0_factors if parameters.encrypted_factors else step_0_own_factors
    for seat in passives:
        seat.factors_enc = step(active if parameters.encrypted_factors else seat, parameters.grid)


def _mu_locally(active: DataSeat, passives: Sequence[DataSeat], rows: Rows, grid: Grid) -> dict[str, Encrypted]:
    return {seat.name: step_0_mu(seat, rows, grid, step_0_labels(active, rows, grid)) for seat in passives}
