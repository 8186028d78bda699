"""A Falcon training in shares: the program of every seat; the dealer's seat has no data."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon.figures import (
    Report,
    TestErrors,
    TestFigures,
    figures_of_test_rows,
    read_figures,
    squared_errors,
)
from blindfit.algorithms.protocols.falcon.kept_shares import keep
from blindfit.algorithms.protocols.falcon.parameters import WEIGHT_BITS, WEIGHT_BOUND, FalconParameters
from blindfit.algorithms.protocols.falcon.seats import ModelState, Seat
from blindfit.algorithms.protocols.falcon.selection import labels_at, select
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import ranges, scoring, squares
from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import divide, multiply
from blindfit.algorithms.sharing.descent import Labels
from blindfit.algorithms.sharing.kept import KeptShares
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.ranges import out_of_range
from blindfit.algorithms.sharing.shares import Share, join
from blindfit.algorithms.sharing.waves import WaveScales
from blindfit.algorithms.statistics.vertical.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.algorithms.statistics.vertical.grid import LABEL_BOUND
from blindfit.algorithms.statistics.vertical.selection import Selected, Selection

COARSE_WEIGHT_BITS = 3  # weights are tested in units of 8: beyond some 50 a model has long diverged
COARSE_CLASS_WEIGHT_BITS = 3  # and class weights likewise
CLASSES = 2  # rows without the label, and rows with it

Floats = npt.NDArray[np.float64]
ACTIVE = 0  # the active party's place


@dataclass(repr=False)
class Model:
    """One party's shares of the state of a training.

    Attributes:
        best: twice the least loss so far of the validation rows, (1,); zero before the first epoch.
        since: epochs since that loss, (1,).
    """

    state: ModelState
    best: Share
    since: Share
    epochs: int = 0


async def _pass() -> None:
    """Allow the opening."""


@dataclass(frozen=True)
class Progress:
    """Functions that a training calls as it goes on.

    Attributes:
        report: step, done, total.
        keep: function of the state from which a training can go on, after a check, and of whether it goes on.
        before_figures: function that is called before the figures of grid points are opened; it may raise.
        before_opening: function that is called before a weight is opened; it may raise.
        check_begun: see `check.run_check`.
    """

    report: Callable[[str, int, int], None] = lambda _step, _done, _total: None
    keep: Callable[[Model, bool], None] = lambda _model, _go_on: None
    before_figures: Callable[[], Awaitable[None]] = _pass
    before_opening: Callable[[], Awaitable[None]] = _pass
    check_begun: Callable[[bool], None] = lambda _open: None


@dataclass(frozen=True, repr=False)
class Held:
    """The data of one data party; rows in the order of batches, validation and test.

    Attributes:
        features: (rows, own columns), integers at FEATURE_BITS; the active party's intercept as its last column.
        labels: 0 and 1, or numbers at label_bits, (rows,); None at a passive party.
        class_weights: weights of a row without the label and of a row with it, if they differ; None at a passive party.
        uniform: randomness of its noise.
    """

    features: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64] | None = None
    class_weights: npt.NDArray[np.int64] | None = None
    uniform: UniformInt = system_uniform


@dataclass(frozen=True, repr=False)
class Trained:
    """Result of a training at one seat.

    Attributes:
        selected: the grid point that was chosen before, if the job has a grid.
        weights: weights of the seat's own columns; empty at the dealer, and if they stay in shares.
        kept: a data party's shares of all weights if they stay in shares, in steps of 2^-kept_bits.
        tested: figures of the test rows, at the active party, if there are test rows.
        rounds: rounds of openings and checks, at a data party.
    """

    epochs: int
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    tested: TestFigures | TestErrors | None = None
    rounds: int = 0
    kept: KeptShares | None = None
    selected: Selected | None = None


def begin_model(p: FalconParameters, seat: Seat) -> Model:
    none = seat.holder.public(np.zeros(1, dtype=np.uint64))
    return Model(seat.beginning(sum(p.columns)), none, none)


async def run_program(
    seat: Seat,
    p: FalconParameters,
    held: Held | None,
    progress: Progress,
    model: Model | None = None,
    *,
    is_done: bool = False,
) -> Trained:
    """Do steps 2 to 7, at a data party or, without `held`, at the dealer.

    Args:
        model: state of a training that stopped.
        is_done: True if that training had decided to stop there.
    """
    progress.report("put in", 0, 1)
    matrix = await seat.put_in_matrix(p.columns, p.rows, None if held is None else f.elements(held.features))
    labels = await _labels(seat, p, held)
    selected = None
    if p.selection is not None:
        selected = await _select(seat, p, p.selection, matrix, labels, held, progress)
        final = p.at(selected.point)
        p, labels = final, labels_at(p, final, labels)
    model = model or begin_model(p, seat)
    await _descend(seat, p, held, matrix, labels, model, progress, is_done=is_done)
    return replace(await _open_weights(seat, p, matrix, labels.y, model, progress), selected=selected)


async def _select(
    seat: Seat,
    p: FalconParameters,
    chosen: Selection,
    matrix: SecretMatrix,
    labels: Labels,
    held: Held | None,
    progress: Progress,
) -> Selected:
    """Do step 2b: all folds of all grid points, each from weights of zero; nothing of them is kept."""

    async def train(q: FalconParameters, rows: SecretMatrix, own: Labels, report: Report) -> ModelState:
        model = begin_model(q, seat)
        await _descend(seat, q, None, rows, own, model, Progress(report=report))
        return model.state

    own_labels = None if held is None else held.labels
    return await select(seat, p, chosen, matrix, labels, own_labels, train, progress)


async def _descend(
    seat: Seat,
    p: FalconParameters,
    held: Held | None,
    matrix: SecretMatrix,
    labels: Labels,
    model: Model,
    progress: Progress,
    *,
    is_done: bool = False,
) -> None:
    """Do steps 3 to 5 until the training ends."""
    while model.epochs < p.epochs and not is_done:
        noises = await _noises(seat, p, held, model.epochs)
        is_done = not await _epoch(seat, p, matrix, labels, model, progress, noises)


async def _labels(seat: Seat, p: FalconParameters, held: Held | None) -> Labels:
    y = await seat.put_in("labels", ACTIVE, (p.rows,), None if held is None else _elements(held.labels))
    weights = None
    if p.weighted:
        mine = None if held is None else _elements(held.class_weights)
        weights = await seat.put_in("class weights", ACTIVE, (CLASSES,), mine)
    if p.macs:
        await _require_labels(seat, p, y, weights)
    return Labels(y, None if weights is None else await _row_weights(seat, p, y, weights))


def _elements(numbers: npt.NDArray[np.int64] | None) -> f.Elements | None:
    return None if numbers is None else f.elements(numbers)


async def _row_weights(seat: Seat, p: FalconParameters, y: Share, weights: Share) -> Share:
    """Return each row's class weight. An active party can weigh single rows only if it also makes up labels."""
    without, with_label = (weights[np.full(p.rows, place)] for place in range(CLASSES))
    return without + await multiply(seat, "row weights", with_label - without, y)


