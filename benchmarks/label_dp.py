"""What label DP costs a regression: test MSE of a network on labels released by each mechanism.

    python -m benchmarks.label_dp [--data DIR] [--json FILE] [--plot DIR] [--quick] [--seeds N] [--halving]
                                  [--standardise] [--markdown FILE] [--criteo FILE]

Communities and Crime and California Housing with the published settings (Liu et al. 2025, "RPWithPrior"): a network
d-128-64-1 with ReLU, Adam at 1e-3, weight decay 1e-4, batches of 256, 50 epochs, the rate a tenth from epoch 25 on
(--halving: halved every 10 epochs, as in the public code), a fifth of the rows to test, on true labels. Noise is added
to training labels alone. Ten mechanisms at twelve epsilons, beside the published figures; what half_width and
epsilon_prior do; how often an output is near its label; an audit of the published staircase noise. Housing's columns
are used as they are, as published; --standardise centres and scales both data sets' columns first.

All networks of one seed are trained together, and `ensemble` compares three of them with networks trained alone.
The files are looked for in ../shared/data; --quick takes Crime, 2 seeds, 3 epsilons and 10 epochs. --criteo FILE also
runs Criteo Sponsored Search (benchmarks.label_dp_criteo), which takes days without a GPU; give --seeds 1 first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import label_dp_data, machine
from benchmarks.label_dp_arms import DELTA
from benchmarks.label_dp_data import EPSILONS, Dataset
from blindfit.algorithms.errors import BlindfitError, ConfigError

QUICK_EPSILONS, QUICK_SEEDS, QUICK_EPOCHS = (0.5, 2.0, 8.0), 2, 10
SEEDS = 10


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        result = measure(options)
    except BlindfitError as error:
        raise SystemExit(f"error: {error}" + (f"\nhint: {error.hint}" if error.hint else "")) from None
    from benchmarks import label_dp_plots, label_dp_tables

    label_dp_tables.show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(label_dp_tables.markdown(result))
    if options.plot:
        label_dp_plots.draw(result["datasets"], options.plot)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where communities/ and housing/ are")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--markdown", type=Path, help="write the tables here, as docs/label_dp.md has them")
    parser.add_argument("--plot", type=Path, help="write the pictures to this directory")
    parser.add_argument("--quick", action="store_true", help="Crime alone, under a minute")
    parser.add_argument("--seeds", type=int, help=f"splits, weights and noise drawn so often; default {SEEDS}")
    parser.add_argument("--halving", action="store_true", help="halve the rate every 10 epochs, as the public code")
    parser.add_argument("--standardise", action="store_true", help="centre and scale the columns first")
    parser.add_argument("--criteo", type=Path, help="the file of Criteo Sponsored Search, tab separated")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Raises:
    ConfigError: PyTorch is missing, or an option is out of range.
    DataError: a file is missing or is not what it should be.
    """
    require_torch()
    from benchmarks import label_dp_audit, label_dp_report, label_dp_runs
    from benchmarks.label_dp_network import TrainingSettings

    seeds = (QUICK_SEEDS if options.quick else SEEDS) if options.seeds is None else options.seeds
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, not {seeds}")
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    training = TrainingSettings(epochs=QUICK_EPOCHS if options.quick else 50, halving=options.halving)
    plan, datasets = label_dp_runs.Plan(seeds, epsilons, training), _datasets(options)
    figures = {}
    for dataset in datasets:
        figures[dataset.name] = label_dp_report.summarise(
            dataset.name, label_dp_runs.run(dataset, plan, label_dp_runs.say_to_stderr)
        )
        figures[dataset.name]["ensemble"] = label_dp_runs.check_ensemble(dataset, training)
    if options.criteo:
        from benchmarks import label_dp_criteo_network

        figures["Criteo"] = label_dp_criteo_network.measure(options.criteo, plan, label_dp_runs.say_to_stderr)
    audits = label_dp_audit.audit(epsilons)
    return {
        "machine": machine.describe(),
        "settings": {"seeds": seeds, "standardised": options.standardise, "gaussian_delta": DELTA, **vars(training)},
        "datasets": figures,
        "audit": audits,
        "explanation": label_dp_report.explain(figures, audits),
    }


def require_torch() -> None:
    if find_spec("torch") is None:
        raise ConfigError("benchmarks.label_dp needs PyTorch", hint="pip install 'blindfit[bench]'")


def _datasets(options: argparse.Namespace) -> list[Dataset]:
    datasets = [label_dp_data.crime(options.data)]
    if not options.quick:
        datasets.append(label_dp_data.housing(options.data))
    return [dataset.standardised() for dataset in datasets] if options.standardise else datasets


if __name__ == "__main__":
    main()
