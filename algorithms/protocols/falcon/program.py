"""A Falcon training in shares: the program that every seat goes through, the dealer's without data."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon.kept_shares import keep
from blindfit.algorithms.protocols.falcon.parameters import (
    MEAN_LOSS_BITS,
    WEIGHT_BITS,
    WEIGHT_BOUND,
    FalconParameters,
)
from blindfit.algorithms.protocols.falcon.seats import ModelState, Seat, zeros
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

TEST_PIECE = 2048  # test rows that are evaluated at once: a row's comparisons take some 40 kB of what is dealt
COARSE_WEIGHT_BITS = 3  # weights are tested in units of 8: beyond some 50 a model has long diverged
COARSE_CLASS_WEIGHT_BITS = 3  # and so are those of classes
CLASSES = 2  # without the label, and with it

Floats = npt.NDArray[np.float64]
ACTIVE = 0  # the active party's place


@dataclass(repr=False)
class Model:
    """One party's shares of what a training has come to.

    Attributes:
        best: twice the least loss so far of the validation rows, (1,); without an epoch, zero.
        since: epochs since it was found, (1,).
    """

    state: ModelState
    best: Share
    since: Share
    epochs: int = 0


async def _pass() -> None:
    """Let the weights be opened."""


@dataclass(frozen=True)
class Progress:
    """Who is told what.

    Attributes:
        report: step, done, total.
        keep: what a training can go on from, after a check; and whether it does.
        before_opening: before a weight is opened; may raise.
        check_begun: as `check.run_check` takes it.
    """

    report: Callable[[str, int, int], None] = lambda _step, _done, _total: None
    keep: Callable[[Model, bool], None] = lambda _model, _go_on: None
    before_opening: Callable[[], Awaitable[None]] = _pass
    check_begun: Callable[[bool], None] = lambda _open: None


@dataclass(frozen=True, repr=False)
class Held:
    """What a data party holds, rows in the order of batches, validation and test.

    Attributes:
        features: (rows, own columns), integers at FEATURE_BITS; the active party's intercept as its last column.
        labels: 0 and 1, or numbers at label_bits, (rows,); None at a passive party.
        class_weights: of a row without the label and of one with it, where they differ; None at a passive party.
        uniform: of its noise.
    """

    features: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64] | None = None
    class_weights: npt.NDArray[np.int64] | None = None
    uniform: UniformInt = system_uniform


@dataclass(frozen=True, repr=False)
class TestFigures:
    """What the active party learns of the test rows, from which, with its labels, all figures follow.

    Attributes:
        true_positives, positives: rows called positive at the threshold that are, and all that are called so; in steps
            of a quarter of their standard error, or less.
        loss: the sum of the log losses.
        auc_pairs, ks_pairs: AUC and KS, times the pairs of a row with the label and one without.
    """

    true_positives: int
    positives: int
    loss: float
    auc_pairs: float
    ks_pairs: float


@dataclass(frozen=True, repr=False)
class TestErrors:
    """The same of a linear model.

    Attributes:
        squares: the sum of the squared errors, of labels as they are put in.
    """

    squares: float


@dataclass(frozen=True, repr=False)
class Trained:
    """
    Attributes:
        weights: of the seat's own columns; empty at the dealer, and where they stay in shares.
        kept: a data party's shares of all weights, where they do, in steps of 2^-kept_bits.
        tested: at the active party, where there are test rows.
        rounds: of openings and checks, at a data party.
    """

    epochs: int
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    tested: TestFigures | TestErrors | None = None
    rounds: int = 0
    kept: KeptShares | None = None


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
    """Steps 2 to 7, at a data party or, without `held`, at the dealer.

    Args:
        model: what a training that stopped has come to.
        is_done: that training had decided to stop there.
    """
    progress.report("put in", 0, 1)
    matrix = await seat.put_in_matrix(p.columns, p.rows, None if held is None else f.elements(held.features))
    labels = await _labels(seat, p, held)
    model = model or begin_model(p, seat)
    while model.epochs < p.epochs and not is_done:
        noises = await _noises(seat, p, held, model.epochs)
        is_done = not await _epoch(seat, p, matrix, labels, model, progress, noises)
    return await _open_weights(seat, p, matrix, labels.y, model, progress)


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
    """Of each row its class's: an active party weighs classes, and no row by itself unless it makes up labels too."""
    without, with_label = (weights[np.full(p.rows, place)] for place in range(CLASSES))
    return without + await multiply(seat, "row weights", with_label - without, y)


async def _require_labels(seat: Seat, p: FalconParameters, y: Share, weights: Share | None) -> None:
    """What the active party learns of the test rows are sums over labels: with labels such as 2^i it would read of each
    row on which side of the threshold it is. With class weights so large that a loss wraps round in the field, when
    training ends would tell of something else than the loss. Without MACs all are believed.

    Raises:
        MalformedMessage: a label is not 0 or 1, or a number is far out of the range to which labels are clipped; or a
            class weight is far larger than the largest.
    """
    await seat.check()  # coefficients that nobody knew when all this was put in
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
    """Whether a number divided by 2^bits is more than a unit or two beyond the bound: as `out_of_range` has it."""
    coarse = await divide(seat, f"{name} in coarse units", numbers, bits)
    return await out_of_range(seat, name, coarse, math.ceil(bound) + 1, seat.coefficients)


# --- training -------------------------------------------------------------------------------------------------------


