"""Measure what gradients reveal: the tables of docs/evidence/attacks.md.

    python -m benchmarks.gradients [--data DIR] [--json FILE] [--quick]

1. `attacks` has labels by lattice and by least squares, lone rows, and a partner's column, with the defences off and at
   the defaults.
2. `batches` has the gain of least squares over the own score at jitter 0.25, in batches of 128, 256 and 512, as means
   of 20 data sets. It also has the sum of ten trainings on the same labels, and the joint model's AUC on DIR/bank and
   DIR/breast.
3. `label_dp` has the attacks under label DP, and the bits of a column that fresh noise leaves to a partner.

The attacks are those of tests/attacks, on the integers that the protocol shows. Times are of the processor.
Without --data the data are looked for in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.gradients import (
    attacks as gradients_attacks,
)
from benchmarks.gradients import (
    batches as gradients_batches,
)
from benchmarks.gradients import (
    label_dp as gradients_label_dp,
)
from benchmarks.gradients.effort import FULL, QUICK
from benchmarks.kit import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where bank/ and breast/ are")
    parser.add_argument("--quick", action="store_true", help="one data set each, no BKZ: to see that it runs")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    console = Console()
    result: dict[str, Any] = {"machine": machine.describe()}
    with console.status("attacks"):
        result["attacks"] = gradients_attacks.measure(effort)
    console.print(gradients_attacks.show(result["attacks"]))
    with console.status("batches"):
        result["batches"] = gradients_batches.measure(options.data, effort)
    console.print(*gradients_batches.show(result["batches"]), sep="\n")
    with console.status("label DP"):
        result["label_dp"] = gradients_label_dp.measure(effort)
    console.print(*gradients_label_dp.show(result["label_dp"]), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
