"""Labels from class weights: a residual's weight follows from its label and multiplies the score, which moves.

In differences of a kept batch's gradients jitter cancels, and the weights stay: X^T diag(c) X (theta - theta') / 4.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.statistics.quality.metrics import auc
from blindfit.algorithms.statistics.vertical.gradient_leaks import label_auc, rows_for_labels, shorten_rows
from tests.world.vertical import bank_and_shops

Floats = NDArray[np.float64]
ROWS, COLUMNS, POSITIVES = 256, 20, 0.1
JITTER, EPOCHS = 0.25, 50
RATES, MOMENTA = (0.15, 0.3, 0.5), (0.0, 0.9)  # options of jobs on one layout of batches, which is counted once


def trained(x: Floats, terms: Floats, c: Floats, rate: float, momentum: float, noise: np.random.Generator) -> Floats:
    """Return the passive party's weights and gradients of each epoch, (EPOCHS, 2, COLUMNS)."""
    theta, move, seen = np.zeros(COLUMNS), np.zeros(COLUMNS), []
    for epoch in range(EPOCHS):
        gradient = x.T @ (c * (x @ theta / 4 + terms)) + noise.standard_normal(COLUMNS)
        seen.append((theta.copy(), gradient))
        move = momentum * move - rate / (1 + 0.1 * epoch) * (gradient / ROWS + 0.01 * theta)
        theta = theta + move
    return np.array(seen)


def guessed(x: Floats, seen: Floats, deviation: float) -> Floats:
    """Return the rows' weights, which are 1 on average, by ridge regression on differences from the mean gradient."""
    moves, gradients = (seen[:, place] - seen[:, place].mean(axis=0) for place in (0, 1))
    equations = np.concatenate([(x * (x @ move / 4)[:, None]).T for move in moves])
    left = gradients.ravel() - equations.sum(axis=1)
    return 1 + np.linalg.solve(equations.T @ equations + np.eye(ROWS) / deviation**2, equations.T @ left)


@pytest.mark.parametrize("weighted", [True, False])
def test_class_weights_show_labels_that_jitter_hides(weighted: bool) -> None:
    """Six jobs with every defence on; the labels are coins, and nothing else reveals them."""
    rng = np.random.default_rng(11)
    x = shorten_rows(rng.standard_normal((ROWS, COLUMNS)), [np.arange(ROWS)])[0]
    labels = rng.random(ROWS) < POSITIVES
    share = labels.mean()
    c = np.where(labels, 0.5 / share, 0.5 / (1 - share))
    terms = np.where(labels, -0.5, 0.5) + JITTER * rng.standard_normal(ROWS)  # kept for the snapshot
    used = c if weighted else np.ones(ROWS)
    seen = np.concatenate([trained(x, terms, used, rate, momentum, rng) for rate in RATES for momentum in MOMENTA])
    assert rows_for_labels(COLUMNS, JITTER) <= ROWS  # the rule calls this safe
    found = auc(labels, guessed(x, seen, float(c.std())))
    assert found > label_auc(COLUMNS, ROWS, JITTER) + 0.1 if weighted else 0.35 < found < 0.65


def test_a_job_with_class_weights_needs_a_flag_that_all_allow(tmp_path: object) -> None:
    project = bank_and_shops(tmp_path)
    options = ("taylor.epochs=1", "taylor.class_weights='balanced'")
    with pytest.raises(PolicyRefused, match=r"class weights: .* differences of gradients show labels") as refused:
        project.run(*options)
    assert 'taylor.unsafe = ["class-weights"] allows it' in str(refused.value)
