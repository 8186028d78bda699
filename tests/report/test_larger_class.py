"""An accuracy stands next to that of always guessing the larger class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blindfit.algorithms.statistics.quality.evaluation import evaluate_classes
from blindfit.coordinator.report import quality
from blindfit.coordinator.report.evaluation import Evaluation
from blindfit.coordinator.terminal.wording import percent
from blindfit.parties.training.quality import Confusion, class_figures


@pytest.mark.parametrize("positives", [1, 5, 9])
def test_every_accuracy_has_its_base_rate(positives: int) -> None:
    labels = (np.arange(10) < positives).astype(float)
    evaluation = Evaluation(classes=class_figures(evaluate_classes(labels, np.linspace(0.9, 0.1, 10), 0.5)))
    share = max(positives, 10 - positives) / 10
    assert quality.in_short(evaluation).endswith(f"; always guessing the larger class: {share:.4f}")
    assert dict(quality.lines(evaluation))["Accuracy of always guessing the larger class"] == percent(share)
    (card,) = [card for card in quality.cards(evaluation) if card.label == "Accuracy"]
    assert f"always guessing the larger class: {share:.4f}" in card.note


def test_what_a_peer_counts_is_never_divided_by_nothing() -> None:
    nothing = Confusion(0, 0, 0, 0)
    assert nothing.larger_class == 0.0
    assert replace(nothing, true_positives=1).larger_class == 1.0
