"""Measure what label DP costs a regression: test MSE of a network on labels released by each mechanism.

    python -m benchmarks.label_dp [--data DIR] [--json FILE] [--docs FILE] [--plot DIR] [--results FILE] [--quick]
                                  [--seeds N] [--halving] [--standardise] [--criteo FILE]

The data are Communities and Crime and California Housing, with the published settings (Liu et al. 2025, "RPWithPrior").
The network is d-128-64-1 with ReLU. It is trained by Adam at 1e-3 with weight decay 1e-4, in batches of 256, for 50
epochs. The rate is a tenth from epoch 25 on; with --halving it is halved every 10 epochs, as in the public code. A
fifth of the rows is tested on true labels. Noise is added only to training labels.

It measures ten mechanisms at twelve epsilons next to the published figures, the effect of half_width and epsilon_prior,
how often an output is near its label, and an audit of the published staircase noise. Housing's columns are used as they
are, as published; --standardise centres and scales both data sets' columns first.

All networks of one seed are trained together, and `ensemble` compares three of them with networks trained one by one.
The files are looked for in ../shared/data; --quick takes Crime, 2 seeds, 2 epsilons and 5 epochs. --criteo FILE also
runs Criteo Sponsored Search (benchmarks.label_dp.criteo), which takes days; give --seeds 1 first.

Every finished network is kept in --results. A command that was stopped continues from there when it runs again.
Remove that file after a change to a mechanism or to the training.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.kit import machine
from benchmarks.label_dp import (
    audit as label_dp_audit,
)
from benchmarks.label_dp import (
    criteo_network as label_dp_criteo_network,
)
from benchmarks.label_dp import (
    data as label_dp_data,
)
from benchmarks.label_dp import (
    plots as label_dp_plots,
)
from benchmarks.label_dp import (
    report as label_dp_report,
)
from benchmarks.label_dp import (
    runs as label_dp_runs,
)
from benchmarks.label_dp import (
    tables as label_dp_tables,
)
from benchmarks.label_dp.arms import DELTA
from benchmarks.label_dp.data import EPSILONS, Dataset
from benchmarks.label_dp.network import TrainingSettings
from benchmarks.label_dp.results import Results
from blindfit.algorithms.errors import BlindfitError, ConfigError

RESULTS = Path("benchmarks/results/label_dp.jsonl")


@dataclass(frozen=True)
class Effort:
    """Size of the measurement."""

    seeds: int
    epsilons: tuple[float, ...]
    epochs: int
    audit_draws: int


FULL = Effort(10, EPSILONS, 50, label_dp_audit.DRAWS)
QUICK = Effort(2, (0.5, 8.0), 1, 20_000)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        result = measure(options)
    except BlindfitError as error:
        raise SystemExit(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")) from None
    label_dp_tables.show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.docs:
        options.docs.write_text(label_dp_tables.put_into(options.docs.read_text(), result))
    if options.plot:
        label_dp_plots.draw(result["datasets"], options.plot)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of communities/ and housing/")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--docs", type=Path, help="put the tables into this page, docs/evidence/label_dp.md")
    parser.add_argument("--plot", type=Path, help="write the pictures to this directory")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"file of finished networks; {RESULTS}")
    parser.add_argument("--quick", action="store_true", help="only Crime, under a minute")
    parser.add_argument("--seeds", type=int, help=f"number of draws of splits, weights and noise; default {FULL.seeds}")
    parser.add_argument("--halving", action="store_true", help="halve the rate every 10 epochs, as the public code")
    parser.add_argument("--standardise", action="store_true", help="centre and scale the columns first")
    parser.add_argument("--criteo", type=Path, help="the file of Criteo Sponsored Search, tab separated")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Raises:
    ConfigError: an option is out of range.
    DataError: a file is missing or is not what it should be.
    """
    effort = QUICK if options.quick else FULL
    seeds = effort.seeds if options.seeds is None else options.seeds
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, not {seeds}")
    training = TrainingSettings(epochs=effort.epochs, halving=options.halving)
    plan, datasets = label_dp_runs.Plan(seeds, effort.epsilons, training), _datasets(options)
    results = Results(options.results, vars(training))
    figures = {}
    for dataset in datasets:
        outcomes = label_dp_runs.run(dataset, plan, results, label_dp_runs.say_to_stderr)
        figures[dataset.name] = label_dp_report.summarise(dataset.name, outcomes)
        figures[dataset.name]["ensemble"] = label_dp_runs.check_ensemble(dataset, training)
    if options.criteo:
        figures["Criteo"] = label_dp_criteo_network.measure(options.criteo, plan, results, label_dp_runs.say_to_stderr)
    audits = label_dp_audit.audit(effort.epsilons, effort.audit_draws)
    return {
        "machine": machine.describe(),
        "settings": {"seeds": seeds, "standardised": options.standardise, "gaussian_delta": DELTA, **vars(training)},
        "datasets": figures,
        "audit": audits,
        "explanation": label_dp_report.explain(figures, audits),
    }


def _datasets(options: argparse.Namespace) -> list[Dataset]:
    datasets = [label_dp_data.crime(options.data)]
    if not options.quick:
        datasets.append(label_dp_data.housing(options.data))
    return [dataset.standardised() for dataset in datasets] if options.standardise else datasets


if __name__ == "__main__":
    main()
