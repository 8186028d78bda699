"""Differentially private logistic regression: accuracy against epsilon, with and without pre-training on public rows.

    python -m benchmarks.dp_lr [--data DIR] [--json FILE] [--plot DIR] [--quick]

Data: two Gaussian classes of the kind in Hoseinpour et al. 2023 (400 private rows, and 60 public ones from a related
source whose means and variances differ), drawn again for each seed; and breast cancer (scikit-learn's), split again for
each seed into 60 public, 340 private and 169 test rows. `--data DIR` measures DIR/private.csv, public.csv and test.csv
as well (a column `label` of 0 and 1, the others numbers; the bounds are those of the public rows).

There are two settings. With `defaults` the learning rate follows the noise, and both arms take their features' scale
from the public rows. So the gain is only that of the public weights. With `fixed rate`, as in the paper, one rate
serves every epsilon, and declared bounds map the features. Two more figures are scikit-learn on the private rows
without privacy, and the public model as it is. All figures are means and standard deviations over the seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.dp_lr import plots as dp_lr_plots
from benchmarks.dp_lr.data import DELTA, EPSILONS, Rows, Split, cancer_split, gaussian_split, own_split
from benchmarks.kit import machine
from blindfit import DPLogisticRegression

SEEDS, QUICK_SEEDS = 20, 2
QUICK_EPSILONS = (10.0,)
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "fixed rate": {"learning_rate": 4.0, "n_iterations": 100},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="also measure private.csv, public.csv and test.csv of this folder")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--plot", type=Path, help="draw pictures into this folder")
    parser.add_argument("--quick", action="store_true", help="few seeds, one epsilon: to see that it runs")
    options = parser.parse_args()
    console = Console()
    seeds, epsilons = (QUICK_SEEDS, QUICK_EPSILONS) if options.quick else (SEEDS, EPSILONS)
    sources: dict[str, Callable[[int], Split]] = {"two Gaussians": gaussian_split, "breast cancer": cancer_split}
    if options.data:
        sources[options.data.name] = partial(own_split, options.data)
    datasets = {name: measure(source, seeds, epsilons) for name, source in sources.items()}
    for name, figures in datasets.items():
        show(name, figures, console)
    result = {
        "machine": machine.describe(),
        "delta": DELTA,
        "seeds": seeds,
        "settings": SETTINGS,
        "datasets": datasets,
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        dp_lr_plots.draw(datasets, options.plot)


# --- measuring ---------------------------------------------------------------------------------------------


def measure(source: Callable[[int], Split], seeds: int, epsilons: Sequence[float]) -> dict[str, Any]:
    splits = [source(seed) for seed in range(seeds)]
    ceilings = [without_privacy(split.private).score(*split.test) for split in splits]
    publics = [without_privacy(split.public).score(*split.test) for split in splits]
    return {
        "private_rows": len(splits[0].private[1]),
        "public_rows": len(splits[0].public[1]),
        "features": splits[0].private[0].shape[1],
        "non_private": mean_and_std(ceilings),
        "public_alone": mean_and_std(publics),
        "settings": {name: [measure_at(epsilon, name, splits) for epsilon in epsilons] for name in SETTINGS},
    }


def measure_at(epsilon: float, setting: str, splits: list[Split]) -> dict[str, Any]:
    plain = [fitted(split, epsilon, setting).score(*split.test) for split in splits]
    pretrained = [fitted(split, epsilon, setting, pretrained=True).score(*split.test) for split in splits]
    gains = [after - before for before, after in zip(plain, pretrained, strict=True)]
    return {
        "epsilon": epsilon,
        "plain": mean_and_std(plain),
        "pretrained": mean_and_std(pretrained),
        "gain": mean_and_std(gains),
    }


def fitted(split: Split, epsilon: float, setting: str, *, pretrained: bool = False) -> DPLogisticRegression:
    if setting == "defaults":
        model = DPLogisticRegression(epsilon, DELTA, init=split.pretrained() if pretrained else split.scale_alone())
    else:
        init = split.pretrained() if pretrained else None
        model = DPLogisticRegression(epsilon, DELTA, init=init, feature_bounds=split.bounds, **SETTINGS[setting])
    return model.fit(*split.private)


def without_privacy(rows: Rows) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*rows)


def mean_and_std(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.mean(values), "std": statistics.stdev(values)}


# --- showing -------------------------------------------------------------------------------------------------


def show(name: str, figures: Mapping[str, Any], console: Console) -> None:
    for setting, rows in figures["settings"].items():
        table = Table(
            "epsilon", "no pre-training", "pre-training", "gain",
            title=f"{name}, {setting}: accuracy on test rows; without privacy {percent(figures['non_private'])}, "
            f"public model by itself {percent(figures['public_alone'])}",
        )  # fmt: skip
        for row in rows:
            table.add_row(f"{row['epsilon']:g}", *(percent(row[arm]) for arm in ("plain", "pretrained", "gain")))
        console.print(table)


def percent(figure: Mapping[str, float]) -> str:
    return f"{figure['mean']:.1%} ± {figure['std']:.1%}"


if __name__ == "__main__":
    main()
