"""Measure how right a Taylor model's probabilities are: log loss over scikit-learn's, on six data sets.

    python -m benchmarks.vertical.quality [--data DIR] [--json FILE] [--splits 5] [--quick]

Columns are spread over three parties; the job has its defaults, with all defences, and a fifth of the rows held out.
The training is the plain oracle's, which the encrypted one agrees with bit for bit. scikit-learn's LogisticRegression
(its defaults) is fitted to the training rows in one place. Figures are medians over splits for each data set.

- log_loss_over_sklearn is that of the calibrated model, each test row by a fit to the other half of the test rows.
- before is that of the log odds as they were trained.
- from_sums is that of the model calibrated as after linkage, each test row by five sums over the other half.
- slope is that of the calibration, over all test rows.

Without --data the data are looked for in ../shared/data (breast and bank marketing from the repositories
FederatedAI/FATE and nusdbsystem/falcon, communities and housing from fau-is/gam_comparison); RAND is in statsmodels.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from sklearn.linear_model import LogisticRegression

from benchmarks.kit import machine
from benchmarks.vertical.housing import Housing
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor.calibration import Moments, fit_moments
from blindfit.algorithms.randomness import keyed_normals
from blindfit.algorithms.statistics.linear.platt import IDENTITY, fit_platt, out_of_fold
from blindfit.algorithms.statistics.quality import metrics
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.parties.taylor.parameters import parameters_of, preparation_of
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import Prepared, prepare
from blindfit.parties.vertical.seats import Seats
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable

PARTIES = ("active", "second", "third")
SEATS = Seats(PARTIES[0], PARTIES, "notary")
AIM = 1.15  # of the median over data sets
JITTER_KEY, NOISE_KEY = b"jitter of the benchmark", b"noise of the benchmark"  # drawn for each training otherwise

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats]  # columns, and labels 0 or 1


# --- the data --------------------------------------------------------------------------------------------


def breast(data: Path) -> Rows:
    guest = np.genfromtxt(data / "breast" / "breast_hetero_guest.csv", delimiter=",", skip_header=1)
    host = np.genfromtxt(data / "breast" / "breast_hetero_host.csv", delimiter=",", skip_header=1)
    guest, host = guest[guest[:, 0].argsort()], host[host[:, 0].argsort()]
    if not np.array_equal(guest[:, 0], host[:, 0]):
        raise DataError("the two files of breast have different ids")
    return np.hstack([guest[:, 2:], host[:, 1:]]), guest[:, 1]


def bank(data: Path) -> Rows:
    clients = [np.genfromtxt(data / "bank" / f"bank_client{i}.txt", delimiter=",") for i in range(3)]
    return np.hstack([clients[0][:, :-1], *clients[1:]]), clients[0][:, -1]


def communities_table(data: Path) -> Floats:
    """Return the columns with at most one missing value, violent crime last."""
    table = np.genfromtxt(data / "communities" / "communities.data", delimiter=",", skip_header=1)[:, 5:]
    table = table[:, np.isnan(table).sum(axis=0) <= 1]
    return np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def communities(data: Path) -> Rows:
    """Return columns, and a label: is there more violent crime than in the median community?"""
    table = communities_table(data)
    return table[:, :-1], (table[:, -1] > np.median(table[:, -1])).astype(np.float64)


def housing(data: Path) -> Rows:
    """Return columns, and a label: do houses cost more than in the median block group?"""
    read = Housing.read(data)
    return np.column_stack(list(read.columns.values())), (read.prices > np.median(read.prices)).astype(np.float64)


def rand(_data: Path) -> Rows:
    """Return columns, and a label: was a doctor seen in the year?"""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    columns = [name for name in table.columns if name != "mdvis"]
    return table[columns].to_numpy(np.float64), (table["mdvis"] > 0).to_numpy(np.float64)


def generated(_data: Path) -> Rows:
    """Return rows of a true logistic model with 20 columns; a tenth of the labels is positive."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(10_000, 20))
    score = x @ rng.normal(size=20) / 4 - 2.5
    return x, (rng.random(len(x)) < 1 / (1 + np.exp(-score))).astype(np.float64)


SETS: dict[str, Callable[[Path], Rows]] = {
    "breast cancer": breast,
    "bank marketing": bank,
    "communities": communities,
    "housing": housing,
    "RAND": rand,
    "generated": generated,
}


# --- one training ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    log_loss: float
    before: float
    from_sums: float
    sklearn: float
    constant: float
    slope: float


