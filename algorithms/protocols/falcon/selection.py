"""Choose a grid point in shares: train each fold of each point, and open a rounded figure of each point.

The folds' weights, and the scores of their rows, stay in shares. After each of their epochs one bit is opened: whether
all was in range. If it was not, the job ends. Only the active party learns the points' figures, from under a mask, and
names the best point to all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon.figures import TEST_PIECE, Report, clip_scores, sum_clipped_errors
from blindfit.algorithms.protocols.falcon.parameters import FalconParameters
from blindfit.algorithms.protocols.falcon.seats import ModelState, Seat
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import ranges, scoring, squares
from blindfit.algorithms.sharing.computing import divide, multiply
from blindfit.algorithms.sharing.descent import Labels
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.shares import Share, join
from blindfit.algorithms.statistics.vertical.selection import (
    MOST_SPREAD,
    LossSteps,
    PointFigure,
    Selected,
    Selection,
    accuracy_figure,
    auc_figure,
    count_shift,
    is_loss,
    pair_shift,
)

ACTIVE = 0  # the active party's place
Integers = npt.NDArray[np.int64]
Train = Callable[[FalconParameters, SecretMatrix, Labels, Report], Awaitable[ModelState]]


class Told(Protocol):
    """The part of `Progress` that a selection needs."""

    @property
    def report(self) -> Report: ...

    @property
    def before_figures(self) -> Callable[[], Awaitable[None]]: ...


async def select(
    seat: Seat,
    p: FalconParameters,
    chosen: Selection,
    matrix: SecretMatrix,
    labels: Labels,
    own_labels: Integers | None,
    train: Train,
    progress: Told,
) -> Selected:
    """Return the best point, which all seats learn.

    Args:
        own_labels: the labels as they are, at the active party.
        train: function that trains one fold from weights of zero, and returns its weights in shares.

    Raises:
        ScoresOutOfRange: a fold's score or weight left the range; it names the point and the fold.
        MalformedMessage: the active party named a point that the grid does not have.
    """
    measured = []
    for point in range(len(chosen.points)):
        for fold in range(chosen.folds):
            q, rows = p.fold(point, fold), p.fold_rows(fold)
            own_matrix, own = matrix.rows(rows), labels_at(p, q, labels)[rows]
            where = f"point {point + 1} of {len(chosen.points)}, fold {fold + 1} of {chosen.folds}"
            try:
                state = await train(q, own_matrix, own, partial(_report_inside, progress.report, where))
            except ScoresOutOfRange as out:
                raise ScoresOutOfRange(epoch=out.epoch, point=point + 1, fold=fold + 1) from None
            measured.append(await _measure(seat, q, chosen, own_matrix, own.y, state))
            await seat.check()
    progress.report("compare grid points", 0, 1)
    numbers = await _round(seat, p, chosen, measured)
    await progress.before_figures()
    opened = await seat.reveal_to_owners("selection", [(ACTIVE, numbers)])
    figures = None
    if own_labels is not None and 0 in opened:
        figures = _read(p, chosen, f.integers(opened[0]), own_labels[: p.train_rows])
    best = None if figures is None else chosen.best([figure.value for figure in figures])
    point = await seat.share_choice(best)
    if not 0 <= point < len(chosen.points):
        raise MalformedMessage(
            culprit=p.data_parties[ACTIVE], field="point", reason="is not in the grid", step="ChosenPoint"
        )
    return Selected(point, figures)


def labels_at(p: FalconParameters, q: FalconParameters, labels: Labels) -> Labels:
    """Return the labels at the scale of one of the job's trainings."""
    return Labels(labels.y.times_power_of_two(q.label_bits - p.label_bits), labels.row_weights)


def _report_inside(report: Report, where: str, step: str, done: int, total: int) -> None:
    report(f"{where}, {step}", done, total)


# --- one fold ---------------------------------------------------------------------------------------------------------