async def _noises(seat: Seat, p: FalconParameters, held: Held | None, epoch: int) -> list[Share | None]:
    """Of each step of an epoch, put in at once: drawn for it now, and in no other run of it."""
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
    """One epoch, and whether another follows."""
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
    """Steps 4 and 5: one bit says whether all was in range, another whether training ends here.

    Under differential privacy neither bit is opened: no charge pays for it, and a score out of range has a wrong
    probability, which is as bounded as a right one.

    Raises:
        ScoresOutOfRange: a score, or a weight, of this epoch was not.
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
    """Twice the summed loss, (1,), at `_validation_loss_bits`."""
    if p.is_linear:
        return await _squares(seat, p, "validation", z, labels.y, p.validation_rows)
    scales = _validation_scales(p)
    return await scoring.log_loss(seat, "validation", z, labels.y, p.waves, scales, labels.row_weights)


def _validation_loss_bits(p: FalconParameters) -> int:
    if p.is_linear:
        return 2 * squares.error_bits(p.validation_rows, p.residual_bound)
    return _validation_scales(p).result + (CLASS_WEIGHT_BITS if p.weighted else 0)


def _validation_scales(p: FalconParameters) -> WaveScales:
    weight_bits = CLASS_WEIGHT_BITS + LARGEST_CLASS_WEIGHT.bit_length() if p.weighted else 0
    return scoring.loss_scales(p.validation_rows, p.scales.waves.score, weight_bits)


async def _squares(seat: Seat, p: FalconParameters, name: str, z: Share, y: Share, of_rows: int) -> Share:
    """
    Args:
        of_rows: that are added up in the end.
    """
    kept = squares.error_bits(of_rows, p.residual_bound)
    return await squares.squared_errors(seat, name, z, y, p.scales.waves.score, p.label_bits, kept)


async def _ends(seat: Seat, p: FalconParameters, model: Model, loss: Share, least: int) -> Share:
    """Whether so many epochs have passed without a better loss, (1,): all that a loss decides is this one bit.

    Args:
        least: by how much a better loss is below the best.
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
    """Steps 6 and 7: each party's weights to it alone, and what they are worth to the active party."""
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
        owned.append((ACTIVE, await _figures(seat, p, matrix, labels, opened, progress)))
    await progress.before_opening()
    if owned:
        mine = await seat.reveal_to_owners("weights", owned)
    else:
        await seat.check()
        mine = {}
    place = next((number for number in mine if number < opens), None)
    weights = np.zeros(0) if place is None else np.ldexp(f.integers(mine[place]).astype(np.float64), -steps)
    figures = mine.get(opens)
    tested = None if figures is None else _read(p, f.integers(figures))
    return Trained(model.epochs, weights, tested, kept=kept)


async def _figures(
    seat: Seat, p: FalconParameters, matrix: SecretMatrix, labels: Share, state: ModelState, progress: Progress
) -> Share:
    """Of the test rows, in pieces."""
    scales = scoring.loss_scales(p.test_rows, p.scales.waves.score)
    counts: scoring.Counts | None = None
    errors: Share | None = None
    starts = range(p.test.start, p.test.stop, TEST_PIECE)
    for number, start in enumerate(starts):
        progress.report("evaluate", number, len(starts) + 1)
        rows = slice(start, min(start + TEST_PIECE, p.test.stop))
        z = await seat.scores(f"test {start}", matrix.rows(rows), state)
        if p.is_linear:
            sum_of = await _errors(seat, p, f"test {start}", z, labels[rows])
            errors = sum_of if errors is None else errors + sum_of
        else:
            piece = await scoring.counts(seat, f"test {start}", z, labels[rows], p.waves, scales, p.threshold)
            counts = piece if counts is None else counts + piece
        await seat.check()
    progress.report("evaluate", len(starts), len(starts) + 1)
    if errors is not None:
        return await divide(seat, "errors", errors, _loss_shift(p))
    if counts is None:
        return zeros((0,))
    ranks = await scoring.ranks(seat, "ranks", counts.bins, p.test_rows)
    loss = await divide(seat, "loss", counts.loss, _loss_shift(p))
    confusion = await divide(seat, "confusion", counts.confusion, p.count_shift)
    pairs = await divide(seat, "pairs", join([ranks.auc, ranks.ks]), p.pair_shift)
    return join([confusion, loss, pairs])


async def _errors(seat: Seat, p: FalconParameters, name: str, z: Share, y: Share) -> Share:
    """Of test rows, whose scores nothing has tested."""
    limit = round(p.waves.bound * 2.0**p.scales.waves.score)
    return await _squares(seat, p, name, await squares.clip(seat, name, z, limit), y, p.test_rows)


def _loss_shift(p: FalconParameters) -> int:
    """By which the summed loss, or the sum of squared errors, is rounded: a single row's share in it is not to be read
    off the rest.
    """
    if p.is_linear:
        bits = 2 * squares.error_bits(p.test_rows, p.residual_bound)
    else:
        bits = scoring.loss_scales(p.test_rows, p.scales.waves.score).result + 1
    return bits - MEAN_LOSS_BITS + math.floor(math.log2(p.test_rows))


def _read(p: FalconParameters, numbers: npt.NDArray[np.int64]) -> TestFigures | TestErrors:
    unit = math.floor(math.log2(p.test_rows)) - MEAN_LOSS_BITS  # a power of two, that the loss is in units of
    if p.is_linear:
        return TestErrors(math.ldexp(int(numbers[0]), unit))
    true_positives, positives = (int(number) << p.count_shift for number in numbers[:2])
    auc, ks = (int(number) << p.pair_shift for number in numbers[3:])
    return TestFigures(true_positives, positives, math.ldexp(int(numbers[2]), unit), auc / 2, float(ks))
