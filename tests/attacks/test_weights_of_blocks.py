"""The weights of one party in a joint WALR fit leak another party's columns.

Exact weights reveal all of a binary column of few rows; rounded weights reveal few of its bits. A job of so few rows is
refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blindfit.algorithms.protocols.walr import several_parties
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings

ROWS, L2, BITS = 14, 0.3, 12


def candidates(own: np.ndarray, sums: np.ndarray, weights: np.ndarray, other: float, slack: float) -> np.ndarray:
    """Return all columns of zeros and ones under which the attacker's part of the gradient vanishes.

    Args:
        sums: mean of label x column for its own columns, as it receives them.
        other: the other party's weight, which the attacker gets.
    """
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=ROWS)))
    predicted = 1 / (1 + np.exp(-(own @ weights + other * every)))
    gradient = predicted @ own / ROWS - sums + L2 * weights * np.array([1.0, 1.0, 1.0, 0.0])
    return every[np.abs(gradient).max(axis=1) < slack]


@pytest.fixture
def fitted() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The attacker's columns, the other's, the noisy mean of all, and the exact weights: the other's first."""
    rng = np.random.default_rng(3)
    own = np.column_stack([rng.normal(size=(ROWS, 3)), np.ones(ROWS)])
    secret = rng.choice([-1.0, 1.0], size=ROWS)
    rows = np.rint(np.column_stack([secret, own]) * 2**BITS).astype(np.int32)
    quantised = rows * 2.0**-BITS
    mu = quantised.T @ rng.integers(0, 2, ROWS) / ROWS + rng.normal(scale=0.05, size=5)
    settings = SolverSettings(l2=L2, unpenalised=-1, tolerance=1e-12)
    weights = solvers.fit(QuantisedRows(rows, BITS), mu, settings).weights
    return quantised[:, 1:], secret, mu, weights


def test_exact_weights_give_a_binary_column_away(fitted: tuple[np.ndarray, ...]) -> None:
    own, secret, mu, weights = fitted
    found = candidates(own, mu[1:], weights[1:], weights[0], slack=1e-9)
    assert [row.tolist() for row in found] == [secret.tolist()]


def test_rounded_weights_leave_many_columns(fitted: tuple[np.ndarray, ...]) -> None:
    """The other's weight is given exactly. Four weights are rounded to a quarter of 2 / sqrt(14), with slack for it."""
    own, secret, mu, weights = fitted
    told = several_parties.step_8_rounded(weights, ROWS)
    step = 2.0 ** -several_parties.choose_kept_bits(ROWS)
    # change of a gradient, as a change of a weight, if a weight is off by half a step
    curvature = np.abs(own).max() ** 2 / 4 * 4 + L2
    found = candidates(own, mu[1:], told[1:], weights[0], slack=curvature * step / 2)
    assert any((row == secret).all() for row in found)
    assert len(found) > 2 ** (ROWS - 5)


def test_so_few_rows_are_refused() -> None:
    """14 rows may reveal 3 bits; 4 weights have 32, and 4 more bits show whether their columns were left out."""
    told = several_parties.bits_told_of((1, 4), ROWS)
    bits = several_parties.bits_of_a_weight(ROWS) + 1
    assert told == [4 * bits + 30, bits + 30] == [66, 39]
    assert max(told) > several_parties.max_bits(ROWS) == 3
