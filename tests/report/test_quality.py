"""What a page says of a model's quality."""

from __future__ import annotations

from blindfit.coordinator.report.evaluation import ClassFigures, Evaluation
from blindfit.coordinator.report.quality import remark
from blindfit.coordinator.report.vertical.plots import loss_plot
from tests.each_case import each_case


@each_case(
    ("slope", "said"),
    [
        (2.5, "log odds x 2.5 -0.1: as trained they were 40 % of what they should be, so too cautious"),
        (0.5, "log odds x 0.5 -0.1: as trained they were 200 % of what they should be, so too sure"),
        (1.05, "log odds x 1.05 -0.1: as trained they were nearly right"),
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
        slope=slope,
        offset=-0.1,
        log_loss_before=0.4,
    )
    assert remark(Evaluation(classes=classes)) == f"Calibrated: {said}."


def test_a_loss_that_hardly_changes_looks_so() -> None:
    """Its axis begins at 0."""
    plot = loss_plot([0.032, 0.028, 0.024], 100)
    assert plot is not None
    assert ">0.000<" in plot.svg
