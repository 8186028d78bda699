"""Figures of a report, computed again with scikit-learn from the file of rows next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from numpy.typing import NDArray
from sklearn import metrics

Columns = dict[str, NDArray[Any]]


def columns_of(path: Path) -> Columns:
    table = pyarrow.csv.read_csv(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def check_classes(columns: Columns, told: dict[str, Any]) -> None:
    """Check every figure of a classifier.

    Args:
        columns: label, probability; of a calibrated model also score and probability_out_of_fold.
        told: `evaluation` of the report.
    """
    label, final = columns["label"], columns["probability"]
    judged = columns.get("probability_out_of_fold", final)
    ranked = columns.get("score", final)
    predicted = judged >= told["threshold"]
    true_negatives, false_positives, false_negatives, true_positives = metrics.confusion_matrix(
        label, predicted
    ).ravel()
    false_rate, true_rate, _ = metrics.roc_curve(label, ranked, drop_intermediate=False)
    found = {
        "rows": len(label),
        "auc": metrics.roc_auc_score(label, ranked),
        "average_precision": metrics.average_precision_score(label, ranked),
        "ks": (true_rate - false_rate).max(),
        "accuracy": metrics.accuracy_score(label, predicted),
        "log_loss": metrics.log_loss(label, judged),
    }
    if "slope" in told:
        before = 1 / (1 + np.exp(-ranked))
        found["log_loss_before"] = metrics.log_loss(label, before)
        odds = told["slope"] * ranked + told["offset"]
        np.testing.assert_allclose(final, 1 / (1 + np.exp(-odds)), rtol=1e-9)
    for name, value in found.items():
        assert told[name] == pytest.approx(value, abs=1e-9), name
    assert told["confusion"] == {
        "true_positives": true_positives,
        "false_positives": false_positives,
        "true_negatives": true_negatives,
        "false_negatives": false_negatives,
    }
    order = np.argsort(judged, kind="stable")
    for part, tenth in zip(np.array_split(order, len(told["calibration"])), told["calibration"], strict=True):
        assert tenth["rows"] == len(part)
        assert tenth["probability"] == pytest.approx(judged[part].mean())
        assert tenth["positives"] == pytest.approx(label[part].mean())
    checked = {*found, "confusion", "calibration", "threshold", "slope", "offset"}
    assert set(told) - checked == {"lift", "ranking", "histogram"}  # curves of the same columns


def check_values(columns: Columns, told: dict[str, Any]) -> None:
    """Check every figure of a regression, from label and prediction."""
    label, prediction = columns["label"], columns["prediction"]
    found = {
        "rows": len(label),
        "mse": metrics.mean_squared_error(label, prediction),
        "mae": metrics.mean_absolute_error(label, prediction),
        "r2": metrics.r2_score(label, prediction),
    }
    assert told == pytest.approx(found, abs=1e-9)
