"""Steps 0 to 5 of a Taylor training: from the chain of residuals to each party's gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext
from blindfit.algorithms.paillier.packing import PackedVector, decrypt_packed, pack
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.paillier.vectors import C_co, EncryptedVector, encrypt
from blindfit.algorithms.privacy import discrete_gaussian
from blindfit.algorithms.protocols.taylor.messages import NoisyGradient
from blindfit.algorithms.protocols.taylor.parameters import (
    NOISE_REACH,
    DataSeat,
    Encrypted,
    Floats,
    KeySeat,
    TaylorParameters,
)
from blindfit.algorithms.randomness import keyed_uniform
from blindfit.algorithms.statistics.vertical.grid import SCORE_TERM_BOUND, Grid
from blindfit.algorithms.statistics.vertical.row_plan import Rows

Fresh = EncryptedVector[FreshCiphertext]


# --- of the data parties ----------------------------------------------------------------------------------


def step_0_factors(seat: DataSeat, grid: Grid) -> Fresh:
    """Return [[m]] o c, or Enc(c) without a mask, for one passive party."""
    if seat.factors is None:
        raise LocalProtocolError("the active party has no factors to send")
    factors = Fixed(seat.factors, grid.factor_bits)
    if seat.mask_enc is None:
        return encrypt(factors, seat.randomisers, bound=grid.factor_bound)
    return bound_vector(seat.mask_enc.scale(factors), grid.factor_bound).rerandomize(seat.randomisers)


def step_0_own_factors(seat: DataSeat, grid: Grid) -> Encrypted | None:
    """Return [[f]] as the party itself uses it, before a passive party gets the active party's; None if it is plain."""
    if seat.factors is not None and seat.mask_enc is not None:
        return bound_vector(seat.mask_enc.scale(Fixed(seat.factors, grid.factor_bits)), grid.factor_bound)
    return seat.mask_enc


def step_1_residuals(seat: DataSeat, batch: Rows, grid: Grid) -> Fresh:
    """Return [[f]] o (2a z_A - b y + n) on the batch; without encrypted factors, randomisers cost most."""
    if seat.label_terms is None:
        raise LocalProtocolError("only the active party has labels")
    residuals = _own_terms(seat, batch, grid) + seat.label_terms[batch]
    return weigh(seat, batch, residuals, grid, grid.residual_bits, grid.residual_bound_after(1))


def step_2_add(seat: DataSeat, batch: Rows, grid: Grid, residuals_enc: Encrypted) -> Fresh:
    """Return [[w]] + [[f]] o 2a z_p, re-randomised."""
    residuals = add_weighted(seat, batch, residuals_enc, _own_terms(seat, batch, grid), grid.residual_bits)
    bound = residuals_enc.bound + (SCORE_TERM_BOUND << grid.residual_bits) * grid.factor_bound
    return bound_vector(residuals, bound).rerandomize(seat.randomisers)


def step_3_gradient(
    seat: DataSeat, batch: Rows, grid: Grid, residuals_enc: Encrypted
) -> tuple[PackedVector[FreshCiphertext], list[int]]:
    """Return [[X^T w + rho]], packed, and rho."""
    gradient = columns_dot(Fixed(seat.features[batch], grid.feature_bits), residuals_enc, workers=seat.workers)
    rho = [seat.uniform(grid.hiding_bound(len(batch))) for _ in range(len(gradient))]
    packed = pack(bound_vector(gradient, grid.gradient_bound(len(batch))), grid.slot_bits(len(batch)))
    masked = packed + Fixed(np.array(rho, dtype=object), grid.gradient_bits)
    return masked.rerandomize(seat.randomisers), rho


def step_5_gradient(answer: NoisyGradient, rho: Sequence[int], batch_rows: int, parameters: TaylorParameters) -> Floats:
    """Return (g + noise) / s as reals.

    Raises:
        MalformedMessage: the answer is not one number a column, or a number is too large for a gradient and its noise.
    """
    values = integers_of(answer.values)
    grid = parameters.grid
    reach = grid.gradient_bound(batch_rows)
    reach += NOISE_REACH * (fresh_noise_steps(parameters) + steps_of_kept_noise(parameters))
    if len(values) != len(rho) or any(abs(value - mask) > reach for value, mask in zip(values, rho, strict=True)):
        raise MalformedMessage(
            culprit=parameters.key_node,
            field="values",
            reason="is not the requested gradient",
            step="NoisyGradient",
        )
    scale = (1 << grid.gradient_bits) * batch_rows
    return np.array([(value - mask) / scale for value, mask in zip(values, rho, strict=True)])


