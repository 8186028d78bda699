"""Figures of noisy sums beside those of the labels themselves, and what one label may do to a sum."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics import metrics
from blindfit.algorithms.statistics.logistic import Floats, sigmoid
from blindfit.algorithms.statistics.released_evaluation import FIGURES, FigureName, ScoredRows
from tests.each_case import each_case

BINS = 12


def scored(n: int = 4000, seed: int = 1, figures: tuple[FigureName, ...] = FIGURES) -> tuple[ScoredRows, Floats]:
    drawn = np.random.default_rng(seed)
    scores = 1.2 * drawn.normal(size=n) - 0.5
    labels = (drawn.random(n) < sigmoid(scores)).astype(np.float64)
    return ScoredRows.of(scores, 2.5, figures, BINS), labels


def of_labels(rows: ScoredRows, labels: Floats) -> dict[str, float]:
    chances = sigmoid(rows.scores)
    positive, negative = (np.bincount(rows.bins, weights=of, minlength=BINS) for of in (labels, 1 - labels))
    shares = [np.cumsum(of) / of.sum() for of in (positive, negative)]
    return {
        "log_loss": metrics.log_loss(labels, chances),
        "normalised_entropy": metrics.normalised_entropy(labels, chances),
        "accuracy": metrics.accuracy(labels, chances),
        "positive_rate": float(labels.mean()),
        "mean_prediction": float(chances.mean()),
        "auc": float(roc_auc_score(labels, rows.bins)),
        "ks": float(np.abs(shares[0] - shares[1]).max()),
    }


def test_without_noise_they_are_the_figures_of_the_labels() -> None:
    rows, labels = scored()
    found = rows.evaluated(labels @ rows.columns(), 0.0, np.random.default_rng(0))
    wanted = of_labels(rows, labels)
    assert found.keys() == wanted.keys()
    for name, figure in found.items():
        assert figure.value == pytest.approx(wanted[name], abs=1e-12), name
        assert figure.high - figure.low == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("noise_std", [4.0, 12.0])
def test_ranges_hold_the_figures(noise_std: float) -> None:
    """In 95 of 100; 240 of 300 would be an event of 1e-20."""
    rows, labels = scored()
    exact, wanted, drawn = labels @ rows.columns(), of_labels(rows, labels), np.random.default_rng(3)
    held = dict.fromkeys(("log_loss", "accuracy", "positive_rate", "auc", "ks"), 0)
    for _ in range(300):
        found = rows.evaluated(exact + noise_std * drawn.normal(size=len(exact)), noise_std, drawn)
        for name in held:
            held[name] += found[name].low <= wanted[name] <= found[name].high
    assert min(held.values()) > 240, held


@each_case("figures", [FIGURES, ("log_loss",), ("auc",), ("calibration", "accuracy")])
def test_a_label_moves_the_sum_by_its_row_alone_and_rows_have_norm_1(figures: tuple[FigureName, ...]) -> None:
    rows, _ = scored(figures=figures)
    norms = np.linalg.norm(rows.columns(), axis=1)
    assert norms.max() <= 1 + 1e-12
    assert norms.max() > 0.99


def test_figures_alone_have_less_noise_than_together() -> None:
    together, labels = scored()
    alone, _ = scored(figures=("log_loss",))
    widths = []
    for rows in (together, alone):
        loss = rows.evaluated(labels @ rows.columns(), 4.0, np.random.default_rng(0))["log_loss"]
        widths.append(loss.high - loss.low)
    assert widths[0] == pytest.approx(2 * widths[1])


def test_the_order_of_figures_changes_nothing() -> None:
    assert scored(figures=("auc", "log_loss"))[0].figures == ("log_loss", "auc")


@each_case("labels", [np.zeros(4000), np.ones(4000)])
@each_case("noise_std", [0.0, 50.0])
def test_one_class_or_much_noise_is_no_error(labels: Floats, noise_std: float) -> None:
    rows, _ = scored()
    sums = labels @ rows.columns() + noise_std * np.random.default_rng(1).normal(size=BINS + 3)
    found = rows.evaluated(sums, noise_std, np.random.default_rng(0))
    for name in ("auc", "ks"):
        assert 0 <= found[name].low <= found[name].high <= 1


def test_bins_are_equally_large_and_follow_the_score() -> None:
    rows, _ = scored()
    counts = np.bincount(rows.bins)
    assert counts.max() - counts.min() <= 1
    assert (np.diff(rows.bins[np.argsort(rows.scores, kind="stable")]) >= 0).mean() > 0.99  # ties of clipped scores


@each_case(("figures", "bound"), [((), 1.0), (("auc", "auc"), 1.0), (("auc",), 0.0), (("auc",), np.inf)])
def test_what_cannot_be_evaluated(figures: tuple[FigureName, ...], bound: float) -> None:
    with pytest.raises(ConfigError):
        ScoredRows.of(np.zeros(5), bound, figures, 2)
