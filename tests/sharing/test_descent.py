"""Steps in shares agree with the same steps on plain numbers, within the bound that follows from the scales."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.sharing import field, products
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.dealing import Dealer, Item
from blindfit.algorithms.sharing.descent import Items, Labels, State, Step, move
from blindfit.algorithms.sharing.descent_scales import Scales
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.products import MaskedMatrix
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.waves import CHOICES
from tests.sharing.computing import TableOfAll, compute
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed, shared

Floats = NDArray[np.float64]
ROWS, COLUMNS, BATCH, BOUND = 240, 5, 60, 4.0
WAVES = CHOICES["medium"]


class Case:
    """A table of inputs, and the steps that train on it."""

    def __init__(
        self,
        *,
        n_parties: int = 2,
        macs: bool = True,
        rate: float = 0.25,
        steps: int = 8,
        model: Literal["logistic", "linear"] = "logistic",
        weighted: bool = False,
        **options: float,
    ):
        rng = np.random.default_rng(6)
        x = np.clip(rng.standard_normal((ROWS, COLUMNS)), -BOUND, BOUND)
        x[:, -1] = 1.0  # the intercept
        linear = model == "linear"
        residual_bound = 64.0 if linear else 4.0 if weighted else 1.0
        self.scales = Scales.fitting(batch_rows=BATCH, rate=rate, feature_bound=BOUND, residual_bound=residual_bound)
        self.integers = np.rint(x * 2**self.scales.feature_bits).astype(np.int64)
        self.x = self.integers / 2.0**self.scales.feature_bits
        scores = x @ [1.0, -2.0, 0.0, 0.5, 0.3] + rng.logistic(size=ROWS)
        bits = self.scales.waves.wave
        self.labels_put_in = np.rint(scores * 2.0**bits).astype(np.int64) if linear else (scores > 0).astype(np.int64)
        self.y = self.labels_put_in / 2.0**bits if linear else self.labels_put_in
        penalised = field.elements([1, 1, 1, 1, 0])
        step = {"l2": 0.0, "l1": 0.0, "momentum": 0.0, **options}
        self.steps = [
            Step(
                f"step {t}",
                BATCH,
                rate,
                step["l2"],
                step["momentum"],
                penalised,
                self.scales,
                WAVES,
                model,
                8 if weighted else None,
                step["l1"],
            )
            for t in range(steps)
        ]
        self.dealer, self.parties = dealt_to(n_parties, macs=macs)
        self.mask = products.mask_item("X", 0, (ROWS, COLUMNS))
        secrets = shared(self.integers, self.dealer, self.parties, "X")
        masks = [shares["u"] for shares in dealt(self.dealer, self.parties, self.mask)]
        difference = opened([secret - u for secret, u in zip(secrets, masks, strict=True)])
        self.matrices = [MaskedMatrix(difference, u) for u in masks]
        self.labels = shared(self.labels_put_in, self.dealer, self.parties, "y")
        self.row_weights = np.where(self.y > 0, 3.25, 0.75) if weighted else np.ones(ROWS)
        put_in = np.rint(self.row_weights * 2**8).astype(np.int64)
        self.shared_weights = shared(put_in, self.dealer, self.parties, "c") if weighted else None

    def batch(self, t: int) -> NDArray[np.int64]:
        return np.arange(t * BATCH, (t + 1) * BATCH) % ROWS

    def masked_rows(self, t: int) -> Elements:
        return field.contiguous(self.dealer.deal(self.mask)[0]["u"][self.batch(t)])

    def in_shares(self) -> tuple[Floats, TableOfAll]:
        dealer, case = self.dealer, self
        items = {item.name: item for t, step in enumerate(self.steps) for item in step_items(self, t, step)}

        async def train(party: Party, place: int) -> Share:
            zeros = party.holder.public(np.zeros(COLUMNS, dtype=np.uint64))
            state = State(zeros, zeros)
            for t, step in enumerate(case.steps):
                rows = case.matrices[place].rows(case.batch(t))
                given = None if case.shared_weights is None else case.shared_weights[place]
                labels = Labels(case.labels[place], given)[case.batch(t)]
                state, _ = await move(party, step, rows, labels, state)
            return state.weights

        found, table = compute(dealer, self.parties, train, items)
        weights = field.integers(reconstructed(found, dealer)) / 2.0**self.scales.weight_bits
        return weights, table

    def plain(self) -> Floats:
        w = velocity = np.zeros(COLUMNS)
        pull = np.array([1, 1, 1, 1, 0])
        for t, step in enumerate(self.steps):
            x, y = self.x[self.batch(t)], self.y[self.batch(t)]
            predicted = x @ w if step.model == "linear" else 1 / (1 + np.exp(-x @ w))
            gradient = x.T @ (self.row_weights[self.batch(t)] * (predicted - y)) / BATCH
            velocity = step.momentum * velocity - step.rate * (gradient + step.l2 * pull * w)
            before, threshold = w, step.rate * step.l1 * pull
            w = w + velocity
            w = np.sign(w) * np.maximum(np.abs(w) - threshold, 0)
            velocity = w - before
        return w

    def bound(self) -> float:
        """Bound how far the weights may be from the plain ones, in the 2-norm.

        A step adds at most rate max|x| times a residual's error, and a unit for each division; what was there before
        grows no faster than without errors: by 1 at most, the loss being convex and rate below 2 / largest curvature,
        and with momentum m a step's error goes on to 1 / (1 - m) of it.
        """
        step, scales = self.steps[0], self.scales
        lengths = np.linalg.norm(self.x, axis=1)
        largest = self.row_weights.max()
        assert step.rate * largest * (lengths**2).max() / 4 < 2
        if step.model == "linear":
            return self._linear_bound()
        factors = step.factor * WAVES.sigmoid
        residual = step.factor * WAVES.sigmoid_error + scales.waves.error(WAVES, factors) + 2.0**-scales.residual_bits
        residual = largest * residual + (largest > 1) * 2.0**-scales.residual_bits
        divisions = (
            (1 + bool(step.l2) + bool(step.l1) + bool(step.momentum)) * math.sqrt(COLUMNS) * 2.0**-scales.weight_bits
        )
        decays = math.sqrt(COLUMNS) * 2.0**-scales.decay_bits * 10
        each = BATCH * residual * lengths.max() + divisions + decays
        return len(self.steps) * each / (1 - step.momentum)

    def _linear_bound(self) -> float:
        """Bound the same for a linear model.

        A residual is off by its score's division, and by the rounding of rate / rows. The loss of a row has curvature 1
        in its score.
        """
        step, scales = self.steps[0], self.scales
        lengths = np.linalg.norm(self.x, axis=1)
        assert step.rate * np.linalg.eigvalsh(self.x.T @ self.x / ROWS).max() < 1.9
        largest = 2 * np.abs(self.y).max()  # largest residual; weights never pass twice the best ones
        residual = step.factor * 2.0**-scales.waves.wave + largest * 2.0 ** -(scales.waves.coefficient + 1)
        divisions = math.sqrt(COLUMNS) * 2.0**-scales.weight_bits
        return len(self.steps) * (BATCH * residual * lengths.max() + divisions)


def step_items(case: Case, t: int, step: Step) -> list[Item]:
    """Return the items as the dealer has them, who knows U."""
    return Items.of(step, lambda: case.masked_rows(t)).all


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l2": 0.1},
        {"momentum": 0.5},
        {"l2": 0.1, "momentum": 0.5},
        {"rate": 0.05, "steps": 20},
        {"model": "linear"},
        {"weighted": True, "rate": 0.1},
        {"l1": 0.1, "l2": 0.05},
    ],
    ids=str,
)
def test_weights_are_the_plain_ones_within_the_bound(options: dict[str, Any]) -> None:
    case = Case(**options)
    found, _ = case.in_shares()
    assert case.bound() < 0.02
    assert np.linalg.norm(found - case.plain()) <= case.bound()
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize("n_parties", [2, 3, 8])
@pytest.mark.parametrize("macs", [True, False])
def test_any_number_of_parties(n_parties: int, macs: bool) -> None:
    case = Case(n_parties=n_parties, macs=macs, steps=2)
    assert np.linalg.norm(case.in_shares()[0] - case.plain()) <= case.bound()


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_a_step_takes_four_rounds(model: Literal["logistic", "linear"]) -> None:
    _, table = Case(steps=3, l2=0.1, momentum=0.5, model=model).in_shares()
    assert len(table.rounds) == 3 * 4
    assert [sum(array.size for array in opened) for opened in table.rounds[:4]] == [COLUMNS, BATCH, BATCH, 3 * COLUMNS]


def test_a_soft_threshold_takes_eight_rounds_more_and_makes_zeros() -> None:
    case = Case(steps=8, l1=0.15)
    found, table = case.in_shares()
    assert len(table.rounds) == 8 * 12
    assert found[2] == case.plain()[2] == 0.0
    assert np.array_equal(found == 0, case.plain() == 0)
    assert found[1] < -0.1


def test_weights_of_rows_take_two_rounds_more() -> None:
    _, table = Case(steps=2, weighted=True).in_shares()
    assert len(table.rounds) == 2 * 6
    assert [sum(array.size for array in opened) for opened in table.rounds[2:4]] == [2 * BATCH, BATCH]


def test_what_is_opened_is_uniform_whatever_the_labels() -> None:
    """The test takes the top 3 bits of 2,400 openings of rounds 2 and 3.

    Their chi-square with 7 degrees of freedom is above 60 once in 1e10. No opening equals one for the other labels."""
    first, second = Case(steps=20), Case(steps=20)
    second.labels = shared(1 - second.y, second.dealer, second.parties, "y")
    seen = []
    for case in (first, second):
        _, table = case.in_shares()
        numbers = np.concatenate([round_[0] for n, round_ in enumerate(table.rounds) if n % 4 in (1, 2)])
        counts = np.bincount((numbers >> np.uint64(58)).astype(np.int64), minlength=8)
        assert ((counts - len(numbers) / 8) ** 2 / (len(numbers) / 8)).sum() < 60
        seen.append(set(numbers.tolist()))
    assert len(seen[0] & seen[1]) <= BATCH  # the first step's scores are 0 in both


# --- scales ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [16, 128, 2048, 65_536])
@pytest.mark.parametrize("rate", [0.001, 0.15, 1.0])
def test_no_sum_leaves_the_fields_middle(batch_rows: int, rate: float) -> None:
    scales = Scales.fitting(batch_rows=batch_rows, rate=rate, feature_bound=8.0)
    largest_residual = rate / batch_rows * (1 + WAVES.sigmoid_error) + scales.waves.error(WAVES, WAVES.sigmoid)
    gradient = batch_rows * 8.0 * min(largest_residual, 1.1 * rate / batch_rows) * 2.0 ** (scales.shift + 24)
    assert gradient < 2**59
    assert scales.shift > 0
    assert 64.0 * 2.0 ** (scales.weight_bits + scales.decay_bits) < 2**59


@pytest.mark.parametrize("batch_rows", [16, 128, 2048, 16_384])
@pytest.mark.parametrize("rate", [0.001, 0.15, 1.0])
def test_no_sum_of_a_linear_model_leaves_the_fields_middle(batch_rows: int, rate: float) -> None:
    scales = Scales.fitting(
        batch_rows=batch_rows, rate=rate, feature_bound=8.0, feature_bits=12, weight_bits=24, residual_bound=64.0
    )
    factor = round(rate / batch_rows * 2.0**scales.waves.coefficient)
    assert factor >= 2**10  # precise enough for a rate right to a thousandth
    feature, residual = 8 << scales.feature_bits, 64 << scales.waves.wave
    assert batch_rows * feature * residual * factor < 2**59
    assert scales.shift > 0


def test_batches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RangeError, match="batches of 16,777,216 rows of features up to 8 do not fit into the field"):
        Scales.fitting(batch_rows=2**24, rate=0.1, feature_bound=8.0)


def test_parties_derive_nothing() -> None:
    case = Case(steps=1)
    forward = Items.of(case.steps[0], case.matrices[0].dealer_mask).forward
    with pytest.raises(LocalProtocolError, match="only the dealer"):
        Dealer(case.dealer.seeds).deal(forward)[1]
