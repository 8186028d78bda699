"""Noise in shares has the right size and law, is all there, and no row moves a gradient further than allowed."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.privacy.audit import event_epsilon, greatest_bound
from blindfit.algorithms.privacy.gaussian import gaussian_epsilon
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.protocols.falcon import Held, Noise, noise
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.sharing.residual_bound import residual_bound
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.falcon.data_party import make_held
from tests.falcon.local import KEY_NODE, Case, Floats, train
from tests.privacy.noise_checks import faults_of_normal

ROW_BOUND = 2 << FEATURE_BITS
EPSILON, DELTA = 1.0, 1e-5


class Private(Case):
    """Clipped rows, every one of them trained on, in one batch or several."""

    def __init__(self, multiplier: float, *, batches: int = 1, epochs: int = 1, rows: int = 12, **options: Any) -> None:
        self.multiplier = multiplier
        size = rows // batches
        given = {"batch_rows": (size,) * batches, "validation_rows": 0, "test_rows": 0, "epochs": epochs, **options}
        super().__init__(rows=rows + 100, options=given)
        bounds = (ROW_BOUND,) * self.n_parties
        self.parameters = replace(self.parameters, noise=Noise(multiplier, bounds) if multiplier else None)
        self.features = [clip_integer_rows(block[:rows], ROW_BOUND) for block in self.features]
        self.labels = self.labels[:rows]

    def weights(self, **how: Any) -> Floats:
        trained = train(self, **how)
        return np.concatenate([trained[name].weights for name in self.parameters.data_parties])


# --- how much ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "epochs"), [(0.1, 1), (1.0, 20), (8.0, 7)])
def test_two_accountants_agree_on_all_epochs_together(epsilon: float, epochs: int) -> None:
    """A row is in one batch of each epoch."""
    multiplier = RunPrivacy(epsilon, DELTA, epochs).noise_multiplier()
    assert gaussian_epsilon(multiplier / math.sqrt(epochs), DELTA) == pytest.approx(epsilon, rel=1e-6)
    library = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL, epsilon / 1000)
    library.compose(dp_accounting.GaussianDpEvent(multiplier), epochs)
    assert library.get_epsilon(DELTA) == pytest.approx(epsilon, rel=0.01)


def test_each_party_has_the_whole_deviation_of_what_one_row_changes() -> None:
    case = Private(3.0)
    step = case.parameters.step(0, 0)
    largest = residual_bound(step.waves, step.scales.waves, step.factor)
    one_row = 2 * largest * math.sqrt(2 * ROW_BOUND**2)
    noises = case.parameters.noise
    assert noises is not None
    assert math.sqrt(noises.mechanism(step).sigma_squared) == pytest.approx(3 * one_row, rel=1e-12)
    of_all = math.sqrt(2) * 3 * one_row * 2.0 ** -(FEATURE_BITS + step.scales.residual_bits)
    assert noises.mean_gradient_std(step) * step.rate == pytest.approx(of_all)


def test_rows_of_several_parties_are_bounded_together() -> None:
    """Squares add up: another party cannot use what one party leaves of its bound."""
    case = Private(1.0)
    rows = np.hstack(case.features)
    noises = case.parameters.noise
    assert noises is not None
    assert (rows.astype(object) ** 2).sum(axis=1).max() <= noises.row_bound_squared == 2 * ROW_BOUND**2


def test_no_row_is_longer_than_its_bound_after_rounding() -> None:
    """0.1 is 409.6 steps, and so rounds up."""
    plan = SimpleNamespace(batches=[np.array([0])], validation=np.zeros(0, int), test=np.zeros(0, int))
    prepared: Any = SimpleNamespace(plan=plan, columns=np.full((1, 3), 0.1), labels=SimpleNamespace(y=None))
    parameters = Private(1.0).parameters
    bound = int(0.1 * math.sqrt(3) * 2**FEATURE_BITS)
    assert np.linalg.norm(make_held(prepared, parameters).features) > bound
    assert np.linalg.norm(make_held(prepared, parameters, bound).features) <= bound


# --- that it is there, of its law ------------------------------------------------------------------------------------


def test_all_parties_noise_and_nothing_else_moves_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, real = [], Noise.draw

    def kept(*given: Any) -> Any:
        drawn.append(real(*given))
        return drawn[-1]

    monkeypatch.setattr(Noise, "draw", kept)
    case = Private(20.0)
    found = case.weights()
    assert len(drawn) == 2
    summed = sum(noise.f.integers(one).astype(np.float64)[0] for one in drawn)
    grid = 2.0 ** -(FEATURE_BITS + case.parameters.scales.residual_bits)
    assert np.abs(found - (case.plain(1) - summed * grid)).max() < 1e-3
    assert np.abs(summed * grid).max() > 0.1


def test_the_noise_in_opened_weights_has_its_law() -> None:
    """The law is that of the sum over parties; a step that left noise out, or added it twice, would be noticed."""
    case = Private(20.0, macs=False)
    assert case.parameters.noise is not None
    step = case.parameters.step(0, 0)
    std = case.parameters.noise.mean_gradient_std(step) * step.rate
    samples = np.concatenate([case.weights() - case.plain(1) for _ in range(40)])
    assert not faults_of_normal(samples, std)
    assert faults_of_normal(samples, std / math.sqrt(2))


@pytest.mark.parametrize("epochs", [1, 3])
def test_every_step_of_every_epoch_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """Each number is drawn once, and moves the weights in the step that it was drawn for."""
    batches, drawn, real = 3, list[Floats](), Noise.draw

    def kept(*given: Any) -> Any:
        made = real(*given)
        drawn.append(noise.f.integers(made).astype(np.float64))
        return made

    monkeypatch.setattr(Noise, "draw", kept)
    case = Private(1.0, batches=batches, epochs=epochs, rows=24)
    found = case.weights()
    assert [one.shape for one in drawn] == [(batches, 7)] * (2 * epochs)  # noise of two parties
    assert len(np.unique(np.concatenate(drawn))) == 2 * epochs * batches * 7
    grid = 2.0 ** -(FEATURE_BITS + case.parameters.scales.residual_bits)
    of_steps = np.concatenate([drawn[2 * epoch] + drawn[2 * epoch + 1] for epoch in range(epochs)]) * grid
    expected = case.plain(epochs, of_steps)
    assert np.abs(found - expected).max() < 1e-3
    shared = of_steps.reshape(epochs, batches, 7)
    for number in range(batches):  # the weights if the batches of an epoch shared one noise
        of_one = np.repeat(shared[:, number : number + 1], batches, axis=1).reshape(-1, 7)
        assert np.abs(found - case.plain(epochs, of_one)).max() > 0.02


def test_nothing_is_opened_but_masked_numbers_and_the_weights() -> None:
    """Each step has four rounds, as without noise; the checks of the MACs are there, but no bit for an epoch."""
    trained = train(Private(5.0, batches=2, epochs=3, macs=False))
    assert {name: one.rounds for name, one in trained.items() if name != KEY_NODE} == dict.fromkeys(
        ("hospital", "laboratory"), 4 * 2 * 3 + 1
    )
    assert all(one.tested is None for one in trained.values())


# --- neighbours -------------------------------------------------------------------------------------------------------


def neighbours(multiplier: float) -> tuple[Private, Private]:
    """Return two cases in which one row's features and label are as far apart as possible."""
    one, other = Private(multiplier, macs=False), Private(multiplier, macs=False)  # the shares are the same with them
    for case, label in ((one, 0), (other, 1)):
        case.features = [block.copy() for block in case.features]
        for block in case.features:
            block[3] = 0
            block[3, 0] = ROW_BOUND
        case.labels = case.labels.copy()
        case.labels[3] = label
    return one, other


