"""Sigmoid and log loss of secret scores, within the bound that is derived for their scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.sharing import field, waves
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.truncation import mask
from blindfit.algorithms.sharing.waves import CHOICES, Waves, WaveScales
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed, shared

NAMES = pytest.mark.parametrize("name", CHOICES)
FITS = {"narrow": (1.8e-5, 4.5e-6), "medium": (2.4e-5, 6.6e-6), "wide": (2.8e-5, 7.8e-6)}
LARGEST = {"narrow": (0.62, 4.1), "medium": (0.64, 8.1), "wide": (0.64, 16.5)}


@NAMES
def test_fits_are_as_close_as_published_and_their_coefficients_small(name: str) -> None:
    chosen = CHOICES[name]
    assert chosen.sigmoid_error <= FITS[name][0]
    assert chosen.log_cosh_error <= FITS[name][1]
    assert np.abs(chosen.sigmoid).max() <= LARGEST[name][0]
    assert np.abs(chosen.log_cosh).max() <= LARGEST[name][1]


def test_without_the_cut_coefficients_grow() -> None:
    assert np.abs(Waves(56.0, 128, 64).sigmoid).max() > 100


@NAMES
@pytest.mark.parametrize("scales", [WaveScales(), WaveScales(wave=12, coefficient=16)], ids=["17+20", "12+16"])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_in_shares_they_stay_within_the_derived_bound(name: str, scales: WaveScales, n_parties: int) -> None:
    chosen = CHOICES[name]
    scales.check(chosen)
    z = np.linspace(-chosen.bound, chosen.bound, 2001)
    x = np.rint(z * 2**scales.score).astype(np.int64)
    dealer, parties = dealt_to(n_parties)
    item = waves.waves_item("1", x.shape, chosen, scales, shift=20)
    shares = dealt(dealer, parties, item)
    secrets = shared(x, dealer, parties)
    c = opened([mask(p.holder, s, t["r"]) for p, s, t in zip(parties, secrets, shares, strict=True)])
    exact = x / 2**scales.score

    def found(of: Callable[..., Share]) -> np.ndarray:
        parts = [of(p.holder, t, c, chosen, scales) for p, t in zip(parties, shares, strict=True)]
        return field.integers(reconstructed(parts, dealer)) / 2.0**scales.result

    sigmoid_bound = chosen.sigmoid_error + scales.error(chosen, chosen.sigmoid)
    assert np.abs(found(waves.sigmoid) - 1 / (1 + np.exp(-exact))).max() <= sigmoid_bound
    log_cosh_bound = chosen.log_cosh_error + scales.error(chosen, chosen.log_cosh[1:])
    assert np.abs(found(waves.log_cosh) - np.logaddexp(exact / 2, -exact / 2)).max() <= log_cosh_bound
    assert sigmoid_bound < (2e-4 if scales == WaveScales() else 2e-3)


def test_past_the_bound_the_value_is_wrong() -> None:
    """The value is right only up to half the period, so scores must keep the bound."""
    chosen = CHOICES["medium"]
    far = 0.5 + np.sin(2 * np.pi / chosen.period * 30 * np.arange(1, chosen.count + 1)) @ chosen.sigmoid
    assert far < 0.95


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RangeError, match="do not fit into the field"):
        WaveScales(wave=28, coefficient=28).check(CHOICES["medium"])
    with pytest.raises(RangeError, match="do not fit into the field"):
        WaveScales(score=58).check(CHOICES["medium"])
