"""Models and rows on disk: overfitted, with random weights, and private."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blindfit.algorithms.estimators.dp_logistic_regression import DPLogisticRegression
from blindfit.algorithms.estimators.initial_model import keep_scale
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.linear.pretraining import Pretrained, pretrain
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel

COLUMNS = tuple(f"f{j}" for j in range(100))
ROWS = 60


@dataclass(frozen=True)
class Rows:
    features: np.ndarray
    labels: np.ndarray


def rows(n: int, seed: int) -> Rows:
    """Draw many columns, of which one is weakly related to the label; the first three are 0 or 1."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, len(COLUMNS)))
    features[:, :3] = rng.random((n, 3)) < 0.5
    return Rows(features, rng.random(n) < sigmoid(features[:, 5]))


def write_csv(path: Path, table: Rows, first_id: int) -> None:
    lines = [
        f"u{first_id + i},{int(label)},{','.join(map(repr, row.tolist()))}"
        for i, (row, label) in enumerate(zip(table.features, table.labels, strict=True))
    ]
    path.write_text("\n".join([f"id,label,{','.join(COLUMNS)}", *lines]) + "\n")


def overfitted(trained: Rows) -> Pretrained:
    return pretrain(trained.features, trained.labels, columns=COLUMNS, l2=1e-3)


def with_random_weights(seed: int) -> Pretrained:
    weights = np.random.default_rng(seed).standard_normal(len(COLUMNS))
    return Pretrained(keep_scale(COLUMNS), tuple(weights.tolist()), 0.0)


def private(trained: Rows, epsilon: float) -> Pretrained:
    fitted = DPLogisticRegression(epsilon, feature_bounds=(-3.0, 3.0)).fit(trained.features, trained.labels)
    return Pretrained(keep_scale(COLUMNS), tuple(fitted.coef_[0].tolist()), float(fitted.intercept_[0]))


def as_walr(model: Pretrained) -> str:
    weights = np.append(model.weights, model.intercept)
    return json.dumps(WALRModel(model.standardiser, weights, True, 1e6).to_dict())


def as_dp_logistic(model: Pretrained) -> str:
    return json.dumps(DPLogisticModel(model.standardiser, model.weights, model.intercept).to_dict())


def as_part(model: Pretrained, data_parties: tuple[str, ...] = ("bank",), kind: str = "logistic") -> str:
    part = VerticalModelPart(
        "bank", "active", kind, data_parties, model.standardiser, np.array(model.weights), model.intercept
    )
    return json.dumps(part.to_dict())
