"""Compute the variance of a released label without bias, by mechanism and epsilon; nothing is drawn.

    python -m benchmarks.label_dp.variance [--data DIR] [--json FILE] [--quick]

The figure is the mean over all labels of Communities and Crime. Their own histogram is the prior, which is not private.
The range is [0, 1]. The file is looked for in ../shared/data. --quick takes two epsilons.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.label_dp import data as label_dp_data
from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.privacy.label_mechanisms import (
    LabelGrid,
    LabelMechanism,
    MechanismSettings,
    Prior,
    fit,
    prior_from_counts,
)

EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 8.0)
NAMES = ("laplace", "staircase", "gaussian", "rp-with-prior", "unbiased")  # whose bias can be removed
WITH_PRIOR = ("rp-with-prior", "unbiased")
DELTA = 1e-5
GRID = LabelGrid(0.0, 1.0)

Floats = label_dp_data.Floats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of communities/")
    parser.add_argument("--quick", action="store_true", help="two epsilons")
    options = parser.parse_args()
    try:
        labels = label_dp_data.crime(options.data).labels
    except BlindfitError as error:
        raise SystemExit(f"error: {error.message}\nhint: {error.hint}") from None
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    variances = {name: [mean_variance(name, epsilon, labels) for epsilon in epsilons] for name in NAMES}
    table = Table("mechanism", *(f"{epsilon:g}" for epsilon in epsilons), title="variance of a debiased label")
    for name, found in variances.items():
        table.add_row(name, *(f"{variance:.3g}" for variance in found))
    Console().print(table)
    result = {"machine": machine.describe(), "epsilons": epsilons, "gaussian_delta": DELTA, "variances": variances}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def mean_variance(name: str, epsilon: float, labels: Floats) -> float:
    mechanism = fit(settings_of(name, epsilon, labels), labels).mechanism
    values, counts = np.unique(labels, return_counts=True)
    variances = [mechanism.variance(float(value)) for value in values]
    return float(np.average(variances, weights=counts)) * slope(mechanism) ** 2


def settings_of(name: str, epsilon: float, labels: Floats) -> MechanismSettings:
    options: dict[str, Any] = {}
    if name in WITH_PRIOR:
        options["prior"] = own_histogram(labels)
    if name == "gaussian":
        options["delta"] = DELTA
    return MechanismSettings(name, GRID, epsilon, **options)


def own_histogram(labels: Floats) -> Prior:
    """Return a cell for each hundredth, as the labels are given."""
    edges = np.concatenate(([0.0], np.arange(100) / 100 + 0.005, [1.0]))
    return prior_from_counts(edges, np.histogram(labels, bins=edges)[0])


def slope(mechanism: LabelMechanism) -> float:
    """Return the slope of the affine map that removes the bias."""
    at_zero, at_one = mechanism.debias([0.0, 1.0])
    return float(at_one - at_zero)


if __name__ == "__main__":
    main()