async def _require_labels(seat: Seat, p: FalconParameters, y: Share, weights: Share | None) -> None:
    """Raise if the active party's labels or class weights are out of range.

    The active party learns sums over labels of the test rows. With labels such as 2^i it would read from them on which
    side of the threshold each row is. With class weights so large that a loss wraps round in the field, the end of
    training would reveal something else than the loss. Without MACs all parties are believed.

    Raises:
        MalformedMessage: a label is not 0 or 1, or a number is far out of the range to which labels are clipped; or a
            class weight is far larger than the largest.
    """
    await seat.check()  # nobody knew the coefficients when all this was put in
    if p.is_linear:
        far = await _far_out(seat, "labels", y, p.label_bits, LABEL_BOUND)
        tests = [("labels", f"beyond {LABEL_BOUND:g} deviations", far)]
    else:
        apart = await multiply(seat, "labels are bits", y, seat.holder.plus(y, f.elements([-1])))
        tests = [("labels", "not all 0 and 1", await out_of_range(seat, "labels", apart, 0, seat.coefficients))]
    if weights is not None:
        bits, bound = CLASS_WEIGHT_BITS + COARSE_CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT / 2**COARSE_CLASS_WEIGHT_BITS
        far = await _far_out(seat, "class weights", weights, bits, bound)
        tests.append(("class weights", f"beyond {LARGEST_CLASS_WEIGHT}", far))
    await seat.check()  # otherwise a party that changed an opened label would see whether that mattered
    told = await seat.open_(*(share for _, _, share in tests))
    for (what, how, _), bit in zip(tests, told, strict=True):
        if bit[0]:
            await seat.check()  # before anybody is accused
            raise MalformedMessage(culprit=p.data_parties[ACTIVE], field=what, reason=f"are {how}", step="MaskedInput")


