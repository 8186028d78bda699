"""Slope and offset of a Taylor model if no party may see a row's score: steps 8 and 9, from five sums under the mask.

Source: Fisher's discriminant. Scores that are normal in each class, with one variance s^2 and means m+ and m-, have log
odds (m+ - m-) / s^2 z + log(n+ / n-) - (m+^2 - m-^2) / (2 s^2). The sums of f, f y, f z, f z^2 and f y z over the
hold-out rows, y = 1 or -1, determine all of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.paillier.vectors import concatenate, decrypt
from blindfit.algorithms.protocols.taylor.hold_out import label_product, labels_of, score_steps, shrink_and_score
from blindfit.algorithms.protocols.taylor.messages import Calibration
from blindfit.algorithms.protocols.taylor.parameters import DataSeat, Encrypted, Floats, KeySeat, TaylorParameters
from blindfit.algorithms.protocols.taylor.steps import Fresh, bound_vector, weigh
from blindfit.algorithms.statistics.linear.platt import IDENTITY, LEAST_ROWS, Platt
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.row_plan import Rows

SUMS = 5  # of f, f y, f z, a f z^2, b f y z
LEAST_OF_A_CLASS = 5  # rows, or their class weights
STEPS_OF_A_UNIT = 32  # of slope and offset, as sent: finer steps would reveal more of the rows and help nothing
MOST = 32  # of both


@dataclass(frozen=True, slots=True, repr=False)
class Moments:
    """Sums over hold-out rows that match, weighted by f, y = 1 or -1."""

    weight: float
    y: float
    z: float
    z_squared: float
    yz: float


# --- of the data parties ----------------------------------------------------------------------------------


def step_8_start(seat: DataSeat, rows: Rows, grid: Grid) -> tuple[Fresh, Fresh]:
    """Return [[f o z_A]] and the five sums of the active party's own scores."""
    y, (_, scores) = labels_of(seat)[rows], shrink_and_score(seat, rows, grid)
    scores_enc = weigh(seat, rows, score_steps(scores, grid), grid, grid.score_bits, grid.score_bound)
    a, b = grid.loss.square, grid.loss.cross
    terms = np.column_stack([np.ones(len(rows)), y, scores, a * scores**2, b * y * scores])
    sums = bound_vector(_sum(seat, rows, terms, grid), grid.loss_bound(len(rows)))
    return scores_enc, sums.rerandomize(seat.randomisers)


def step_8_sums(
    seat: DataSeat, rows: Rows, grid: Grid, scores_enc: Encrypted, sums_enc: Encrypted, mu_enc: Encrypted
) -> Fresh:
    """Return the five sums with this party's scores, re-randomised; `scores_enc` are earlier parties' scores."""
    weights, scores = shrink_and_score(seat, rows, grid)
    a, none = grid.loss.square, np.zeros(len(rows))
    own = _sum(seat, rows, np.column_stack([none, none, scores, a * scores**2, none]), grid)
    cross = Fixed.from_reals(2 * a * scores[:, None], grid.score_bits)
    crossed = columns_dot(cross, scores_enc, workers=seat.workers)
    labelled = -label_product(weights, mu_enc, grid)
    total = concatenate(
        [sums_enc[:2], sums_enc[2:3] + own[2:3], sums_enc[3:4] + own[3:4] + crossed, sums_enc[4:] + labelled]
    )
    return total.within(grid.loss_bound(len(rows))).rerandomize(seat.randomisers)


def step_9_calibration(seat: DataSeat, told: Calibration, key_node: str) -> Platt:
    """Read the key node's answer, for rows that count alike: class weights change only the offset.

    Raises:
        MalformedMessage: slope or offset is out of range.
    """
    if not 0 <= told.slope <= MOST * STEPS_OF_A_UNIT or not abs(told.offset) <= MOST * STEPS_OF_A_UNIT:
        raise MalformedMessage(culprit=key_node, field="slope", reason="passes its range", step="Calibration")
    if not told.slope:
        return IDENTITY
    offset = told.offset / STEPS_OF_A_UNIT
    if seat.factors is not None:
        y = labels_of(seat)
        negative, positive = seat.factors[y < 0], seat.factors[y > 0]
        if not (negative.size and positive.size):
            raise MalformedMessage(culprit=key_node, field="slope", reason="is of one class", step="Calibration")
        offset += math.log(float(negative[0]) / float(positive[0]))
    return Platt(told.slope / STEPS_OF_A_UNIT, offset)


def _sum(seat: DataSeat, rows: Rows, terms: Floats, grid: Grid) -> Encrypted:
    """Return [[sum f_i terms_i]] at loss_bits."""
    if seat.factors_enc is None:
        raise LocalProtocolError("sums under the mask need a mask")
    fixed = Fixed.from_reals(terms, 2 * grid.score_bits)
    return columns_dot(fixed, seat.factors_enc.take(rows.tolist()), workers=seat.workers)


# --- of the key node --------------------------------------------------------------------------------------


def step_9_told(seat: KeySeat, sums_enc: Encrypted, parameters: TaylorParameters) -> Calibration:
    """Return slope and offset from the sums, in steps; slope 0 if the rows do not determine them.

    Raises:
        MalformedMessage: a plaintext is larger than such a sum can be.
    """
    try:
        sums = decrypt(sums_enc, seat.private_key).to_reals()
    except RangeError as bad:
        raise MalformedMessage(
            culprit=parameters.last, field="sums", reason=bad.message, step="CalibrationSums"
        ) from None
    return calibration_of(sums.tolist(), parameters.grid)


def calibration_of(sums: Sequence[float], grid: Grid) -> Calibration:
    weight, y, z, a_z_squared, b_yz = sums
    platt = fit_moments(Moments(weight, y, z, a_z_squared / grid.loss.square, b_yz / grid.loss.cross))
    if platt is None:
        return Calibration(0, 0)
    slope, offset = (round(value * STEPS_OF_A_UNIT) for value in (platt.slope, platt.offset))
    usable = 0 < slope <= MOST * STEPS_OF_A_UNIT and abs(offset) <= MOST * STEPS_OF_A_UNIT
    return Calibration(slope, offset) if usable else Calibration(0, 0)


def fit_moments(moments: Moments) -> Platt | None:
    """Return slope and offset; None if rows are few, one class is rare, or scores do not separate the classes."""
    positives, negatives = (moments.weight + moments.y) / 2, (moments.weight - moments.y) / 2
    if moments.weight < LEAST_ROWS or min(positives, negatives) < LEAST_OF_A_CLASS:
        return None
    above, below = (moments.z + moments.yz) / 2 / positives, (moments.z - moments.yz) / 2 / negatives
    variance = (moments.z_squared - positives * above**2 - negatives * below**2) / moments.weight
    if not variance > 0 or not above > below:
        return None
    slope = (above - below) / variance
    return Platt(slope, math.log(positives / negatives) - slope * (above + below) / 2)
