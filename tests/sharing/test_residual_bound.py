"""No residual is larger than the noise covers, for any score, even past every range."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import field, waves
from blindfit.algorithms.sharing.residual_bound import largest_swing, residual_bound
from blindfit.algorithms.sharing.truncation import mask
from blindfit.algorithms.sharing.waves import CHOICES, WaveScales
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed, shared

NAMES = pytest.mark.parametrize("name", CHOICES)


@NAMES
def test_the_swing_over_a_whole_period_is_bounded_closely(name: str) -> None:
    chosen = CHOICES[name]
    angles = np.linspace(0, 2 * np.pi, 60_001)
    largest = np.abs(np.sin(np.outer(angles, np.arange(1, chosen.count + 1))) @ chosen.sigmoid).max()
    assert largest <= largest_swing(chosen) <= largest + 1e-4


def test_the_widest_waves_overshoot_by_most() -> None:
    assert largest_swing(CHOICES["wide"]) - 0.5 == pytest.approx(7.6e-3, rel=0.01)


@NAMES
@pytest.mark.parametrize("scales", [WaveScales(), WaveScales(wave=10, coefficient=14)], ids=["17+20", "10+14"])
def test_no_residual_in_shares_passes_its_bound(name: str, scales: WaveScales) -> None:
    """The scores are in range, between the bound and the end of the period, and anywhere in the field."""
    chosen, factor = CHOICES[name], 0.75
    near = np.rint(np.linspace(-chosen.period, chosen.period, 2000) * 2**scales.score).astype(np.int64)
    x = np.concatenate([near, np.random.default_rng(1).integers(-(2**60), 2**60 - 1, 2000)])
    dealer, parties = dealt_to(2)
    shares = dealt(dealer, parties, waves.waves_item("1", x.shape, chosen, scales, shift=20))
    c = opened([mask(p.holder, s, t["r"]) for p, s, t in zip(parties, shared(x, dealer, parties), shares, strict=True)])
    p = [waves.sigmoid(p.holder, t, c, chosen, scales, factor=factor) for p, t in zip(parties, shares, strict=True)]
    found = field.integers(reconstructed(p, dealer))
    bound = residual_bound(chosen, scales, factor)
    largest = max(np.abs(found).max(), np.abs(found - round(factor * 2.0**scales.result)).max())
    assert 0.95 * bound < largest <= bound


def test_a_coarser_grid_counts_more_for_rounding() -> None:
    chosen = CHOICES["wide"]
    fine, coarse = WaveScales(wave=17, coefficient=20), WaveScales(wave=8, coefficient=12)
    relative = [residual_bound(chosen, scales, 1.0) / 2.0**scales.result for scales in (fine, coarse)]
    assert 0.5 + largest_swing(chosen) < relative[0] < relative[1] < 1.5