def _own_terms(seat: DataSeat, rows: Rows, grid: Grid) -> Rows:
    return grid.score_terms(grid.scores(seat.features[rows], seat.optimiser.weights))


def bound_vector(vector: EncryptedVector[C_co], bound: int) -> EncryptedVector[C_co]:
    """Give the vector a bound that follows from public facts; its own operations keep to the bound.

    Raises:
        RangeError: they do not.
    """
    if vector.bound > bound:
        raise RangeError("a number of this party passes the bound of the protocol")
    return vector.within(bound)


def weigh(seat: DataSeat, rows: Rows, values: Rows, grid: Grid, frac_bits: int, bound: int) -> Fresh:
    """Return [[f]] o values: from encrypted factors, from plain ones, or without factors."""
    bound *= grid.factor_bound
    if seat.factors_enc is not None:
        scaled = seat.factors_enc.take(rows.tolist()).scale(Fixed(values, frac_bits))
        return bound_vector(scaled, bound).rerandomize(seat.randomisers)
    if seat.factors is not None:
        values = seat.factors[rows] * values
        frac_bits += grid.factor_bits
    return encrypt(Fixed(values, frac_bits), seat.randomisers, bound=bound)


def add_weighted(seat: DataSeat, rows: Rows, vector: Encrypted, values: Rows, frac_bits: int) -> Encrypted:
    """Return vector + [[f]] o values."""
    if seat.factors_enc is not None:
        return vector + seat.factors_enc.take(rows.tolist()).scale(Fixed(values, frac_bits))
    return vector + Fixed(values, vector.frac_bits)


# --- of the key node --------------------------------------------------------------------------------------


def step_4_answer(
    seat: KeySeat, masked: PackedVector[Ciphertext], parameters: TaylorParameters, where: tuple[str, int, int]
) -> NoisyGradient:
    """Return g + rho + noise; `where` is party, epoch and batch, from which the noise follows.

    Raises:
        MalformedMessage: the plaintext is larger than a masked gradient can be.
    """
    try:
        values = decrypt_packed(masked, seat.private_key, threads=seat.threads).values
    except RangeError as bad:
        raise MalformedMessage(culprit=where[0], field="gradient", reason=bad.message, step="MaskedGradient") from None
    noise = gradient_noise(seat.noise_key, parameters, where, len(values))
    noisy = [int(value) + drawn for value, drawn in zip(values, noise, strict=True)]
    return NoisyGradient(octets_of(noisy, masked.layout.slot_bits // 8 + 2))


def gradient_noise(
    noise_key: bytes, parameters: TaylorParameters, where: tuple[str, int, int], columns: int
) -> list[int]:
    """Draw discrete Gaussian noise in steps of the gradient's grid: fresh in every epoch, and kept under label DP.

    The kept noise covers the labels' part, which never changes, and so cancels in differences of a batch's gradients.
    There the fresh noise hides the other parties' columns. It costs no label privacy, as it is added to a noisy number.

    Both noises follow from the place: a step that is repeated, from the weights of a checkpoint, gets the same answer.
    Another draw for each attempt would average out over resumed trainings.
    """
    party, epoch, batch = where
    fresh = _draw(noise_key, f"gradient/{party}/{epoch}/{batch}", fresh_noise_steps(parameters), columns)
    kept = _draw(noise_key, f"gradient/{party}/kept/{batch}", steps_of_kept_noise(parameters), columns)
    return [a + b for a, b in zip(fresh, kept, strict=True)]


def _draw(noise_key: bytes, purpose: str, std_steps: int, columns: int) -> list[int]:
    if std_steps == 0:
        return [0] * columns
    return discrete_gaussian.sample_vector(columns, Fraction(std_steps) ** 2, keyed_uniform(noise_key, purpose))


def fresh_noise_steps(parameters: TaylorParameters) -> int:
    return _steps(parameters.noise_std, parameters)


def steps_of_kept_noise(parameters: TaylorParameters) -> int:
    return _steps(parameters.kept_noise_std, parameters)


def _steps(noise_std: float, parameters: TaylorParameters) -> int:
    """Return a standard deviation in steps of the gradient's grid, rounded up."""
    return math.ceil(noise_std * 2.0**parameters.grid.gradient_bits)


# --- octets ---------------------------------------------------------------------------------------------


def octets_of(values: Sequence[int], width: int) -> npt.NDArray[np.uint8]:
    """Write integers in two's complement, big-endian; (n, width)."""
    data = b"".join(int(value).to_bytes(width, "big", signed=True) for value in values)
    return np.array(bytearray(data), dtype=np.uint8).reshape(len(values), width)


def integers_of(octets: npt.NDArray[np.uint8]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "big", signed=True) for row in octets]
