"""A page's statements about a model's quality."""

from __future__ import annotations

from blindfit.coordinator.report.evaluation import Evaluation
from blindfit.coordinator.report.quality import FIGURES_OUT_OF_FOLD, remark, warn_of_no_gain
from blindfit.coordinator.taylor.plots import loss_plot
from blindfit.parties.training.quality import ClassFigures, Confusion, ValueFigures
from tests.each_case import each_case


@each_case(
    ("slope", "said"),
    [
        (2.5, "log odds x 2.5 -0.1: as trained, log odds were 40% of their right size: too cautious"),
        (0.5, "log odds x 0.5 -0.1: as trained, log odds were 200% of their right size: too sure"),
        (1.05, "log odds x 1.05 -0.1: as trained, log odds were nearly right"),
    ],
)
def test_calibration_is_a_sentence(slope: float, said: str) -> None:
    classes = ClassFigures(
        rows=100,
        auc=0.9,
        ks=0.7,
        log_loss=0.3,
        accuracy=0.8,
        threshold=0.5,
        confusion=Confusion(40, 10, 40, 10),
        slope=slope,
        offset=-0.1,
        log_loss_before=0.4,
    )
    assert remark(Evaluation(classes=classes)) == f"Calibrated: {said}. {FIGURES_OUT_OF_FOLD}"


BASE = 0.6365  # log loss of one probability for all rows, at a third of positives


@each_case(
    ("figures", "said"),
    [
        ({"log_loss": BASE - 1e-3}, ""),
        ({"log_loss": BASE + 1e-3}, "log loss is 0.6375; one probability for every row would have 0.6365"),
        ({"log_loss": float("inf")}, "log loss is inf"),
        ({"log_loss": float("nan")}, "log loss is nan"),
    ],
)
def test_a_model_that_is_no_better_than_a_constant_is_a_caution(figures: dict[str, float], said: str) -> None:
    cells = Confusion(50, 50, 150, 50)
    classes = ClassFigures(rows=300, auc=0.5, ks=0.1, accuracy=0.6, threshold=0.5, confusion=cells, **figures)
    caution = warn_of_no_gain(Evaluation(classes=classes), "Do this.")
    assert bool(caution) == bool(said)
    assert said in caution
    assert not said or caution.endswith("the training has diverged. Do this.")


@each_case(("r2", "warned"), [(0.01, False), (0.0, True), (-1e300, True), (float("nan"), True)])
def test_so_is_a_regression_that_explains_nothing(r2: float, warned: bool) -> None:
    assert bool(warn_of_no_gain(Evaluation(values=ValueFigures(rows=9, mse=1.0, r2=r2)), "Do this.")) == warned


def test_there_is_no_such_caution_without_figures() -> None:
    assert warn_of_no_gain(None, "") == warn_of_no_gain(Evaluation(), "") == ""


def test_a_loss_that_hardly_changes_looks_so() -> None:
    """The axis begins at 0."""
    plot = loss_plot([0.032, 0.028, 0.024], 100)
    assert plot is not None
    assert ">0.000<" in plot.svg