def trained(job: TaylorJob, x: Floats, y: Floats) -> tuple[Prepared, Floats]:
    """Return the active party's preparation, and the scores of the test rows."""
    order = job.trial_randomness.generator("order").permutation(len(y))
    ids, there = pa.array([f"r{number}" for number in range(len(y))]), np.ones(len(y), np.bool_)
    prepared = {}
    for party, columns in zip(PARTIES, np.array_split(np.arange(x.shape[1]), len(PARTIES)), strict=True):
        active = party == PARTIES[0]
        rows = PartyRows(ids, x[:, columns], y if active else None, there)
        names = tuple(f"x{column}" for column in columns)
        prepared[party] = prepare(rows, names, preparation_of(job), order, active=active)
    first = prepared[PARTIES[0]]
    assert first.labels.y is not None  # the active party's
    parameters = parameters_of(job, SEATS, {party: Ready(own.columns.shape[1]) for party, own in prepared.items()})
    grid = parameters.grid
    jitter = job.taylor.jitter * keyed_normals(JITTER_KEY, f"jitter {job.seed}", len(y))
    blocks = {party: grid.features(own.columns) for party, own in prepared.items()}
    model = taylor_oracle.train(
        PlainTable(blocks, first.labels.y, grid.label_terms(first.labels.y, jitter), intercept=PARTIES[0]),
        first.plan,
        grid,
        job.taylor.optimiser_settings(),
        epochs=parameters.epochs,
        patience=parameters.patience,
        tolerance=parameters.tolerance,
        noise=lambda *at: taylor.gradient_noise(NOISE_KEY, parameters, at[:3], at[3]),
    )
    scores = np.sum([own.columns @ model.weights[party] for party, own in prepared.items()], axis=0)
    return first, scores[first.plan.test]


def train(x: Floats, y: Floats, seed: int) -> Found:
    job = TaylorJob.model_validate({"protocol": "taylor", "seed": seed, "split": {"test_fraction": 0.2}})
    first, scores = trained(job, x, y)
    return compared(x, y, first.plan.train, first.plan.test, scores)


def compared(x: Floats, y: Floats, train_rows: Any, test_rows: Any, scores: Floats) -> Found:
    positive = y[test_rows] > 0
    before = 1 / (1 + np.exp(-scores))
    of_each, platt = out_of_fold(scores, positive), fit_platt(scores, positive) or IDENTITY
    mean, std = x[train_rows].mean(axis=0), x[train_rows].std(axis=0)
    standardised = (x - mean) / np.where(std > 0, std, 1.0)
    plain = LogisticRegression(max_iter=1000).fit(standardised[train_rows], y[train_rows])
    return Found(
        log_loss=metrics.log_loss(positive, before if of_each is None else of_each),
        before=metrics.log_loss(positive, before),
        from_sums=metrics.log_loss(positive, by_sums(scores, positive)),
        sklearn=metrics.log_loss(positive, plain.predict_proba(standardised[test_rows])[:, 1]),
        constant=metrics.log_loss(positive, np.full(len(positive), y[train_rows].mean())),
        slope=platt.slope,
    )


def by_sums(scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Return the probability of each row by the sums over the other half, as the key node fits them after linkage."""
    y, half = np.where(positive, 1.0, -1.0), len(scores) // 2
    halves = slice(None, half), slice(half, None)
    fits = [fit_moments(_moments(scores[rows], y[rows])) or IDENTITY for rows in halves]
    return np.concatenate([fits[1].probabilities(scores[halves[0]]), fits[0].probabilities(scores[halves[1]])])


def _moments(z: Floats, y: Floats) -> Moments:
    return Moments(len(z), float(y.sum()), float(z.sum()), float(z @ z), float(y @ z))


# --- all of them ---------------------------------------------------------------------------------------------


def measure(data: Path, splits: int, names: list[str]) -> dict[str, Any]:
    sets = {}
    for name in names:
        x, y = SETS[name](data)
        found = [train(x, y, seed) for seed in range(splits)]
        sets[name] = {
            "rows": len(y),
            "columns": x.shape[1],
            "log_loss": statistics.median(f.log_loss for f in found),
            "sklearn": statistics.median(f.sklearn for f in found),
            "constant": statistics.median(f.constant for f in found),
            "log_loss_over_sklearn": statistics.median(f.log_loss / f.sklearn for f in found),
            "before": statistics.median(f.before / f.sklearn for f in found),
            "from_sums": statistics.median(f.from_sums / f.sklearn for f in found),
            "slope": statistics.median(f.slope for f in found),
        }
    median = statistics.median(of["log_loss_over_sklearn"] for of in sets.values())
    return {"splits": splits, "sets": sets, "log_loss_over_sklearn": median, "aim": AIM}


def show(result: dict[str, Any], console: Console) -> None:
    title = f"log loss on test rows, medians of {result['splits']} splits"
    table = WholeTable(
        "data",
        "rows",
        "columns",
        "constant",
        "scikit-learn",
        "Blindfit",
        "over",
        "from sums",
        "before",
        "slope",
        title=title,
    )
    for name, of in result["sets"].items():
        figures = [f"{of[key]:.4f}" for key in ("constant", "sklearn", "log_loss")]
        ratios = [f"{of[key]:.2f}" for key in ("log_loss_over_sklearn", "from_sums", "before", "slope")]
        table.add_row(name, f"{of['rows']:,}", str(of["columns"]), *figures, *ratios)
    console.print(table, crop=False)
    console.print(f"median over data sets: {result['log_loss_over_sklearn']:.3f} (aim {AIM})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one split of two small data sets: to see that it runs")
    options = parser.parse_args()
    names, splits = (["breast cancer", "generated"], 1) if options.quick else (list(SETS), options.splits)
    if not (options.data / "breast").exists():
        parser.error(f"{options.data} has no folder breast: give the folder of the data as --data DIR (see --help)")
    result = {"machine": machine.describe(), **measure(options.data, splits, names)}
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
