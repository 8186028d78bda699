"""Slope and offset come from five sums under the mask: their terms, their readers, and a lying key node's power."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from blindfit.algorithms.errors import ConfigError, MalformedMessage
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols.taylor.calibration import STEPS_OF_A_UNIT, Moments, fit_moments
from blindfit.algorithms.protocols.taylor.messages import Calibration, CalibrationSums
from blindfit.algorithms.statistics.linear.platt import IDENTITY, Platt
from tests.each_case import each_case
from tests.taylor.seats import KEY_NODE, Case, Tap, case_of, replaced

MASKED: dict[str, Any] = {"masked": True, "calibrate": True, "held_out_rows": 80, "epochs": 2}
CASES: dict[str, dict[str, Any]] = {
    "one passive party": {},
    "four passive parties": {"n_passive": 4},
    "class weights": {"class_weights": True, "n_passive": 2},
}


def moments_of(z: np.ndarray, y: np.ndarray, f: np.ndarray) -> Moments:
    return Moments(f.sum(), (f * y).sum(), (f * z).sum(), (f * z * z).sum(), (f * y * z).sum())


def expected_of(case: Case, weights: dict[str, np.ndarray]) -> Platt:
    """Fit to the plain table, over the hold-out rows that match."""
    rows = case.held_out[case.mask[case.held_out] > 0]
    z = sum(case.grid.scores(block[rows], weights[name]) for name, block in case.table.blocks.items())
    y, f = case.table.y[rows], np.ones(len(rows))
    if case.class_weights is not None:
        f = case.class_weights[rows] / 256
    platt = fit_moments(moments_of(z, y, f))
    assert platt is not None
    if case.class_weights is None:
        return platt
    return Platt(platt.slope, platt.offset + np.log(f[y < 0][0] / f[y > 0][0]))


@pytest.mark.parametrize("name", CASES)
def test_the_active_party_gets_those_of_the_matching_hold_out_rows(insecure_test_key: PrivateKey, name: str) -> None:
    case = case_of(insecure_test_key, **MASKED, **CASES[name])
    over_channels, locally = case.seats(), case.seats()
    case.run(over_channels, case.key_seat())
    case.run_locally(locally, case.key_seat())
    expected = expected_of(case, {seat.name: seat.optimiser.weights for seat in over_channels})
    told = over_channels[0].platt
    assert told == locally[0].platt
    assert (told.slope, told.offset) == pytest.approx((expected.slope, expected.offset), abs=0.51 / STEPS_OF_A_UNIT)
    assert told.slope != 1.0
    assert all(seat.platt == IDENTITY for seat in over_channels[1:])


def test_rows_that_do_not_match_change_nothing(insecure_test_key: PrivateKey) -> None:
    """Their labels and columns at the active party may have any value."""
    case = case_of(insecure_test_key, **MASKED)
    told = {}
    for changed in (False, True):
        seats = case.seats()
        if changed:
            off = np.flatnonzero(case.mask == 0)
            seats[0].y = np.where(np.isin(np.arange(len(case.table.y)), off), -case.table.y, case.table.y)
            seats[0].features = seats[0].features.copy()
            seats[0].features[off] = 17
        case.run_locally(seats, case.key_seat())
        told[changed] = seats[0].platt
    assert told[True] == told[False] != IDENTITY


def test_the_key_node_tells_two_small_numbers_to_the_active_party_alone(insecure_test_key: PrivateKey) -> None:
    case, tap = case_of(insecure_test_key, **MASKED, n_passive=2), Tap()
    case.run(case.seats(), case.key_seat(), case.network(wire=tap))
    told = [(sender, to) for sender, to, step, _ in tap.seen if step == Calibration.__name__]
    assert told == [(KEY_NODE, "bank")]
    ((sender, to, ciphertexts),) = tap.ciphertexts(CalibrationSums)
    assert (sender, to, len(ciphertexts)) == ("post", KEY_NODE, 5)


@pytest.mark.parametrize("lie", [Calibration(-1, 0), Calibration(1025, 0), Calibration(32, 1025)])
def test_a_number_out_of_range_is_refused(insecure_test_key: PrivateKey, lie: Calibration) -> None:
    case = case_of(insecure_test_key, **MASKED)
    network = case.network(wire=replaced(KEY_NODE, Calibration, lambda _: lie))
    with pytest.raises(MalformedMessage, match="range") as error:
        case.run(case.seats(), case.key_seat(), network)
    assert error.value.culprit == KEY_NODE


def test_without_a_mask_or_a_hold_out_there_are_no_such_sums(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, calibrate=True)
    with pytest.raises(ConfigError, match="mask"):
        case.run_locally(case.seats(), case.key_seat())


def test_log_odds_are_those_of_a_discriminant_analysis() -> None:
    draw = np.random.default_rng(1)
    y = np.where(draw.random(500) < 0.3, 1.0, -1.0)
    z = 0.4 * y + draw.normal(size=500)
    platt = fit_moments(moments_of(z, y, np.ones(500)))
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(z[:, None], y)
    assert platt is not None
    assert (platt.slope, platt.offset) == pytest.approx((reference.coef_[0, 0], reference.intercept_[0]), rel=1e-9)


@each_case(
    "moments",
    [
        Moments(19, 1, 3, 19, 8),  # few rows
        Moments(40, 32, 3, 40, 8),  # four of a class
        Moments(40, 0, 0, 40, -8),  # the contrary
        Moments(40, 0, 0, 40, 0),  # nothing
        Moments(40, 0, 0, 0, 0),  # no score at all
    ],
)
def test_rows_that_do_not_tell(moments: Moments) -> None:
    assert fit_moments(moments) is None
