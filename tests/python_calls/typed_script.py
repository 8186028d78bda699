"""A user's program with exact types. `make types` checks it with mypy, strictly; tests run its functions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, assert_type

import numpy as np
import numpy.typing as npt

import blindfit

Floats = npt.NDArray[np.float64]


def train_and_load(job: Path) -> list[str]:
    """Run a job and read its model twice; return the names of its features."""
    result = blindfit.run(job, progress=False)
    assert_type(result, blindfit.Result)
    assert_type(result.model, blindfit.Model)
    assert_type(result.models, dict[str, blindfit.Model])
    model = blindfit.load_model(result.model_files[0])
    assert_type(model, blindfit.Model)
    if isinstance(model, blindfit.VerticalModelPart):
        assert_type(model.party, str)
    elif isinstance(model, blindfit.LabelRegressionModel):
        assert_type(model.regressor, str)
    else:
        assert_type(model, blindfit.WALRModel | blindfit.DPLogisticModel)
        assert_type(model.predict_proba({"f0": [0.0], "f1": [0.0], "f2": [0.0], "f3": [0.0]}), Floats)
    return [str(name) for name in model.feature_names_in_]


def watch(job: Path) -> int:
    """Run a job in the background; return the number of its reports of progress."""
    with blindfit.run(job, wait=False) as running:
        assert_type(running, blindfit.RunningJob)
        events = list(running.watch())
        assert_type(events, list[blindfit.ProgressEvent])
        assert_type(running.result(), blindfit.Result)
    return len(events)


def fit(features: Floats, labels: npt.NDArray[np.int64]) -> float:
    """Fit both estimators within a budget, the second one from public rows; return the epsilon that was spent."""
    public = blindfit.pretrain(features[:100], labels[:100])
    with blindfit.PrivacyBudget(epsilon=3.0) as budget:
        walr = blindfit.WALRClassifier(epsilon=1.0).fit(features, labels)
        rows = blindfit.DPLogisticRegression(epsilon=1.0, init=public).fit(features, labels)
    assert_type(walr, blindfit.WALRClassifier)
    assert_type(walr.model_, blindfit.WALRModel)
    assert_type(rows, blindfit.DPLogisticRegression)
    assert_type(walr.predict_proba(features), Floats)
    assert_type(rows.coef_, Floats)
    return budget.spent()


async def ask(client: blindfit.MeasurementClient, ids: list[str], features: Floats) -> Floats:
    """Ask a measurement server for a noisy sum; return the means."""
    description = await client.describe("visits")
    assert_type(description.label_range, tuple[float, float] | None)
    answer = await client.aggregate("visits", ids, features, epsilon=1.0, delta=1e-6, norm_bound=3.0)
    assert_type(answer, blindfit.NoisyAggregate)
    assert_type(answer.sums, Floats)
    assert_type((await client.budget("visits")).spent_epsilon, float)
    again = await client.aggregate(
        "visits", ids, features, epsilon=1.0, delta=1e-6, norm_bound=3.0, receipt=answer.receipt
    )
    return again.sums / int(again.kept.sum())


def check(job: Path) -> Literal[0, 1]:
    """Return 1 if the job would be refused, 0 otherwise."""
    findings = blindfit.check(job)
    assert_type(findings[0], blindfit.Finding)
    return 1 if findings.refuses else 0
