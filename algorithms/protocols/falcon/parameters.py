"""The public parameters of a Falcon training, the same at every party."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.held_out import hold_out_more
from blindfit.algorithms.protocols.falcon.noise import LARGEST_RESIDUAL, Noise
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.descent import Step
from blindfit.algorithms.sharing.descent_scales import LARGEST_WEIGHT, BatchesTooLarge, Scales
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.residual_bound import residual_bound
from blindfit.algorithms.sharing.scoring import LARGEST_LOSS_BITS
from blindfit.algorithms.sharing.waves import CHOICES, Waves
from blindfit.algorithms.statistics.vertical.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.algorithms.statistics.vertical.gradient_leaks import LEAST_HOLD_OUT_ROWS
from blindfit.algorithms.statistics.vertical.grid import LABEL_BOUND
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import rows_of_batches
from blindfit.algorithms.statistics.vertical.selection import Selection, count_shift, pair_shift

FEATURE_BOUND = 8.0
WEIGHT_BOUND = 4.0  # of opened weights: log odds, or deviations of a number, for each deviation of a column
LEAST_TEST_ROWS = 50
LEAST_THRESHOLD_BITS = 8  # of the step that l1 takes from a weight in the last epoch
MOST_ROWS = 4_000_000  # their range is tested in one opening of 192 MiB
WEIGHT_BITS = 24  # in shares
MEAN_LOSS_BITS = 9  # of the test rows' mean log loss, or mean squared error
_BATCHES = Seed(hashlib.sha256(b"blindfit batches v1").digest())
SAFE_DEVIATIONS = 8  # of noise in a weight, which must stay below the largest


@dataclass(frozen=True)
class FalconParameters:
    """The public parameters of a Falcon training.

    Attributes:
        data_parties: the chain, the active party first; it gets the dealer's corrections.
        columns: number of columns of each data party; the active party's last one is the intercept, if there is one.
        batch_rows: rows of each batch, the same in every epoch; validation and test rows follow them.
        sampling: "epochs": each row is in one batch of an epoch; "replacement": each batch is drawn from all rows.
        patience: epochs without a better loss of the validation rows, after which training ends; 0: all epochs run.
        tolerance: decrease of the mean loss that counts as better.
        macs: True if openings are checked against MACs.
        kept_bits: weights are opened in steps of 2^-kept_bits, clipped to WEIGHT_BOUND; None: as they are.
        threshold: score threshold of the confusion matrix.
        weighted: True if rows have the weights of their classes, which only the active party knows.
        waves_name: name of the waves whose bound limits scores, in a linear model too.
        weights_stay_shared: True if weights are rounded as for an opening, but stay in shares.
        key_bits: size of the threshold key that encrypts the weights; None if all is in shares.
        noise: noise of differential privacy; then only the weights are opened.
        selection: grid points for which folds are trained first; the final training then has one point's options.
    """

    data_parties: tuple[str, ...]
    key_node: str
    columns: tuple[int, ...]
    batch_rows: tuple[int, ...]
    validation_rows: int
    test_rows: int
    epochs: int
    optimiser: OptimiserSettings
    intercept: bool = True
    patience: int = 0
    tolerance: float = 0.0
    macs: bool = True
    kept_bits: int | None = None
    threshold: float = 0.5
    waves_name: str = "medium"
    model: Literal["logistic", "linear"] = "logistic"
    weighted: bool = False
    sampling: Literal["epochs", "replacement"] = "epochs"
    weights_stay_shared: bool = False
    noise: Noise | None = None
    key_bits: int | None = None
    selection: Selection | None = None

    # --- the trainings of a selection

    def at(self, point: int) -> FalconParameters:
        """Return the parameters of the final training if this grid point is chosen."""
        chosen = self._points.points[point]
        return replace(self, optimiser=chosen.optimiser, epochs=chosen.epochs, selection=None)

    def fold(self, point: int, fold: int) -> FalconParameters:
        """Return the parameters of one fold's training.

        Its tested rows stand where validation rows do, and do not end the training.
        """
        tested = self._points.rows_of_folds(self.train_rows)[fold]
        batches = rows_of_batches(self.train_rows - tested, self.batch_rows[0])
        return replace(
            self.at(point), batch_rows=tuple(batches), validation_rows=tested, test_rows=0, patience=0, tolerance=0.0
        )

    @property
    def folds(self) -> int:
        return self._points.folds

    def fold_rows(self, fold: int) -> npt.NDArray[np.int64]:
        """Return the places of a fold's rows: first its training rows, then its tested rows."""
        ends = np.cumsum((0, *self._points.rows_of_folds(self.train_rows)))
        places = np.arange(self.train_rows)
        tested = slice(ends[fold], ends[fold + 1])
        return np.concatenate([np.delete(places, tested), places[tested]])

    @property
    def variants(self) -> list[FalconParameters]:
        """Parameters of every kind of training that the job has; only these parameters without a selection."""
        if self.selection is None:
            return [self]
        numbers = range(len(self.selection.points))
        return [p for number in numbers for p in (self.at(number), self.fold(number, 0))]

    @property
    def _points(self) -> Selection:
        if self.selection is None:
            raise LocalProtocolError("this training has no grid")
        return self.selection

    @property
    def selection_bits(self) -> float:
        """Most bits that the opened figures of all grid points have, even if parties deviate."""
        return 0.0 if self.selection is None else self.selection.figure_bits(self.train_rows)

    @property
    def selection_epochs(self) -> int:
        """Epochs of all trainings of the folds: each may end the job by the range of its scores."""
        return 0 if self.selection is None else self.selection.epochs

    @property
    def most_epochs(self) -> int:
        """Most epochs of the final training."""
        return self.epochs if self.selection is None else max(point.epochs for point in self.selection.points)

    # --- sizes

    @property
    def waves(self) -> Waves:
        return CHOICES[self.waves_name]

    @property
    def rows(self) -> int:
        return self.train_rows + self.validation_rows + self.test_rows

    @property
    def train_rows(self) -> int:
        return sum(self.batch_rows)

    @property
    def validation(self) -> slice:
        return slice(self.train_rows, self.train_rows + self.validation_rows)

    @property
    def test(self) -> slice:
        return slice(self.rows - self.test_rows, self.rows)

    @property
    def judges(self) -> bool:
        """True if a loss decides when to stop."""
        return self.validation_rows > 0 and self.patience > 0

    @property
    def count_shift(self) -> int:
        """Bits of a count of test rows that are rounded away: a quarter of its standard error, or less."""
        return count_shift(self.test_rows)

    @property
    def pair_shift(self) -> int:
        """Bits of AUC and KS, times the pairs of test rows, that are rounded away, for the same reason."""
        return pair_shift(self.test_rows)

    @property
    def figure_bits(self) -> float:
        """Most bits of all figures of the test rows, even if parties deviate: log2 of the number of their values."""
        n = self.test_rows
        if not n:
            return 0.0
        if self.is_linear:
            return MEAN_LOSS_BITS + 1 + 2 * math.log2(max(2.0, self.residual_bound))
        counts, pairs = (n >> self.count_shift) + 2, (n * n // 2 >> self.pair_shift) + 2
        return 2 * math.log2(counts) + 2 * math.log2(pairs) + MEAN_LOSS_BITS + 1 + LARGEST_LOSS_BITS

    @cached_property
    def batches(self) -> list[slice]:
        ends = np.cumsum([0, *self.batch_rows]).tolist()
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    def batch(self, epoch: int, number: int) -> slice | field.Integers:
        """Return the places of a batch's rows, which nobody chooses.

        Drawn places follow only from the numbers, and rows stand in an order that all parties have drawn.
        """
        if self.sampling == "epochs":
            return self.batches[number]
        drawn = _BATCHES.elements(f"epoch {epoch} batch {number}", (self.train_rows,))
        least = np.argpartition(drawn, self.batch_rows[number] - 1)[: self.batch_rows[number]]
        return np.sort(least).astype(np.int64)

    @cached_property
    def scales(self) -> Scales:
        """Return the scales; raise RangeError if batches of so many rows do not fit."""
        rate = self.optimiser.learning_rate
        return Scales.fitting(
            batch_rows=max(self.batch_rows),
            rate=rate,
            feature_bound=FEATURE_BOUND,
            feature_bits=FEATURE_BITS,
            weight_bits=WEIGHT_BITS,
            residual_bound=self.residual_bound,
            noise=self.noise.room(FEATURE_BITS) if self.noise else 0.0,
        )

    @property
    def residual_bound(self) -> float:
        if self.is_linear:
            return self.waves.bound + LABEL_BOUND
        return float(LARGEST_CLASS_WEIGHT) if self.weighted else 1.0

    @property
    def is_linear(self) -> bool:
        return self.model == "linear"

    @property
    def label_bits(self) -> int:
        """Bits after the point of the labels in shares, which every training of the job can take."""
        return min(p.scales.waves.wave for p in self.variants) if self.is_linear else 0

    @cached_property
    def penalised(self) -> npt.NDArray[np.uint64]:
        pulled = np.ones(sum(self.columns), dtype=np.int64)
        if self.intercept:
            pulled[self.columns[0] - 1] = 0
        return field.elements(pulled)

    def column_slice(self, place: int) -> slice:
        """Return the places of a party's columns among all."""
        start = sum(self.columns[:place])
        return slice(start, start + self.columns[place])

    def step(self, epoch: int, batch: int) -> Step:
        return Step(
            f"epoch {epoch} batch {batch}",
            self.batch_rows[batch],
            self.optimiser.rate(epoch),
            self.optimiser.l2,
            self.optimiser.momentum_of,
            self.penalised,
            self.scales,
            self.waves,
            self.model,
            CLASS_WEIGHT_BITS if self.weighted else None,
            self.optimiser.l1,
        )

    def check(self) -> None:
        """Raise RangeError if numbers would not fit into the field, or there is nothing to train on."""
        if not self.batch_rows or min(self.columns, default=0) < 1:
            raise RangeError("there is no batch to train on, or a party without a column")
        scales = self.scales  # it raises
        if not self.is_linear:
            try:
                scales.waves.check(self.waves)
            except RangeError as error:  # the bits grow with rows / learning_rate
                raise BatchesTooLarge(str(error), hint="raise falcon.learning_rate") from None
        if 0 < self.test_rows < LEAST_TEST_ROWS:
            raise RangeError(
                f"{self.test_rows} test rows: the loss of fewer than {LEAST_TEST_ROWS} reveals the loss of each",
                hint=hold_out_more("split.test_fraction", LEAST_TEST_ROWS, self.rows),
            )
        if self.judges and self.validation_rows < LEAST_HOLD_OUT_ROWS:
            raise RangeError(
                f"{self.validation_rows} validation rows: the end of training reveals the loss of each if they are "
                f"fewer than {LEAST_HOLD_OUT_ROWS}",
                hint=hold_out_more("falcon.validation_fraction", LEAST_HOLD_OUT_ROWS, self.rows),
            )
        if self.train_rows + self.validation_rows > MOST_ROWS:
            raise RangeError(f"more than {MOST_ROWS:,} rows do not fit into one test of their range")
        if max(self.epochs, 1) * len(self.batch_rows) >= 2**32:
            raise RangeError("a training has fewer than 2^32 steps", hint="lower falcon.epochs")
        if self.optimiser.learning_rate * self.optimiser.l2 >= 1:
            raise RangeError(
                "falcon.learning_rate times falcon.l2 is 1 or more: weights would swing",
                hint="lower falcon.learning_rate or falcon.l2",
            )
        threshold = self.optimiser.rate(self.epochs - 1) * self.optimiser.l1
        if self.optimiser.l1 and threshold < 2.0 ** (LEAST_THRESHOLD_BITS - WEIGHT_BITS):
            raise RangeError(
                f"falcon.l1 would take {threshold:.2g} from a weight in the last epoch's steps, too little for numbers "
                f"of {WEIGHT_BITS} bits after the point",
                hint="raise falcon.l1, or set falcon.l1 = 0",
            )
        each = FEATURE_BOUND * 2.0 ** (self.scales.waves.score + 6)
        if sum(self.columns) * each >= 2.0**59:
            raise RangeError(
                f"scores of {sum(self.columns)} columns do not fit into the field",
                hint=f"use at most {math.ceil(2.0**59 / each) - 1} columns",
            )
        if self.noise is not None:
            self._check_noise(self.noise)

    def _check_noise(self, noise: Noise) -> None:
        """Raise RangeError if other values would be opened, or weights could be lost in noise.

        The deviation of a weight by noise is known beforehand, because no opening would reveal it.
        """
        if self.validation_rows or self.test_rows or self.kept_bits is not None:
            raise RangeError("under differential privacy only weights are opened, without rounding")
        step = self.step(0, 0)
        largest = LARGEST_RESIDUAL * step.factor * 2.0**step.scales.residual_bits
        if residual_bound(self.waves, self.scales.waves, step.factor) > largest:
            raise BatchesTooLarge("residuals are too coarse for noise", hint="raise privacy.epsilon")
        if SAFE_DEVIATIONS * self.noise_in_weights(noise) > LARGEST_WEIGHT:
            raise RangeError(
                f"noise by itself would move a weight by {self.noise_in_weights(noise):.2g} (standard deviation)",
                hint="raise privacy.epsilon, or lower falcon.learning_rate or falcon.epochs",
            )

    def noise_in_weights(self, noise: Noise) -> float:
        """Return a bound of the standard deviation that noise adds to a weight in all steps together."""
        squares = 0.0
        for rows, batches in Counter(self.batch_rows).items():
            steps = (self.step(epoch, self.batch_rows.index(rows)) for epoch in range(self.epochs))
            squares += batches * sum((step.rate * noise.mean_gradient_std(step)) ** 2 for step in steps)
        return math.sqrt(squares) / (1 - self.optimiser.momentum_of)


def bits_of_opened_weight(kept_bits: int) -> int:
    """Return the most bits of one opened weight: its steps go from -WEIGHT_BOUND up to below WEIGHT_BOUND."""
    return math.ceil(math.log2(2 * WEIGHT_BOUND)) + kept_bits
