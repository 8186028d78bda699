"""Choose a grid point: train every fold of every point, and compare the hold-out losses that the key node decrypts.

A fold is made of whole batches of the final training. So the gradients of folds show nothing of a label that those of
the final training do not show: the same rows are together, with the same jitter. After the last epoch of each fold's
training, the key node decrypts the loss of the rows that it left out. It sends the active party two rounded numbers of
each point, and all data parties the best point.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.taylor.messages import GridChoice, GridFigures
from blindfit.algorithms.protocols.taylor.parameters import DataSeat, KeySeat, TaylorParameters, check_parameters
from blindfit.algorithms.protocols.taylor.roles import InThread, Progress, directly, run_data_party, run_key_node
from blindfit.algorithms.statistics.vertical.optimiser import Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.algorithms.statistics.vertical.selection import LossSteps, Selected, Selection

Report = Callable[[str, int, int], None]
MakeSeat = Callable[[int, RowPlan, TaylorParameters], DataSeat]


@dataclass(frozen=True, repr=False)
class Folds:
    """The trainings of a grid, in their order.

    Args:
        plan: row plan of the final training.
    """

    chosen: Selection
    plan: RowPlan
    parameters: TaylorParameters

    def parameters_of(self, point: int) -> TaylorParameters:
        """Return the parameters of a fold's training at a grid point."""
        epochs = self.chosen.points[point].epochs
        return replace(
            self.parameters, epochs=epochs, patience=0, hold_out_loss=True, calibrate=False, judged_at_end=True
        )

    def plan_of(self, fold: int) -> RowPlan:
        """Return the batches of a fold's training, and the batches that it leaves out as validation rows."""
        left_out = np.array_split(np.arange(len(self.plan.batches)), self.chosen.folds)[fold].tolist()
        batches = tuple(batch for number, batch in enumerate(self.plan.batches) if number not in left_out)
        tested = np.concatenate([self.plan.batches[number] for number in left_out])
        return RowPlan(batches, tested, tested[:0])

    def check(self) -> None:
        """Raise RangeError or ConfigError, as `check_parameters`, for each kind of training."""
        for fold in range(self.chosen.folds):
            plan = self.plan_of(fold)
            check_parameters(self.parameters_of(0), [len(batch) for batch in plan.batches], len(plan.validation))

    @property
    def all(self) -> list[tuple[int, int]]:
        """The point and the fold of each training."""
        return [(point, fold) for point in range(len(self.chosen.points)) for fold in range(self.chosen.folds)]

    def progress(self, report: Report, point: int, fold: int) -> Progress:
        where = f"point {point + 1} of {len(self.chosen.points)}, fold {fold + 1} of {self.chosen.folds}"
        return Progress(report=lambda step, done, total: report(f"{where}, {step}", done, total))

    @property
    def steps(self) -> LossSteps:
        return LossSteps(len(self.plan.train), self.chosen.folds)

    @property
    def scale(self) -> float:
        """Factor from a loss to the figure: a linear loss is half a squared error."""
        return 2.0 if self.chosen.by == "mse" else 1.0


async def select_data_party(
    folds: Folds, make_seat: MakeSeat, channel: Channel, report: Report, in_thread: InThread = directly
) -> Selected:
    """Return the chosen point, at a data party.

    Args:
        make_seat: function that makes the seat of a training, with weights of zero.
    """
    parameters, points = folds.parameters, len(folds.chosen.points)
    me = ""
    for point, fold in folds.all:
        plan, own = folds.plan_of(fold), folds.parameters_of(point)
        seat = make_seat(point, plan, own)
        me = seat.name
        progress = folds.progress(report, point, fold)
        await run_data_party(seat, plan, own, channel, progress=progress, in_thread=in_thread)
    figures = None
    if me == parameters.active:
        numbers = (await channel.receive(parameters.key_node, GridFigures)).numbers
        _require(numbers.shape == (2, points), parameters.key_node, "numbers", "are not two of each grid point")
        figures = folds.steps.read(*numbers.tolist())
    point = (await channel.receive(parameters.key_node, GridChoice)).point
    _require(0 <= point < points, parameters.key_node, "point", "is not in the grid")
    return Selected(point, figures)


async def select_key_node(
    folds: Folds, seat: KeySeat, channel: Channel, report: Report, in_thread: InThread = directly
) -> int:
    """Return the chosen point, at the key node."""
    losses = []
    for point, fold in folds.all:
        plan, patience = folds.plan_of(fold), Patience(0, 0.0)
        own = replace(seat, noise_key=derive_noise_key(seat.noise_key, point, fold), patience=patience)
        await run_key_node(
            own,
            [len(batch) for batch in plan.batches],
            len(plan.validation),
            folds.parameters_of(point),
            channel,
            progress=folds.progress(report, point, fold),
            in_thread=in_thread,
        )
        losses.append(patience.losses[-1] * folds.scale)
    numbers = [folds.steps.round_folds(own) for own in _each(losses, folds.chosen.folds)]
    means = [mean for mean, _ in numbers]
    point = folds.chosen.best([folds.steps.mean(mean) for mean in means])
    await channel.send(folds.parameters.active, GridFigures(np.array(numbers, dtype=np.int64).T.copy()))
    for party in folds.parameters.data_parties:
        await channel.send(party, GridChoice(point))
    return point


def derive_noise_key(noise_key: bytes, point: int, fold: int) -> bytes:
    """Return the key of one training's noise: equal noise on two gradients would cancel in their difference."""
    return hashlib.sha256(b"blindfit noise of a fold v1/%d/%d/" % (point, fold) + noise_key).digest()


def _each(losses: Sequence[float], folds: int) -> list[Sequence[float]]:
    return [losses[start : start + folds] for start in range(0, len(losses), folds)]


def _require(condition: bool, culprit: str, field: str, reason: str) -> None:
    if not condition:
        raise MalformedMessage(culprit=culprit, field=field, reason=reason, step="grid")
