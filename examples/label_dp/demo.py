"""`make demo-label-dp`: labels released row by row between two processes, and a comparison with other models.

python -m examples.label_dp.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
from rich.console import Group
from rich.panel import Panel
from rich.table import Table

from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid, MechanismSettings, fit
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.statistics.label_dp.fit import fit_regression
from blindfit.parties.systems import load_model
from examples.demo import GAIN_KEPT, begin, console, run_job

HERE = Path(__file__).parent
LABEL_RANGE = (0.0, 8.0)  # as in clinic.toml
EPSILON, DELTA = 1.0, 1e-5
DRAWS = 5
NEEDED = {"gaussian": {"delta": DELTA}, "rp-banded": {"half_width": 2.0}}
Floats = np.ndarray


def main() -> None:
    options = begin(HERE, "Regression on labels under label DP, on the RAND health data.", "visits.csv")
    run_job(HERE, options.out, options.set)
    run_job(HERE, options.out / "again", options.set, quietly=True)
    console.print(compare_runs(options.out))
    console.print(comparison(options.out))


def compare_runs(out: Path) -> str:
    """Report the cost of the second run, and whether its model is the same."""
    models = [json.loads((path / "insurer" / "model.json").read_text()) for path in (out, out / "again")]
    spent = [model.pop("privacy")["spent_epsilon"] for model in models]
    same = models[0] == models[1]
    return f"The same job again: {'the same' if same else 'ANOTHER'} model, epsilon {spent[1] - spent[0]:g} spent.\n"


# --- needs the files of both parties ------------------------------------------------------------------


def comparison(out: Path) -> Panel:
    """Compare all mechanisms by the mean squared error on true labels of held-out rows."""
    features, columns, labels, held_out = join_files(out)
    truth = labels[held_out]
    table = Table("labels that were trained on", "off by (std)", "test error", "gain kept", box=None)
    constant = float(np.mean((labels[~held_out].mean() - truth) ** 2))
    regressor = read_regressor(out)

    def error(released: Floats) -> float:
        rows = ~held_out
        found = fit_regression(features[rows], released[rows], columns=columns, debiased=False, seed=0, **regressor)
        return float(np.mean((found.model.predict(features[held_out]) - truth) ** 2))

    best = error(labels)

    def add(name: str, noise: str, errors: list[float]) -> None:
        spread = f" +- {np.std(errors):.3f}" if len(errors) > 1 else ""
        kept = (constant - np.mean(errors)) / (constant - best)
        table.add_row(name, noise, f"{np.mean(errors):.3f}{spread}", f"{kept:.0%}")

    add("constant: always the mean", "", [constant])
    for name in NAMES:
        draws = [release_labels(name, labels) for _ in range(DRAWS)]
        noise = float(np.mean([np.std(draw - labels) for draw in draws]))
        add(name, f"{noise:.2f}", [error(draw) for draw in draws])
    add("the run above", f"{noise_of(out):.2f}", [error_of_run(out, features, held_out, truth)])
    add("true labels, not private", "0", [best])
    return Panel(
        Group(table, "", GAIN_KEPT),
        title=f"known only because this is a demo: epsilon {EPSILON:g}",
        subtitle=f"{regressor['regressor']}, {DRAWS} draws, {held_out.sum():,} held-out rows with true labels",
        expand=False,
    )


def join_files(out: Path) -> tuple[Floats, tuple[str, ...], Floats, Floats]:
    features = read(HERE / "data" / "features.csv")
    visits = read(HERE / "data" / "visits.csv")
    of_id = dict(zip(visits["id"].to_pylist(), visits["visits"].to_pylist(), strict=True))
    ids = features["id"].to_pylist()
    columns = tuple(name for name in features.column_names if name != "id")
    matrix = np.column_stack([features[name].to_numpy() for name in columns]).astype(np.float64)
    labels = np.clip([of_id[name] for name in ids], *LABEL_RANGE)
    held_out = np.isin(ids, read(out / "insurer" / "held_out_predictions.csv")["id"].to_pylist())
    return matrix, columns, labels, held_out


def read(path: Path) -> pyarrow.Table:
    return pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types={"id": "string"}))


def release_labels(name: str, labels: Floats) -> Floats:
    """Draw labels as a measurement server does, and remove the bias if the mechanism allows it."""
    settings = MechanismSettings(name, LabelGrid(*LABEL_RANGE), EPSILON, **NEEDED.get(name, {}))
    mechanism = fit(settings, labels, system_uniform).mechanism
    noisy = mechanism.randomise(labels, system_uniform)
    return mechanism.debias(noisy) if mechanism.can_debias else noisy


def read_regressor(out: Path) -> dict[str, object]:
    model = load_model(out / "insurer" / "model.json")
    return {"regressor": model.regressor, "options": model.options}


def noise_of(out: Path) -> float:
    return float(json.loads((out / "insurer" / "report.json").read_text())["privacy"]["noise_std"])


def error_of_run(out: Path, features: Floats, held_out: Floats, truth: Floats) -> float:
    predictions = load_model(out / "insurer" / "model.json").predict(features[held_out])
    return float(np.mean((predictions - truth) ** 2))


if __name__ == "__main__":
    main()