def test_no_row_moves_a_gradient_by_more_than_the_noise_is_made_for() -> None:
    """A first step moves the residual of a row by 1, of the 2 E that are allowed."""
    one, other = neighbours(0)
    moved = np.linalg.norm(one.weights() - other.weights())
    step = one.parameters.step(0, 0)
    allowed = 2 * residual_bound(step.waves, step.scales.waves, step.factor) * math.sqrt(2) * ROW_BOUND
    allowed *= 2.0 ** -(FEATURE_BITS + step.scales.residual_bits)
    assert 0.45 * allowed < moved <= allowed


def releases(case: Private, count: int) -> Floats:
    """Return the sum over both parties' columns in which they differ."""
    return np.array([case.weights(run=f"run-{number}")[[0, 4]].sum() for number in range(count)])


def test_neighbours_are_told_apart_by_no_more_than_epsilon() -> None:
    """Neighbours can be distinguished by at most epsilon, in the direction in which they differ.

    A noise that is far too small shows a larger epsilon. The event is known beforehand, so every release counts. If 64
    releases of each were distinguished without an error, the bound would be 1.3. The bound of honest releases passes
    epsilon by chance in less than 1e-6 of all runs: 4e-7 for each side.
    """
    honest, count, false_alarm = RunPrivacy(EPSILON, DELTA, 1).noise_multiplier(), 64, 4e-7
    low, high = sorted(releases(case, 1)[0] for case in neighbours(0))
    assert greatest_bound(count, delta=DELTA, false_alarm=false_alarm) > 1.2 * EPSILON

    def bound(multiplier: float) -> float:
        above = [int((releases(case, count) > (low + high) / 2).sum()) for case in neighbours(multiplier)]
        below = [count - each for each in above]
        events = [(above, above[::-1]), (below, below[::-1])]
        found = [event_epsilon(np.array(hits), np.array(other), count, DELTA, false_alarm) for hits, other in events]
        return float(np.max(found))

    assert bound(honest) <= EPSILON
    assert bound(honest / 10_000) > EPSILON


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_noise_has_its_room_in_the_field() -> None:
    """The waves have less of the field left."""
    bits = [Private(multiplier).parameters.scales.waves.result for multiplier in (0, 1.0, 1000.0)]
    assert bits[0] > bits[1] > bits[2]


@pytest.mark.parametrize(
    ("multiplier", "options", "said"),
    [
        (1e6, {}, "so much noise does not fit into the field"),
        (300.0, {"epochs": 50}, "noise by itself would move a weight by"),
        (1.0, {"validation_rows": 4}, "only weights are opened"),
        (1.0, {"kept_bits": 5}, "only weights are opened"),
    ],
)
def test_what_cannot_be_promised_is_refused(multiplier: float, options: dict[str, Any], said: str) -> None:
    with pytest.raises(RangeError, match=said):
        Private(multiplier, **options).parameters.check()


def test_noise_is_drawn_from_the_systems_generator() -> None:
    assert Held(np.zeros((1, 1), dtype=np.int64)).uniform is system_uniform
