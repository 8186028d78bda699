"""The figures of a model in shares, on rows whose scores nobody learns: summed in shares, rounded, and opened."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.protocols.falcon.parameters import MEAN_LOSS_BITS, FalconParameters
from blindfit.algorithms.protocols.falcon.seats import ModelState, Seat, zeros
from blindfit.algorithms.sharing import scoring, squares
from blindfit.algorithms.sharing.computing import divide
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.shares import Share, join

TEST_PIECE = 2048  # test rows that are evaluated at once: a row's comparisons take some 40 kB of dealt randomness

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, repr=False)
class TestFigures:
    """Figures of the test rows that the active party learns; with its labels, all other figures follow.

    Attributes:
        true_positives, positives: positive rows that are called positive at the threshold, and all rows that are; in
            steps of a quarter of their standard error, or less.
        loss: the sum of the log losses.
        auc_pairs, ks_pairs: AUC and KS, times the number of pairs of a row with the label and a row without it.
    """

    true_positives: int
    positives: int
    loss: float
    auc_pairs: float
    ks_pairs: float


@dataclass(frozen=True, repr=False)
class TestErrors:
    """Figures of the test rows of a linear model.

    Attributes:
        squares: the sum of the squared errors, in the unit of the labels in shares.
    """

    squares: float


async def figures_of_test_rows(
    seat: Seat, p: FalconParameters, matrix: SecretMatrix, labels: Share, state: ModelState, report: Report
) -> Share:
    """Compute the figures of the test rows, in pieces, rounded."""
    scales = scoring.loss_scales(p.test_rows, p.scales.waves.score)
    counts: scoring.Counts | None = None
    errors: Share | None = None
    starts = range(p.test.start, p.test.stop, TEST_PIECE)
    for number, start in enumerate(starts):
        report("evaluate", number, len(starts) + 1)
        rows = slice(start, min(start + TEST_PIECE, p.test.stop))
        z = await seat.scores(f"test {start}", matrix.rows(rows), state)
        if p.is_linear:
            sum_of = await sum_clipped_errors(seat, p, f"test {start}", z, labels[rows], p.test_rows)
            errors = sum_of if errors is None else errors + sum_of
        else:
            piece = await scoring.counts(seat, f"test {start}", z, labels[rows], p.waves, scales, p.threshold)
            counts = piece if counts is None else counts + piece
        await seat.check()
    report("evaluate", len(starts), len(starts) + 1)
    if errors is not None:
        return await divide(seat, "errors", errors, _loss_shift(p))
    if counts is None:
        return zeros((0,))
    ranks = await scoring.ranks(seat, "ranks", counts.bins, p.test_rows)
    loss = await divide(seat, "loss", counts.loss, _loss_shift(p))
    confusion = await divide(seat, "confusion", counts.confusion, p.count_shift)
    pairs = await divide(seat, "pairs", join([ranks.auc, ranks.ks]), p.pair_shift)
    return join([confusion, loss, pairs])


async def sum_clipped_errors(seat: Seat, p: FalconParameters, name: str, z: Share, y: Share, of_rows: int) -> Share:
    """Return the squared errors of rows whose scores are untested; arguments as of `squared_errors`."""
    clipped = await clip_scores(seat, p, name, z, p.waves.bound)
    return await squared_errors(seat, p, name, clipped, y, of_rows)


async def clip_scores(seat: Seat, p: FalconParameters, name: str, z: Share, bound: float) -> Share:
    """Return scores that are no farther from 0 than the bound."""
    return await squares.clip(seat, name, z, round(bound * 2.0**p.scales.waves.score))


def _loss_shift(p: FalconParameters) -> int:
    """Return the bits by which the summed loss, or the sum of squared errors, is rounded.

    Nobody can then compute a single row's part from the sum and the other rows.
    """
    if p.is_linear:
        bits = 2 * squares.error_bits(p.test_rows, p.residual_bound)
    else:
        bits = scoring.loss_scales(p.test_rows, p.scales.waves.score).result + 1
    return bits - MEAN_LOSS_BITS + math.floor(math.log2(p.test_rows))


def read_figures(p: FalconParameters, numbers: npt.NDArray[np.int64]) -> TestFigures | TestErrors:
    unit = math.floor(math.log2(p.test_rows)) - MEAN_LOSS_BITS  # a power of two, the unit of the loss
    if p.is_linear:
        return TestErrors(math.ldexp(int(numbers[0]), unit))
    true_positives, positives = (int(number) << p.count_shift for number in numbers[:2])
    auc, ks = (int(number) << p.pair_shift for number in numbers[3:])
    return TestFigures(true_positives, positives, math.ldexp(int(numbers[2]), unit), auc / 2, float(ks))


async def squared_errors(seat: Seat, p: FalconParameters, name: str, z: Share, y: Share, of_rows: int) -> Share:
    """Return the sum of the squared errors, at twice `squares.error_bits`.

    Args:
        of_rows: number of rows that are added up in the end.
    """
    kept = squares.error_bits(of_rows, p.residual_bound)
    return await squares.squared_errors(seat, name, z, y, p.scales.waves.score, p.label_bits, kept)
