"""Rows past their person's bound, in each way to trust servers: no sum, fit, bound or figure contains
anything of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.statistics.linear.logistic import sigmoid, softplus
from blindfit.algorithms.statistics.walr import defaults
from blindfit.parties.evaluate import consumer as evaluation
from blindfit.parties.walr import fit as walr_fit
from tests.walr_split.overhearing import listen
from tests.walr_split.released import cells_of_treatments, released, without_noise
from tests.world.split_labels import Split

JOBS = {
    "trusted.toml": "trusted",
    "job.toml": "two-servers",
    "hidden.toml": "encrypted-rows",
    "shares.toml": "shared-rows",
}
MOST = 2  # rows of a person


def house_in(root: Path, *, persons: bool) -> Split:
    house = Split(root, persons=persons)
    house.write_party("whole", unsafe=["unchecked-rows"])
    return house


def counting(ids: Any) -> np.ndarray:
    """Return the flags of rows that count: the first two of each person's four successive rows."""
    seen: dict[int, int] = {}
    kept = []
    for i in ids:
        person = int(i.removeprefix("row ")) // 4
        seen[person] = seen.get(person, 0) + 1
        kept.append(seen[person] <= MOST)
    return np.array(kept)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("job", JOBS)
def test_a_fit_and_its_bounds_are_of_the_rows_that_counted(
    tmp_path: Path, job: str, persons: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds that were found before the answer came are of all rows, and serve only where all of them count.

    The mean, its noise, the penalty that follows from it and how mu is treated depend on how many rows counted.
    """
    house = house_in(tmp_path, persons=persons)
    found: list[tuple[Any, Any, Any]] = []
    prepared: list[Any] = []
    fit, made = walr_fit.fit_released, walr_fit.rows_to_fit

    def noted(rows: Any, mu: Any, **options: Any) -> Any:
        found.append((np.concatenate([b.copy() for b in rows.blocks()]), mu, options))
        return fit(rows, mu, **options)

    def chosen(rows: Any, *args: Any, **options: Any) -> Any:
        prepared.append(np.array(rows))
        return made(rows, *args, **options)

    monkeypatch.setattr(walr_fit, "fit_released", noted)
    monkeypatch.setattr(walr_fit, "rows_to_fit", chosen)
    without_noise(monkeypatch)
    listen(house, monkeypatch)
    answers, cells = released(monkeypatch), cells_of_treatments(monkeypatch)
    session = house.run(job=job)
    ((rows, mu, options),), (answer,) = found, answers
    bounds = options["bounds"]
    request, sent = next(iter(house.asked.values()))
    kept = counting(sent.ids) if persons else np.ones(len(sent.ids), np.bool_)
    assert kept.all() != persons
    real = prepared[0][kept] * 2.0**-request.frac_bits
    assert (rows == real).all()
    labels = np.array([house.labels[i] for i in sent.ids])[kept]
    assert mu == pytest.approx(real.T @ labels / kept.sum())
    if bounds is not None:
        expected = defaults.column_bounds(walr_fit.QuantisedRows(prepared[0][kept], request.frac_bits))
        assert [b.tolist() for b in bounds] == [b.tolist() for b in expected]
    assert (bounds is None) == persons
    assert cells == [kept.sum() * rows.shape[1]]
    noise_std = answer.noise_std * 2.0**-request.frac_bits / kept.sum()
    assert options["noise_std"] == pytest.approx(noise_std)
    report = house.report(session)
    assert (report["rows"]["trained"], report["rows"]["not_counted"]) == (kept.sum(), (~kept).sum())
    assert report["privacy"]["noise_std_of_mean"] == pytest.approx(noise_std)
    norm_bound = request.norm_bound * 2.0**-request.frac_bits
    l2 = defaults.default_l2(noise_std, norm_bound, rows.shape[1], request.epsilon)
    assert report["fit"]["l2"] == pytest.approx(l2)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("job", JOBS)
def test_an_evaluation_is_of_the_rows_that_counted(
    tmp_path: Path, job: str, persons: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = house_in(tmp_path, persons=persons)
    without_noise(monkeypatch)
    session = house.run(job=job)
    figures = ["log_loss", "accuracy", "calibration"]
    house.write_evaluation(job, JOBS[job], session.id, rows="all", score_bound=1.5, figures=figures)
    scored: list[Any] = []
    make = evaluation.make_scored_rows

    def noted(rows: Any, job: Any) -> Any:
        scored.append(rows)
        return make(rows, job)

    monkeypatch.setattr(evaluation, "make_scored_rows", noted)
    made = house.run(job="evaluate.toml")
    report = json.loads((house.root / "state/shop/evaluations" / made.id / "report.json").read_text())
    (rows,) = scored
    kept = counting(rows.ids) if persons else np.ones(len(rows.ids), np.bool_)
    assert report["rows"]["counted"] == kept.sum() == (60 if persons else 120)
    scores = np.clip(rows.scores, -1.5, 1.5)[kept]
    labels = np.array([house.labels[i] for i in rows.ids])[kept]
    expected = {
        "log_loss": float((softplus(scores) - labels * scores).mean()),
        "accuracy": float(((scores > 0) == (labels == 1)).mean()),
        "positive_rate": float(labels.mean()),
        "mean_prediction": float(sigmoid(scores).mean()),
    }
    assert {name: report["figures"][name]["value"] for name in expected} == pytest.approx(expected, abs=2e-3)
