"""Figures of noisy sums compared with those of the labels themselves, and the effect of one label on a sum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.metrics import roc_auc_score

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.gaussian import noise_multiplier
from blindfit.algorithms.statistics.linear.logistic import Floats, sigmoid
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.walr.evaluation import FIGURES, FigureName, ScoredRows
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
    found = rows.evaluate(labels @ rows.columns(), 0.0, np.random.default_rng(0))
    wanted = of_labels(rows, labels)
    assert found.keys() == wanted.keys()
    for name, figure in found.items():
        assert figure.value == pytest.approx(wanted[name], abs=1e-12), name
        assert figure.high - figure.low == pytest.approx(0, abs=1e-12)


RANGED = ("log_loss", "normalised_entropy", "accuracy", "positive_rate", "auc", "ks")
DRAWS = 300
LEAST_HELD = int(stats.binom.ppf(1e-8, DRAWS, 0.95))  # a range of 95% holds 260 times; fewer once in 10^8


def few_rows(n: int, rate: float) -> tuple[Floats, Floats]:
    """Return scores, and labels drawn from them, with this rate of positives."""
    drawn = np.random.default_rng(1)
    spread = 1.2 * drawn.normal(size=n)
    scores = spread + optimize.brentq(lambda shift: float(sigmoid(spread + shift).mean()) - rate, -20, 20)
    return scores, (drawn.random(n) < sigmoid(scores)).astype(np.float64)


def held_by_ranges(rows: ScoredRows, labels: Floats, noise_std: float) -> dict[str, int]:
    """Count the draws of the noise in which each range holds the true figure."""
    exact = labels @ rows.columns()
    true, drawn = rows.evaluate(exact, 0.0, np.random.default_rng(0)), np.random.default_rng(7)
    held: dict[str, int] = {}
    for _ in range(DRAWS):
        found = rows.evaluate(exact + noise_std * drawn.normal(size=len(exact)), noise_std, np.random.default_rng(0))
        for name in set(RANGED) & set(found):
            assert found[name].low <= found[name].value <= found[name].high
            held[name] = held.get(name, 0) + (found[name].low <= true[name].value <= found[name].high)
    return held


@each_case(
    ("n", "rate", "figures"),
    [(300, 0.25, FIGURES), (300, 0.25, ("auc",)), (1000, 0.15, FIGURES), (3000, 0.14, ("auc",))],
)
def test_ranges_hold_the_figures_of_few_rows(n: int, rate: float, figures: tuple[FigureName, ...]) -> None:
    """They hold in 95 of 100 draws, at epsilon 1 and 20 bins: at least 15 rows in each, and a noise of 8."""
    scores, labels = few_rows(n, rate)
    rows = ScoredRows.of(scores, float(np.quantile(np.abs(scores), 0.99)), figures, 20)
    held = held_by_ranges(rows, labels, noise_multiplier("analytic", 1.0, 1e-6))
    assert held.keys() == (set(RANGED) if figures == FIGURES else {"auc", "ks"})
    assert min(held.values()) >= LEAST_HELD, held


@each_case("noise_std", [4.0, 12.0])
def test_ranges_hold_the_figures_of_many_rows(noise_std: float) -> None:
    rows, labels = scored()
    assert min(held_by_ranges(rows, labels, noise_std).values()) >= LEAST_HELD


def test_the_noise_of_a_constants_loss_is_in_the_range() -> None:
    """Scores are clipped to 1, which makes this noise four times as large as that of the loss."""
    scores, labels = few_rows(3000, 0.02)
    rows = ScoredRows.of(scores, 1.0, ("log_loss", "calibration"), 20)
    assert held_by_ranges(rows, labels, 4.2)["normalised_entropy"] >= LEAST_HELD


def test_a_range_of_bins_is_no_wider_than_noise_makes_it() -> None:
    """With very many rows the figures are almost linear in the noise, which then gives the range of the AUC."""
    rows, labels = scored(200_000, figures=("auc",))
    exact, drawn = labels @ rows.columns(), np.random.default_rng(2)
    found = [rows.evaluate(exact + 4 * drawn.normal(size=BINS), 4.0, np.random.default_rng(0)) for _ in range(200)]
    for name, most in (("auc", 1.25), ("ks", 2.0)):  # the spread of 200 is known to 5%
        spread = float(np.std([figures[name].value for figures in found]))
        width = float(np.mean([figures[name].high - figures[name].low for figures in found]))
        assert 0.75 < width / (2 * 1.96 * spread) < most, name


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
        loss = rows.evaluate(labels @ rows.columns(), 4.0, np.random.default_rng(0))["log_loss"]
        widths.append(loss.high - loss.low)
    assert widths[0] == pytest.approx(2 * widths[1])


def test_the_order_of_figures_changes_nothing() -> None:
    assert scored(figures=("auc", "log_loss"))[0].figures == ("log_loss", "auc")


@each_case("labels", [np.zeros(4000), np.ones(4000)])
@each_case("noise_std", [0.0, 50.0])
def test_one_class_or_much_noise_is_no_error(labels: Floats, noise_std: float) -> None:
    rows, _ = scored()
    sums = labels @ rows.columns() + noise_std * np.random.default_rng(1).normal(size=BINS + 3)
    found = rows.evaluate(sums, noise_std, np.random.default_rng(0))
    for name in ("auc", "ks"):
        assert 0 <= found[name].low <= found[name].high <= 1


@each_case("n", [1, 2])
def test_hardly_a_row_tells_nothing_of_bins(n: int) -> None:
    rows = ScoredRows.of(np.linspace(-1, 1, n), 1.0, FIGURES, n)
    found = rows.evaluate(np.ones(n) @ rows.columns(), 4.0, np.random.default_rng(0))
    for name in ("auc", "ks"):
        assert (found[name].low, found[name].high) == (0, 1)


def test_bins_are_equally_large_and_follow_the_score() -> None:
    rows, _ = scored()
    counts = np.bincount(rows.bins)
    assert counts.max() - counts.min() <= 1
    assert (np.diff(rows.bins[np.argsort(rows.scores, kind="stable")]) >= 0).mean() > 0.99  # ties of clipped scores


@each_case(("figures", "bound"), [((), 1.0), (("auc", "auc"), 1.0), (("auc",), 0.0), (("auc",), np.inf)])
def test_what_cannot_be_evaluated(figures: tuple[FigureName, ...], bound: float) -> None:
    with pytest.raises(ConfigError):
        ScoredRows.of(np.zeros(5), bound, figures, 2)
