"""Without noise each kind of training ranks unseen rows as scikit-learn does: AUC within 0.005, on five splits.

WALR and DP-LR on each of them; Taylor, with another loss and shortened rows, agrees on their mean.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from blindfit.algorithms.fixed_point import norm_bound_steps, quantise_rows
from blindfit.algorithms.statistics.dp_lr import descent
from blindfit.algorithms.statistics.dp_lr.descent import DescentSettings
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear.logistic import Floats, QuantisedRows, weighted_aggregate
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, row_norms
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.fit import fit_released
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.job.job import read_job
from blindfit.parties.taylor.parameters import preparation_of
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import prepare
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable

SPLITS = range(5)
CLOSE = 0.005
HELD_OUT = 0.3
PARTIES = {
    "bank": {"role": "active", "dataset": "rows"},
    "post": {"role": "passive", "dataset": "rows"},
    "notary": {"role": "key-node"},
}


@cache
def tumours() -> tuple[Floats, np.ndarray]:
    table = load_breast_cancer()
    return table.data, table.target


def split(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that are trained on, and the held-out ones."""
    order = np.random.default_rng(number).permutation(len(tumours()[1]))
    trained = round(len(order) * (1 - HELD_OUT))
    return order[:trained], order[trained:]


def auc_of_scikit_learn(train: np.ndarray, test: np.ndarray) -> float:
    features, labels = tumours()
    scale = Standardiser.fit([features[train]])
    model = LogisticRegression(max_iter=1000).fit(scale.transform(features[train]), labels[train])
    return float(roc_auc_score(labels[test], model.decision_function(scale.transform(features[test]))))


def above_scikit_learn(scores: Floats, train: np.ndarray, test: np.ndarray) -> float:
    """Return by how much our AUC on the test rows is above theirs."""
    return float(roc_auc_score(tumours()[1][test], scores)) - auc_of_scikit_learn(train, test)


@pytest.mark.parametrize("number", SPLITS)
def test_walr(number: int) -> None:
    """The active party fits to the exact aggregate, on clipped integer rows, with scikit-learn's penalty."""
    (features, labels), (train, test) = tumours(), split(number)
    scale = Standardiser.fit([features[train]])
    columns = append_constant(scale.transform(features[train]))
    steps = norm_bound_steps(defaults.default_norm_bound(row_norms(columns)), 16)
    rows = QuantisedRows(quantise_rows(columns, steps, 16), 16)
    found = fit_released(
        rows,
        weighted_aggregate(rows, labels[train]),
        noise_std=0.0,
        norm_bound=steps / 2**16,
        epsilon=1.0,
        settings=SolverSettings(l2=0.0, unpenalised=-1),
        l2=1 / len(train),
    )
    model = WALRModel(scale, found.result.weights, intercept=True, norm_bound=steps / 2**16)
    assert abs(above_scikit_learn(model.scores(features[test]), train, test)) <= CLOSE


@pytest.mark.parametrize("number", SPLITS)
def test_dp_lr(number: int) -> None:
    """Clipped gradients at the largest stable rate, as a private fit takes them, with nothing added to the sums."""
    (features, labels), (train, test) = tumours(), split(number)
    scale = Standardiser.fit([features[train]])
    rows = append_constant(scale.transform(features[train]))
    iterations, zero = 200, np.zeros(rows.shape[1])
    rate = descent.default_learning_rate(1e-12, rows.shape[1], iterations, 1.0)
    weights = descent.descend(
        rows,
        labels[train] == 1,
        DescentSettings(1.0, rate, iterations, len(rows)),
        start=zero,
        anchor=zero,
        sample=None,
        release_gradient=list,
    ).weights
    model = DPLogisticModel(scale, tuple(weights[:-1].tolist()), float(weights[-1]))
    assert abs(above_scikit_learn(model.scores(features[test]), train, test)) <= CLOSE


def test_taylor() -> None:
    found = [taylor_above_scikit_learn(number) for number in SPLITS]
    assert abs(np.mean(found)) <= CLOSE, found
    assert max(map(abs, found)) <= 2 * CLOSE, found


def taylor_above_scikit_learn(number: int) -> float:
    """Train the plain oracle, which equals encrypted training bit for bit, on rows as two parties prepare them."""
    features, labels = tumours()
    job = read_job({"protocol": "taylor", "parties": PARTIES}).parameters
    job = job.model_copy(update={"split": job.split.model_copy(update={"test_fraction": HELD_OUT}), "seed": number})
    grid = Grid("logistic", 2, feature_bits=FEATURE_BITS)
    there = np.ones(len(labels), bool)
    order = job.trial_randomness.generator("order").permutation(len(labels))
    prepared = {}
    for party, columns in (("bank", slice(0, 10)), ("post", slice(10, 30))):
        own = PartyRows(None, features[:, columns], labels * 1.0 if party == "bank" else None, there)
        names = tuple(f"x{j}" for j in range(own.features.shape[1]))
        prepared[party] = prepare(own, names, preparation_of(job), order, active=party == "bank")
    bank = prepared["bank"]
    blocks = {party: grid.features(own.columns) for party, own in prepared.items()}
    trained = taylor_oracle.train(
        PlainTable(blocks, bank.labels.y, grid.label_terms(bank.labels.y, np.zeros(len(labels))), intercept="bank"),
        bank.plan,
        grid,
        job.taylor.optimiser_settings(),
        epochs=job.taylor.epochs,
        hold_out_loss=False,
    )
    scores = sum(grid.scores(block[bank.plan.test], trained.weights[party]) for party, block in blocks.items())
    return above_scikit_learn(scores, bank.plan.train, bank.plan.test)
