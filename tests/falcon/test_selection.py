"""Options that are chosen by cross-validation in shares: the figures are those of plain steps, and little is opened."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, roc_auc_score

from blindfit.algorithms.errors import MalformedMessage, RangeError, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon import Progress
from blindfit.algorithms.protocols.falcon.messages import ChosenPoint
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.selection import MOST_SPREAD, LossSteps, Point, SelectionFigure
from blindfit.parties.wire import codec
from tests.falcon.local import KEY_NODE, Case, train
from tests.falcon.selecting import grid

FIGURES: dict[str, Any] = {"log_loss": log_loss, "accuracy": None, "auc": roc_auc_score, "mse": mean_squared_error}


def selecting(by: SelectionFigure, **options: Any) -> Case:
    chosen = options.pop("selection", None) or grid(by)
    return Case(n_parties=3, options={"test_rows": 0, "selection": chosen, **options})


def plain_figures(case: Case) -> list[tuple[list[float], float]]:
    """Return for each point the figure of each fold and that of all rows, by the same steps on plain numbers."""
    p, chosen = case.parameters, case.parameters.selection
    assert chosen is not None
    found = []
    for point in range(len(chosen.points)):
        each, labels, predicted = [], [], []
        for fold in range(chosen.folds):
            q, rows = p.fold(point, fold), p.fold_rows(fold)
            part = Case(case.n_parties, case.rows, options={"test_rows": 0})
            part.parameters = q
            part.features = [block[rows] for block in case.features]
            part.labels = case.labels[rows] << q.label_bits - p.label_bits
            z = (part.whole @ part.plain(q.epochs))[q.validation]
            y = part.y[q.validation]
            scores = z if p.is_linear else 1 / (1 + np.exp(-z))
            each.append(float(FIGURES[chosen.by](y, scores)) if chosen.by in ("log_loss", "mse") else 0.0)
            labels.append(y)
            predicted.append(scores)
        y, scores = np.concatenate(labels), np.concatenate(predicted)
        whole = accuracy_score(y, scores >= 0.5) if chosen.by == "accuracy" else FIGURES[chosen.by](y, scores)
        found.append((each, float(whole)))
    return found


@pytest.mark.parametrize("by", FIGURES)
@pytest.mark.parametrize("macs", [True, False])
def test_figures_are_those_of_plain_steps_within_their_rounding(by: SelectionFigure, macs: bool) -> None:
    options = {"model": "linear", "selection": grid("mse", rate=0.1)} if by == "mse" else {}
    case = selecting(by, macs=macs, **options)
    trained, expected = train(case), plain_figures(case)
    selected = trained["hospital"].selected
    assert selected is not None
    assert selected.figures is not None
    n, steps = case.parameters.train_rows, LossSteps(case.parameters.train_rows, 3)
    for figure, (each, whole) in zip(selected.figures, expected, strict=True):
        if by in ("log_loss", "mse"):
            assert figure.value == pytest.approx(np.mean(each), abs=2.0 ** (1 - steps.mean_bits))
            error = np.std(each, ddof=1) / math.sqrt(3)
            assert figure.error**2 == pytest.approx(error**2, abs=steps.error(2) ** 2)
        else:
            assert figure.value == pytest.approx(whole, abs=0.02 if by == "accuracy" else 0.01)
            assert 0 < figure.error < 1 / math.sqrt(n)
    best = max if by in ("accuracy", "auc") else min
    values = [figure.value for figure in selected.figures]
    assert selected.point == values.index(best(values))
    others = [one.selected for name, one in trained.items() if name != "hospital"]
    assert [(one.point, one.figures) for one in others if one] == [(selected.point, None)] * 3


def test_the_final_training_is_the_one_of_the_chosen_options() -> None:
    case = selecting("log_loss", patience=0)
    chosen = train(case)
    point = chosen["hospital"].selected
    assert point is not None
    assert point.point == 1
    alone = Case(n_parties=3, options={"test_rows": 0, "patience": 0})
    alone.parameters = replace(case.parameters.at(point.point))
    for name, trained in train(alone).items():
        np.testing.assert_allclose(chosen[name].weights, trained.weights, atol=1e-3)


def test_a_point_that_diverges_ends_the_job_and_is_named() -> None:
    fast = Point((("learning_rate", 500.0),), OptimiserSettings(learning_rate=500.0, l2=0.0), 4)
    chosen = replace(grid(), points=(grid().points[0], fast))
    with pytest.raises(ScoresOutOfRange, match=r"epoch \d of grid point 2, fold 1: "):
        train(selecting("log_loss", selection=chosen, waves_name="narrow"))


def test_a_point_that_the_grid_does_not_have_is_refused_by_every_party() -> None:
    def change(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        return codec.encode(ChosenPoint(3)) if step == "ChosenPoint" else data

    with pytest.raises(MalformedMessage, match="hospital sent a malformed message: point: is not in the grid"):
        train(selecting("accuracy"), wire=change)


def test_folds_of_few_rows_are_refused_with_what_would_do() -> None:
    with pytest.raises(RangeError, match=r"16 rows of a fold .* than 17") as refused:
        train(Case(rows=260, batches=1, options={"test_rows": 0, "selection": grid(folds=10)}))
    assert refused.value.hint == "set select.folds = 5, or use at least 170 training rows"


@pytest.mark.parametrize("folds", [3, 5, 10])
@pytest.mark.parametrize("rows", [170, 455, 10_000, 1_000_000])
def test_a_mean_loss_has_steps_of_a_quarter_of_its_standard_error_and_as_few_values_as_counted(
    folds: int, rows: int
) -> None:
    steps = LossSteps(rows, folds)
    quarter = 0.5 / math.sqrt(rows) / 4
    assert quarter <= 2.0**-steps.mean_bits <= 2 * quarter
    numbers = {steps.round_folds([loss] * folds) for loss in np.linspace(-1, 9, 2000)}
    assert len({mean for mean, _ in numbers}) <= 2 ** (steps.bits - math.log2(MOST_SPREAD + 2))
    wide = [steps.round_folds([0.0] * (folds - 1) + [loss])[1] for loss in np.linspace(0, 9, 2000)]
    assert 0 <= min(wide) < max(wide) <= MOST_SPREAD


def test_progress_says_which_point_and_fold_is_trained() -> None:
    steps: list[str] = []
    case = selecting("accuracy")
    train(case, progress={KEY_NODE: Progress(), "hospital": Progress(report=lambda step, *_: steps.append(step))})
    told = list(dict.fromkeys(steps))
    assert "point 2 of 3, fold 3 of 3, epoch 4" in told
    assert told.index("point 3 of 3, fold 3 of 3, epoch 4") < told.index("compare grid points") < told.index("epoch 1")
