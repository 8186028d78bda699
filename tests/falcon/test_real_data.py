"""Real tables give results as good as those of scikit-learn with all columns in one place, on the same split.

The seeds of what is dealt are fixed. Other seeds move an AUC of the bank data by up to 0.002, as weights are rounded by
chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.parties.falcon.settings import FalconJob, FalconSettings
from blindfit.parties.tables import validate
from tests.falcon.local import train
from tests.falcon.real_data import RealCase

BANK = Path(__file__).parents[3] / "shared" / "data" / "bank"
CLOSE = 0.005
BETTER = {0: 0.01}
"""Gain on a split of the bank's data: fewer steps than a whole fit classify its test rows better, by 0.0035 to 0.0056.
"""
# A split with good results after fewer epochs has them after a job's default too; the soak runs all of these.
EPOCHS = FalconSettings().epochs
FEW_EPOCHS = 5


def splits(full: Iterable[int], few: Iterable[int], soak: Iterable[int]) -> list[Any]:
    """Return seeds, with the epochs for which they are."""
    long = [pytest.param(seed, EPOCHS, marks=pytest.mark.soak) for seed in soak]
    return [*((seed, EPOCHS) for seed in full), *((seed, FEW_EPOCHS) for seed in few), *long]


def job(**options: object) -> FalconJob:
    tables = {"protocol": "falcon", "falcon": options, "split": {"test_fraction": 0.3}}
    return validate(tables, FalconJob, source="the job")


def breast(seed: int, **options: object) -> RealCase:
    data = load_breast_cancer()
    return RealCase(np.split(data.data, 3, axis=1), 1 - data.target, job(**options), seed)


def bank(seed: int, **options: object) -> RealCase:
    first, *others = (np.loadtxt(BANK / f"bank_client{i}.txt", delimiter=",") for i in range(3))
    return RealCase([first[:, :-1], *others], first[:, -1].astype(np.int64), job(**options), seed)


def aucs(case: RealCase, key: PrivateKey | None = None) -> tuple[float, float]:
    """Return the AUC of the training, and that of scikit-learn on all rows except the test rows."""
    tested = train(case, key=key)["hospital"].tested
    assert tested is not None
    x, y, rest, test = case.table
    pairs = int(y[test].sum()) * int((1 - y[test]).sum())
    fitted = LogisticRegression(max_iter=1000).fit(x[rest], y[rest])
    return tested.auc_pairs / pairs, float(roc_auc_score(y[test], fitted.decision_function(x[test])))


@pytest.mark.parametrize(("seed", "epochs"), splits([0], [1, 2], range(1, 5)))
def test_breast_cancer_is_told_as_well_as_by_scikit_learn(seed: int, epochs: int) -> None:
    """The shares are the same numbers with MACs and without; MACs have tests of their own, and cost half a run."""
    shared, joined = aucs(breast(seed, epochs=epochs, security="malicious" if seed == 1 else "semi-honest"))
    assert abs(shared - joined) < CLOSE
    assert joined > 0.98


@pytest.mark.skipif(not BANK.exists(), reason="the bank marketing data are not here")
@pytest.mark.parametrize(("seed", "epochs"), splits([1], [2], [0, 2, 3, 4]))
def test_bank_marketing_is_told_as_well_as_by_scikit_learn(seed: int, epochs: int) -> None:
    shared, joined = aucs(bank(seed, epochs=epochs, security="semi-honest"))
    assert -CLOSE < shared - joined < BETTER.get(seed, CLOSE)
    assert joined > 0.8


# --- with encrypted weights -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "epochs"), splits([], [0], range(5)))
def test_breast_cancer_with_encrypted_weights(seed: int, epochs: int, request: pytest.FixtureRequest) -> None:
    """No sum depends on the length of the key: the soak's keys have full size."""
    key = request.getfixturevalue("insecure_test_key" if epochs == FEW_EPOCHS else "real_key")
    encrypted, joined = aucs(breast(seed, epochs=epochs, backend="threshold"), key)
    assert abs(encrypted - joined) < CLOSE


@pytest.mark.soak
@pytest.mark.skipif(not BANK.exists(), reason="the bank marketing data are not here")
@pytest.mark.parametrize("seed", range(5))
def test_bank_marketing_with_encrypted_weights(seed: int, real_key: PrivateKey) -> None:
    encrypted, joined = aucs(bank(seed, backend="threshold"), real_key)
    assert -CLOSE < encrypted - joined < BETTER.get(seed, CLOSE)
