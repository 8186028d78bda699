"""Vertical linear regression on the California Housing data, against scikit-learn's LinearRegression.

    python -m benchmarks.vertical.housing [--data DIR] [--json FILE] [--quick]

1. `mse_ratio` is the test error over scikit-learn's, on 20,640 block groups, a fifth of them test rows. Both have
   columns standardised by the training rows. A bank has income, age, rooms and the prices; a land office has population
   and place. The training is the plain oracle's, over ten splits, the worst of which counts. Training clips columns at
   8 standard deviations, which helps on these data, so `mse_ratio_clipped` gives scikit-learn clipped columns too. Both
   figures are for Blindfit's `defaults` of linear models and for those of logistic ones, `gradient_descent`, with all
   defences on.
2. `encrypted_rows` are the first rows of the file, trained twice with the same jitter and noise: under encryption with
   keys of 2048 bits, and by the oracle. `largest_difference` of the two models' weights must be 0.

Without --data the data are looked for in ../shared/data/housing/cal_housing.data (StatLib's file with a header; the
repository fau-is/gam_comparison has it in data/).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LinearRegression

from benchmarks.kit import machine
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import DataSeat, KeySeat, TaylorParameters
from blindfit.algorithms.randomness import keyed_normals, system_uniform
from blindfit.algorithms.statistics.quality.evaluation import evaluate_values
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.taylor.parameters import parameters_of, preparation_of
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import FEATURE_BOUND, Prepared, prepare
from blindfit.parties.vertical.seats import Seats
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable, Trained

FILE = Path("housing") / "cal_housing.data"
ACTIVE, PASSIVE = "bank", "land-office"
COLUMNS = {
    ACTIVE: ("MedInc", "HouseAge", "AveRooms", "AveBedrms"),
    PASSIVE: ("Population", "AveOccup", "Latitude", "Longitude"),
}
SEATS = Seats(ACTIVE, (ACTIVE, PASSIVE), "notary")
AIM = 1.01
SETTINGS: dict[str, dict[str, Any]] = {"defaults": {}, "gradient_descent": {"optimiser": "sgd"}}
SPLITS = 10
ENCRYPTED_ROWS, ENCRYPTED_EPOCHS = 2000, 5
JITTER_KEY, NOISE_KEY = b"jitter of the benchmark", b"noise of the benchmark"  # drawn for each training otherwise

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Housing:
    columns: dict[str, Floats]
    prices: Floats  # 100,000 dollars

    @classmethod
    def read(cls, data: Path) -> Housing:
        """Raise DataError: the file is not there."""
        path = data / FILE
        if not path.exists():
            raise DataError(f"{path} does not exist", hint=f"give the folder of {FILE} as --data DIR (see --help)")
        longitude, latitude, age, rooms, bedrooms, population, households, income, value = np.loadtxt(
            path, delimiter=",", skiprows=1, unpack=True
        )
        columns = {
            "MedInc": income,
            "HouseAge": age,
            "AveRooms": rooms / households,
            "AveBedrms": bedrooms / households,
            "Population": population,
            "AveOccup": population / households,
            "Latitude": latitude,
            "Longitude": longitude,
        }
        return cls(columns, value / 1e5)

    def head(self, rows: int) -> Housing:
        return Housing({name: column[:rows] for name, column in self.columns.items()}, self.prices[:rows])

    def rows_of(self, party: str) -> PartyRows:
        features = np.column_stack([self.columns[name] for name in COLUMNS[party]])
        ids = pa.array([f"r{number}" for number in range(len(features))])
        return PartyRows(ids, features, self.prices if party == ACTIVE else None, np.ones(len(features), np.bool_))


@dataclass(frozen=True)
class Training:
    """One job on aligned rows: what both parties prepare, and the two ways to train on it."""

    housing: Housing
    job: TaylorJob

    @classmethod
    def of(cls, housing: Housing, seed: int = 0, **options: Any) -> Training:
        chosen = {"protocol": "taylor", "seed": seed, "taylor": {"model": "linear", **options}}
        return cls(housing, TaylorJob.model_validate(chosen))

    @cached_property
    def prepared(self) -> dict[str, Prepared]:
        order = self.job.trial_randomness.generator("order").permutation(len(self.housing.rows_of(ACTIVE).features))
        return {
            party: prepare(self.housing.rows_of(party), names, preparation_of(self.job), order, active=party == ACTIVE)
            for party, names in COLUMNS.items()
        }

    @property
    def plan(self) -> RowPlan:
        return self.prepared[ACTIVE].plan

    @cached_property
    def parameters(self) -> TaylorParameters:
        told = {party: Ready(prepared.columns.shape[1]) for party, prepared in self.prepared.items()}
        return parameters_of(self.job, SEATS, told)

    @cached_property
    def table(self) -> PlainTable:
        grid, y = self.parameters.grid, self.prepared[ACTIVE].labels.y
        assert y is not None  # the active party's
        jitter = self.job.taylor.jitter * keyed_normals(JITTER_KEY, "jitter", len(y))
        blocks = {party: grid.features(prepared.columns) for party, prepared in self.prepared.items()}
        return PlainTable(blocks, y, grid.label_terms(y, jitter), intercept=ACTIVE)

    # --- two ways to the same weights

    def plain(self) -> Trained:
        parameters = self.parameters
        return taylor_oracle.train(
            self.table,
            self.plan,
            parameters.grid,
            self.job.taylor.optimiser_settings(),
            epochs=parameters.epochs,
            patience=parameters.patience,
            tolerance=parameters.tolerance,
            noise=lambda *where_and_columns: taylor.gradient_noise(
                NOISE_KEY, parameters, where_and_columns[:3], where_and_columns[3]
            ),
        )

    def encrypted(self, key: PrivateKey) -> Trained:
        seats = [self._seat(party, OwnKey(key)) for party in COLUMNS]
        patience = Patience(self.parameters.patience, self.parameters.tolerance)
        epochs = taylor.run_locally(seats, KeySeat(key, NOISE_KEY, patience), self.plan, self.parameters)
        return Trained({seat.name: seat.optimiser.weights for seat in seats}, patience.losses, epochs)

    def _seat(self, party: str, randomisers: OwnKey) -> DataSeat:
        block, active = self.table.blocks[party], party == ACTIVE
        settings = self.job.taylor.optimiser_settings()
        rows = self.parameters.grid.reals(block[self.plan.train])
        optimiser = Optimiser(settings, np.zeros(block.shape[1]), active, len(self.plan.batches), rows)
        seat = DataSeat(party, block, optimiser, randomisers, system_uniform)
        if active:
            seat.y, seat.label_terms = self.table.y, self.table.label_terms
        return seat

    # --- how good

    def mse(self, trained: Trained) -> float:
        """Return the error on the test rows, from the parts of the model as parties keep them."""
        test, parts = self.plan.test, {party: self._part(party, trained) for party in COLUMNS}
        scores = sum(part.score_parts(self.prepared[party].rows.features[test]) for party, part in parts.items())
        predicted = parts[ACTIVE].predictions(np.asarray(scores))
        return float(evaluate_values(self.housing.prices[test], predicted)["mse"])

    def _part(self, party: str, trained: Trained) -> VerticalModelPart:
        prepared, weights = self.prepared[party], trained.weights[party]
        active = party == ACTIVE
        return VerticalModelPart(
            party=party,
            role="active" if active else "passive",
            model="linear",
            data_parties=SEATS.chain,
            standardiser=prepared.standardiser,
            weights=weights[:-1] if active else weights,
            intercept=float(weights[-1]) if active else None,
            label_mean=prepared.labels.mean,
            label_scale=prepared.labels.scale,
        )

    def sklearn_mse(self, *, clip: float = np.inf) -> float:
        """Return the error of LinearRegression on the same rows without the hold-out, standardised in the same way."""
        columns = [p.standardiser.transform(p.rows.features) for p in self.prepared.values()]
        X, prices, plan = np.clip(np.hstack(columns), -clip, clip), self.housing.prices, self.plan
        fitted = LinearRegression().fit(X[plan.train], prices[plan.train])
        return float(evaluate_values(prices[plan.test], fitted.predict(X[plan.test]))["mse"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help=f"where {FILE} is")
    parser.add_argument("--quick", action="store_true", help="two splits, fewer encrypted rows")
    options = parser.parse_args(arguments)
    try:
        housing = Housing.read(options.data)
    except DataError as error:
        raise SystemExit(f"error: {error.message}\nhint: {error.hint}") from None
    result: dict[str, Any] = {"machine": machine.describe(), "rows": len(housing.prices)}
    for name, chosen in SETTINGS.items():
        result[name] = accuracy(housing, 2 if options.quick else SPLITS, chosen)
    rows, epochs = (400, 1) if options.quick else (ENCRYPTED_ROWS, ENCRYPTED_EPOCHS)
    result |= agreement(housing.head(rows), epochs)
    Console().print(_table(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def accuracy(housing: Housing, splits: int, options: Mapping[str, Any]) -> dict[str, Any]:
    runs = [compare(Training.of(housing, seed, **options)) for seed in range(splits)]
    return {
        "options": dict(options),
        "splits": splits,
        "mse": round(float(np.median([run["mse"] for run in runs])), 4),
        "mse_ratio": max(run["ratio"] for run in runs),
        "mse_ratio_clipped": max(run["clipped"] for run in runs),
        "of_each_split": runs,
    }


def compare(training: Training) -> dict[str, float]:
    trained = training.plain()
    mse = training.mse(trained)
    return {
        "mse": round(mse, 4),
        "ratio": round(mse / training.sklearn_mse(), 4),
        "clipped": round(mse / training.sklearn_mse(clip=FEATURE_BOUND), 4),
        "epochs": trained.epochs,
    }


def agreement(housing: Housing, epochs: int) -> dict[str, Any]:
    training = Training.of(housing, epochs=epochs, patience=0)
    key = generate_private_key(machine.KEY_BITS)
    started = time.perf_counter()
    encrypted = training.encrypted(key)
    took_s = time.perf_counter() - started
    plain = training.plain()
    return {
        "encrypted_rows": len(housing.prices),
        "encrypted_epochs": encrypted.epochs,
        "encrypted_s": round(took_s, 2),
        "largest_difference": max(
            float(np.abs(plain.weights[party] - encrypted.weights[party]).max()) for party in COLUMNS
        ),
        "encrypted_mse": training.mse(encrypted),
        "plain_mse": training.mse(plain),
    }


def _table(result: dict[str, Any]) -> Table:
    table = Table("California Housing, linear, 5 + 4 columns", "measured", "aim", box=None)
    for name in SETTINGS:
        found, title = result[name], name.replace("_", " ")
        reached = "reached" if found["mse_ratio"] <= AIM else "not reached"
        ratio = f"{title}: test MSE over scikit-learn's, worst of {found['splits']} splits"
        table.add_row(ratio, f"{found['mse_ratio']:.4f}", f"<= {AIM}: {reached}")
        table.add_row("  scikit-learn on clipped columns", f"{found['mse_ratio_clipped']:.4f}", "")
        table.add_row("  test MSE, median", f"{found['mse']:.4f}", "")
    shape = f"{result['encrypted_rows']:,} rows, {result['encrypted_epochs']} epochs"
    table.add_row(f"encrypted against plain weights, {shape}", f"{result['largest_difference']:g}", "0")
    table.add_row("  test MSE of each", f"{result['encrypted_mse']:.4f}, {result['plain_mse']:.4f}", "the same")
    table.add_row("  the encrypted one, all in one process", f"{result['encrypted_s']:.1f} s", "")
    return table


if __name__ == "__main__":
    main()
