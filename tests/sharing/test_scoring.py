"""Figures of a model's quality in shares are compared with those of plain scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from blindfit.algorithms.sharing import field, scoring
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.lookup import count
from blindfit.algorithms.sharing.scoring import BINS, loss_scales
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.waves import CHOICES
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

Floats = NDArray[np.float64]
SCORE_BITS, WAVES = 40, CHOICES["medium"]
ROWS = 400


def scored(seed: int = 5, spread: float = 3.0) -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    z = spread * rng.standard_normal(ROWS)
    return z, (z + 2 * rng.logistic(size=ROWS) > 0.5).astype(np.int64)


def in_shares(z: Floats, y: NDArray[np.int64], threshold: float = 0.5, n_parties: int = 2) -> dict[str, float]:
    dealer, parties = dealt_to(n_parties)
    scores = shared(np.rint(z * 2.0**SCORE_BITS).astype(np.int64), dealer, parties, "z")
    labels = shared(y, dealer, parties, "y")
    scales = loss_scales(len(z), SCORE_BITS)
    half = len(z) // 2

    async def evaluate(party: Party, place: int) -> Share:
        parts = [
            await scoring.counts(party, f"part {i}", scores[place][part], labels[place][part], WAVES, scales, threshold)
            for i, part in enumerate((slice(0, half), slice(half, len(z))))
        ]
        counts = parts[0] + parts[1]
        ranks = await scoring.ranks(party, "ranks", counts.bins, ROWS)
        return scoring.join([counts.confusion, counts.loss, ranks.auc, ranks.ks, counts.bins])

    found, _ = compute(dealer, parties, evaluate)
    numbers = field.integers(reconstructed(found, dealer))
    pairs = int(y.sum()) * int((1 - y).sum())
    assert numbers[5:].sum() == len(z)
    assert numbers[5 + BINS :].sum() == y.sum()
    return {
        "true_positives": int(numbers[0]),
        "positives": int(numbers[1]),
        "loss": numbers[2] / 2.0 ** (scales.result + 1) / len(z),
        "auc": numbers[3] / 2 / pairs,
        "ks": numbers[4] / pairs,
    }


def plain_ks(z: Floats, y: NDArray[np.int64]) -> float:
    order = np.argsort(z)
    up = np.cumsum(y[order]) / y.sum() - np.cumsum(1 - y[order]) / (1 - y).sum()
    return float(np.abs(up).max())


@pytest.mark.parametrize(("threshold", "n_parties"), [(0.5, 2), (0.2, 3)])
def test_figures_are_those_of_the_plain_scores(threshold: float, n_parties: int) -> None:
    z, y = scored()
    found = in_shares(z, y, threshold, n_parties)
    called = z >= np.log(threshold / (1 - threshold))
    assert (found["true_positives"], found["positives"]) == ((called & (y == 1)).sum(), called.sum())
    p = 1 / (1 + np.exp(-z))
    # Waves and their rounding: the fit's error, and a sum's error for each row.
    scales = loss_scales(ROWS, SCORE_BITS)
    bound = WAVES.log_cosh_error + scales.error(WAVES, WAVES.log_cosh[1:]) + 2.0**-scales.result
    assert found["loss"] == pytest.approx(log_loss(y, p), abs=bound)
    assert bound < 3e-3
    assert found["auc"] == pytest.approx(roc_auc_score(y, p), abs=binning(z, y))
    assert found["ks"] == pytest.approx(plain_ks(z, y), abs=2 * most_in_two_bins(z, y))


def binning(z: Floats, y: NDArray[np.int64]) -> float:
    """Bound the error of an AUC by bins.

    A pair whose bins are less than two apart may count for half more or less; a pair torn apart by chance, for one."""
    bins = np.floor(254 / (1 + np.exp(-z / 3)))
    near = np.abs(bins[y == 1][:, None] - bins[y == 0][None, :]) <= 1
    return float(near.mean())


def most_in_two_bins(z: Floats, y: NDArray[np.int64]) -> float:
    """Return the largest share of either class in two bins: that much may be counted on the other side of a border."""
    bins = np.floor(254 / (1 + np.exp(-z / 3))).astype(int)
    of_class = [np.bincount(bins[y == label], minlength=256) / (y == label).sum() for label in (0, 1)]
    return float(max(np.convolve(each, [1, 1]).max() for each in of_class))


def test_scores_past_the_waves_are_clipped_and_count() -> None:
    z, y = scored()
    z[:4] = [200.0, -500.0, 30.0, -29.0]
    y[:4] = [1, 0, 0, 1]
    found = in_shares(z, y)
    clipped = np.clip(z, -24, 24)
    assert found["positives"] == (z >= 0).sum()
    assert found["loss"] == pytest.approx(log_loss(y, 1 / (1 + np.exp(-clipped))), abs=3e-3)
    assert found["auc"] == pytest.approx(roc_auc_score(y, z), abs=binning(clipped, y))


def test_binning_blurs_little() -> None:
    z, y = scored(spread=1.5)
    assert binning(z, y) < 0.03


def test_one_class_alone_gives_counts() -> None:
    dealer, parties = dealt_to(2)
    bins = shared(np.concatenate([np.arange(BINS), np.zeros(BINS, np.int64)]), dealer, parties)

    async def evaluate(party: Party, place: int) -> Share:
        ranks = await scoring.ranks(party, "ranks", bins[place], sum(range(BINS)))
        return scoring.join([ranks.auc, ranks.ks])

    found, _ = compute(dealer, parties, evaluate)
    assert not reconstructed(found, dealer).any()


def test_counting_in_bins_is_exact() -> None:
    rng = np.random.default_rng(2)
    q = rng.integers(0, 16, 300)
    dealer, parties = dealt_to(3)
    secrets = shared(q, dealer, parties)

    async def count_one(party: Party, place: int) -> Share:
        return await count(party, "bins", secrets[place], 16)

    found, table = compute(dealer, parties, count_one)
    assert np.array_equal(reconstructed(found, dealer), np.bincount(q, minlength=16))
    assert len(table.rounds) == 1


def test_weights_are_clipped_and_rounded_to_a_step() -> None:
    w = np.array([0.0, 0.3, -0.3, 3.99, -3.99, 4.0, -4.0, 7.5, -60.0])
    dealer, parties = dealt_to(2)
    secrets = shared(np.rint(w * 2.0**24).astype(np.int64), dealer, parties)

    async def rounded(party: Party, place: int) -> Share:
        return await scoring.round_weights(party, "weights", secrets[place], 24, 5, 4.0)

    found, table = compute(dealer, parties, rounded)
    steps = field.integers(reconstructed(found, dealer))
    assert np.all(np.abs(steps / 32 - np.clip(w, -4, 4 - 1 / 32)) < 1 / 32)
    assert steps.min() == -128
    assert steps.max() == 127
    assert len(table.rounds) == 9