async def _measure(
    seat: Seat, q: FalconParameters, chosen: Selection, matrix: SecretMatrix, y: Share, state: ModelState
) -> Share:
    """Sum up the parts of the figure over the fold's rows, in units that all points and folds share."""
    pieces = []
    for start in range(q.validation.start, q.validation.stop, TEST_PIECE):
        rows = slice(start, min(start + TEST_PIECE, q.validation.stop))
        name = f"tested {start}"
        z = await seat.scores(name, matrix.rows(rows), state)
        pieces.append(await _measure_piece(seat, q, chosen, name, z, y[rows]))
        await seat.check()
    total = sum(pieces[1:], pieces[0])
    if not is_loss(chosen.by):
        return total
    steps = LossSteps(_rows_of_all_folds(q), chosen.folds)
    if q.is_linear:
        bits = 2 * squares.error_bits(q.validation_rows, q.residual_bound)
    else:
        bits = scoring.loss_scales(q.validation_rows, q.scales.waves.score).result + 1
    return await divide(seat, "fold", total, bits - steps.fold_bits)


async def _measure_piece(seat: Seat, q: FalconParameters, chosen: Selection, name: str, z: Share, y: Share) -> Share:
    if q.is_linear:
        return await sum_clipped_errors(seat, q, name, z, y, q.validation_rows)
    scales = scoring.loss_scales(q.validation_rows, q.scales.waves.score)
    if chosen.by == "log_loss":
        right_up_to = q.waves.bound - 2 ** ranges.unit_bits(q.waves)
        clipped = await clip_scores(seat, q, name, z, right_up_to)
        return await scoring.log_loss(seat, name, clipped, y, q.waves, scales)
    counted = await scoring.counts(seat, name, z, y, q.waves, scales, q.threshold)
    if chosen.by == "auc":
        return counted.bins
    true_positives, called = counted.confusion[:1], counted.confusion[1:]
    return true_positives.times_power_of_two(1) - called


def _rows_of_all_folds(q: FalconParameters) -> int:
    return q.train_rows + q.validation_rows


# --- all of them ------------------------------------------------------------------------------------------------------


async def _round(seat: Seat, p: FalconParameters, chosen: Selection, measured: list[Share]) -> Share:
    """Return the numbers to open: one for each point, and for losses also their deviation."""
    n, folds, points = p.train_rows, chosen.folds, len(chosen.points)
    if is_loss(chosen.by):
        return await _round_losses(seat, LossSteps(n, folds), points, join(measured))
    summed = [join(measured[point * folds : (point + 1) * folds]) for point in range(points)]
    totals = [share.reshape(folds, share.value.size // folds).sum_over_first() for share in summed]
    if chosen.by == "accuracy":
        return await divide(seat, "right", join(totals), count_shift(n))
    pairs = [(await scoring.ranks(seat, f"ranks {point}", bins, n)).auc for point, bins in enumerate(totals)]
    return await divide(seat, "pairs", join(pairs), pair_shift(n))


async def _round_losses(seat: Seat, steps: LossSteps, points: int, losses: Share) -> Share:
    """Round the losses of (points x folds) folds as `LossSteps` defines."""
    clipped = await squares.clip(seat, "losses", losses, steps.fold_limit)
    sums = clipped.reshape(points, steps.folds).transposed().sum_over_first()
    apart = clipped.times(f.elements([steps.folds])) - sums.repeat(steps.folds)
    squared = await multiply(seat, "deviations", apart, apart)
    spread = squared.reshape(points, steps.folds).transposed().sum_over_first()
    means = await divide(seat, "means", sums, steps.mean_shift)
    coarse = await divide(seat, "spread", spread, steps.spread_shift)
    return join([means, await squares.clip(seat, "spread", coarse, MOST_SPREAD)])


def _read(p: FalconParameters, chosen: Selection, numbers: Integers, labels: Integers) -> tuple[PointFigure, ...]:
    n = p.train_rows
    if is_loss(chosen.by):
        means, spreads = np.split(numbers, 2)
        return LossSteps(n, chosen.folds).read(means.tolist(), spreads.tolist())
    positives = int(labels.sum())
    if chosen.by == "accuracy":
        right = [(int(number) << count_shift(n)) + n - positives for number in numbers]
        return tuple(accuracy_figure(number, n) for number in right)
    return tuple(auc_figure((int(number) << pair_shift(n)) / 2, positives, n - positives) for number in numbers)