async def _far_out(seat: Seat, name: str, numbers: Share, bits: int, bound: float) -> Share:
    """Return, like `out_of_range`, whether a number divided by 2^bits exceeds the bound by more than a unit or two."""
    coarse = await divide(seat, f"{name} in coarse units", numbers, bits)
    return await out_of_range(seat, name, coarse, math.ceil(bound) + 1, seat.coefficients)


# --- training -------------------------------------------------------------------------------------------------------


async def _noises(seat: Seat, p: FalconParameters, held: Held | None, epoch: int) -> list[Share | None]:
    """Put in the noise of all steps of an epoch at once: drawn now for this run of the epoch only."""
    if p.noise is None:
        return [None] * len(p.batches)
    steps = [p.step(epoch, batch) for batch in range(len(p.batches))]
    mine = None if held is None else p.noise.draw(steps, held.uniform)
    put_in = await p.noise.put_in(seat, steps, mine)
    return [put_in[number] for number in range(len(steps))]


async def _epoch(
    seat: Seat,
    p: FalconParameters,
    matrix: SecretMatrix,
    labels: Labels,
    model: Model,
    progress: Progress,
    noises: list[Share | None],
) -> bool:
    """Train one epoch; return whether another follows."""
    coarse = []
    for number in range(len(p.batch_rows)):
        rows = p.batch(model.epochs, number)
        progress.report(f"epoch {model.epochs + 1}", number, len(p.batch_rows))
        step = p.step(model.epochs, number)
        model.state, scores = await seat.move(step, matrix.rows(rows), labels[rows], model.state, noises[number])
        coarse.append(scores)
    model.epochs += 1
    go_on = await _judge(seat, p, matrix, labels, model, coarse)
    progress.keep(model, go_on)
    return go_on


async def _judge(
    seat: Seat, p: FalconParameters, matrix: SecretMatrix, labels: Labels, model: Model, coarse: list[Share]
) -> bool:
    """Do steps 4 and 5: one bit reveals whether all was in range, another whether training ends here.

    Under differential privacy neither bit is opened, because no charge pays for it. A score out of range then has a
    wrong probability, which is as bounded as a right one.

    Raises:
        ScoresOutOfRange: a score, or a weight, of this epoch was out of range.
    """
    if p.noise is not None:
        await seat.check()
        return await seat.agree(model.epochs < p.epochs)
    bits = p.scales.waves.score
    w = await seat.weights("range", model.state)
    large = await divide(seat, "weights in coarse units", w, WEIGHT_BITS + COARSE_WEIGHT_BITS)
    ends = None
    if p.judges:
        z = await seat.scores("validation", matrix.rows(p.validation), model.state)
        coarse.append(await divide(seat, "validation in coarse units", z, bits + ranges.unit_bits(p.waves)))
        loss = await _validation_loss(seat, p, z, labels[p.validation])
        least = math.ceil(2 * p.tolerance * p.validation_rows * 2.0 ** _validation_loss_bits(p))
        ends = await _ends(seat, p, model, loss, least)
    units, coefficients = ranges.units_below(p.waves), seat.coefficients
    outside = await out_of_range(seat, "range", join([*coarse, large]), units, coefficients)
    told = await seat.reveal(outside if ends is None else join([outside, ends]))
    if told[0]:
        raise ScoresOutOfRange(epoch=model.epochs)
    stops = len(told) > 1 and bool(told[1])
    return await seat.agree(model.epochs < p.epochs and not stops)


async def _validation_loss(seat: Seat, p: FalconParameters, z: Share, labels: Labels) -> Share:
    """Return twice the summed loss, (1,), at `_validation_loss_bits`."""
    if p.is_linear:
        return await squared_errors(seat, p, "validation", z, labels.y, p.validation_rows)
    scales = _validation_scales(p)
    return await scoring.log_loss(seat, "validation", z, labels.y, p.waves, scales, labels.row_weights)


def _validation_loss_bits(p: FalconParameters) -> int:
    if p.is_linear:
        return 2 * squares.error_bits(p.validation_rows, p.residual_bound)
    return _validation_scales(p).result + (CLASS_WEIGHT_BITS if p.weighted else 0)


def _validation_scales(p: FalconParameters) -> WaveScales:
    weight_bits = CLASS_WEIGHT_BITS + LARGEST_CLASS_WEIGHT.bit_length() if p.weighted else 0
    return scoring.loss_scales(p.validation_rows, p.scales.waves.score, weight_bits)


async def _ends(seat: Seat, p: FalconParameters, model: Model, loss: Share, least: int) -> Share:
    """Return whether `patience` epochs have passed without a better loss, (1,): a loss decides only this one bit.

    Args:
        least: least difference by which a better loss is below the best.
    """
    if model.epochs == 1:
        model.best, model.since = loss, seat.holder.public(f.elements([0]))
    else:
        waited = seat.holder.plus(model.since, f.elements([1]))
        better = await not_negative(seat, "better", seat.holder.plus(model.best - loss, f.elements([-least])))
        changes = await multiply(seat, "changes", join([better, better]), join([loss - model.best, waited]))
        model.best, model.since = model.best + changes[:1], waited - changes[1:]
    return await not_negative(seat, "ends", seat.holder.plus(model.since, f.elements([-p.patience])))


# --- opening ----------------------------------------------------------------------------------------------------------


async def _open_weights(
    seat: Seat, p: FalconParameters, matrix: SecretMatrix, labels: Share, model: Model, progress: Progress
) -> Trained:
    """Do steps 6 and 7: open each party's weights only to it, and their figures to the active party."""
    progress.report("open weights", 0, 1)
    w, steps, opened = await seat.weights("weights", model.state), WEIGHT_BITS, model.state
    if p.kept_bits is not None:
        steps = p.kept_bits
        w = await scoring.round_weights(seat, "weights", w, WEIGHT_BITS, steps, WEIGHT_BOUND)
        opened = await seat.with_weights("weights", w, steps)
    kept = await keep(seat, w, macs=p.macs) if p.weights_stay_shared else None
    owned = [] if p.weights_stay_shared else [(place, w[p.column_slice(place)]) for place in range(len(p.columns))]
    opens = len(owned)
    if p.test_rows:
        owned.append((ACTIVE, await figures_of_test_rows(seat, p, matrix, labels, opened, progress.report)))
    await progress.before_opening()
    if owned:
        mine = await seat.reveal_to_owners("weights", owned)
    else:
        await seat.check()
        mine = {}
    place = next((number for number in mine if number < opens), None)
    weights = np.zeros(0) if place is None else np.ldexp(f.integers(mine[place]).astype(np.float64), -steps)
    figures = mine.get(opens)
    tested = None if figures is None else read_figures(p, f.integers(figures))
    return Trained(model.epochs, weights, tested, kept=kept)
