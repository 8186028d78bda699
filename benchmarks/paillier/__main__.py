"""Measure the cost of each Paillier operation, next to python-paillier (`phe`) and to the products that it counts.

    python -m benchmarks.paillier [--json FILE] [--plot FILE] [--bits 2048,3072] [--workers 2] [--quick]

Both libraries run under the same key, in turn, on one core; figures are medians of processor time. phe gets Python
integers, which is its fast way, and a part of the matrix, because its cost is linear. The bound is the number of
modular products that an operation counts (a power counts its squarings), times the time of one product of that size.
That product is computed by the same unit (GMP, or the processor's vector unit) in the same rounds.

The aims are for 2048 bits and a processor with the vector unit. A figure that misses its aim is marked, and nothing
fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from phe.util import HAVE_GMP
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.kit.in_turn import in_turn
from benchmarks.kit.products import GMP, VECTOR_UNIT, Products
from benchmarks.paillier.operations import (
    COLUMNS,
    Subject,
    columns_operation,
    measure,
    operations,
    rows_operation,
    threshold,
)
from benchmarks.paillier.plot import growth_plot
from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.workers import Workers
from blindfit.parties.work.compute import ComputeSettings, open_workers


@dataclass(frozen=True)
class Aim:
    """Aim of a figure: at least, or at most, this number."""

    meaning: str
    least: float | None = None
    most: float | None = None

    def reached(self, figure: float) -> bool:
        return (self.least is None or figure >= self.least) and (self.most is None or figure <= self.most)

    def __str__(self) -> str:
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


AIMS = {
    "encrypt_speedup": Aim("encryption (the key's maker trusted), times faster than phe", least=80),
    "sum_of_products_speedup": Aim("X^T [[w]] of 1024 x 20, times faster than phe", least=40),
    "sum_of_products_over_bound": Aim("X^T [[w]] over its counted products", most=1.5),
    "pack_speedup": Aim("packing, slots of 96 bits, times faster than phe", least=5),
    "decrypt_speedup": Aim("decryption with the private key, times faster than phe", least=3),
    "threshold_speedup": Aim("threshold decryption, packed, times faster than one bare power by GMP", least=3),
    "threshold_over_bound": Aim("threshold decryption, packed, over one bare power by GMP", most=1.3),
    "cores_scaling": Aim("X^T [[w]] by two processes, times faster than by one", least=1.8),
}


@dataclass(frozen=True)
class Effort:
    """Size of the measurement."""

    rounds: int
    growth_rounds: dict[int, int]  # rows -> rounds
    scaling_rows: int
    scaling_rounds: int


FULL = Effort(11, {100: 11, 1_000: 9, 10_000: 3, 100_000: 2}, 8192, 7)
QUICK = Effort(1, {100: 1, 200: 1}, 256, 1)


def main(argv: Sequence[str] | None = None, make_key: Callable[[int], PrivateKey] = generate_private_key) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--plot", type=Path, help="draw how the costs grow with the rows (.svg or .png)")
    parser.add_argument("--bits", help="sizes of the keys; default 2048,3072, and 2048 with --quick")
    parser.add_argument("--workers", type=int, default=2, help="processes of the scaling part")
    parser.add_argument("--quick", action="store_true", help="few rounds, few rows: to see that it runs")
    options = parser.parse_args(argv)
    effort = QUICK if options.quick else FULL
    sizes = list(map(int, (options.bits or ("2048" if options.quick else "2048,3072")).split(",")))
    console = Console(markup=False, width=120)
    result: dict[str, Any] = {
        "machine": machine.describe(),
        "phe": {"version": version("phe"), "gmp": bool(HAVE_GMP)},
    }
    show_machine(result, console)
    figures = {}
    with open_workers(ComputeSettings(backend="loky", workers=options.workers)) as workers:
        for bits in sizes:
            figures[bits] = measure_key(Subject(make_key(bits)), effort, workers)
            show(figures[bits], console)
    first, *others = sizes
    result |= figures[first] | {str(bits): figures[bits] for bits in others}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        growth_plot({bits: figures[bits]["growth"] for bits in sizes}, options.plot)


# --- the figures ------------------------------------------------------------------------------------


def measure_key(subject: Subject, effort: Effort, workers: Workers) -> dict[str, Any]:
    started = time.thread_time()
    subject.fast.draw(1)
    table_s = time.thread_time() - started
    rows = [measure(operation, subject.kernel, effort.rounds) for operation in operations(subject)]
    by_name = {row["operation"]: row for row in rows}
    encryption, sums = rows[0], by_name["X^T [[w]]"]
    decryption = threshold(subject, effort.rounds)
    scaling = cores(subject, effort, workers)
    figures: dict[str, Any] = {
        "key_bits": subject.public_key.bits,
        "product_us": statistics.median(row["product_us"] for row in rows),
        "vector_product_us": _median_or_none([row["vector_product_us"] for row in rows]),
        "encrypt_speedup": encryption["speedup"],
        "sum_of_products_speedup": sums["speedup"],
        "sum_of_products_over_bound": sums["over_bound"],
        "pack_speedup": by_name["pack"]["speedup"],
        "decrypt_speedup": by_name["decrypt"]["speedup"],
        "threshold_speedup": decryption["speedup"],
        "threshold_over_bound": decryption["over_bound"],
        "cores_scaling": scaling["scaling"],
    }
    aims = {name: {"aim": str(aim), "reached": aim.reached(figures[name])} for name, aim in AIMS.items()}
    return figures | {
        "aims": aims,
        "encrypt_table_s": table_s,
        "operations": rows,
        "threshold": decryption,
        "cores": scaling,
        "growth": list(growth(subject, effort)),
    }


def cores(subject: Subject, effort: Effort, workers: Workers) -> dict[str, Any]:
    """Return wall-clock times after a warm-up.

    They include the gain of bare products, because other programs may use the processors.
    """
    column = subject.long_column(effort.scaling_rows)
    matrix = subject.plain(effort.scaling_rows, COLUMNS)
    n, groups = int(subject.public_key.n), effort.scaling_rows // 2
    runs: dict[str, Callable[[], object]] = {
        "one": partial(columns_dot, matrix, column),
        "all": partial(columns_dot, matrix, column, workers=workers),
        "bare one": partial(bare_products, n, groups * workers.count),
        "bare all": partial(workers.map, bare_products, [(n, groups)] * workers.count),
    }
    runs["all"]()
    times = in_turn(runs, effort.scaling_rounds, time.perf_counter)
    return {
        "processes": workers.count,
        "rows": effort.scaling_rows,
        "one_s": times.median("one"),
        "all_s": times.median("all"),
        "scaling": times.ratio("one", "all"),
        "bare_products_scaling": times.ratio("bare one", "bare all"),
        "rounds": times.rounds,
    }


def bare_products(n: int, groups: int) -> None:
    """Compute bare products by the unit that computes sums of products."""
    *_, run = Products("product", n * n, groups).runs.values()
    run()


def _median_or_none(times: Sequence[float | None]) -> float | None:
    taken = [time_us for time_us in times if time_us is not None]
    return statistics.median(taken) if taken else None


def growth(subject: Subject, effort: Effort) -> Iterator[dict[str, Any]]:
    column = subject.long_column(max(effort.growth_rounds))
    for rows, rounds in effort.growth_rounds.items():
        for name, operation in (
            ("columns_dot", columns_operation(subject, column[:rows])),
            ("rows_dot", rows_operation(subject, rows)),
        ):
            figures = measure(operation, subject.kernel, rounds)
            kept = ("us", "phe_us", "speedup", "products", "by_vector_unit", "over_bound", "rounds")
            yield {"rows": rows, "columns": COLUMNS, "function": name} | {key: figures[key] for key in kept}


# --- on the screen -----------------------------------------------------------------------------------


def show_machine(result: dict[str, Any], console: Console) -> None:
    about, phe = result["machine"], result["phe"]
    console.print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}")
    console.print(f"phe {phe['version']}, {'with GMP' if phe['gmp'] else 'WITHOUT GMP: not a fair comparison'}")


def show(figures: dict[str, Any], console: Console) -> None:
    title = f"{figures['key_bits']} bits; one product mod n^2: {figures['product_us']:.2f} µs by {GMP}"
    if figures["vector_product_us"] is not None:
        title += f", {figures['vector_product_us']:.2f} µs by {VECTOR_UNIT}"
    headline = Table("figure", "measured", "aim", "reached", title=title)
    for name, aim in AIMS.items():
        headline.add_row(aim.meaning, f"{figures[name]:.2f}", str(aim), "yes" if aim.reached(figures[name]) else "NO")
    console.print(headline)
    table = Table(
        "operation", "µs", "per", "phe, µs", "times faster", "products", "half-size", f"by {VECTOR_UNIT}", "over bound"
    )
    for row in figures["operations"]:
        table.add_row(
            row["operation"], f"{row['us']:.2f}", row["per"], _optional(row, "phe_us"), _optional(row, "speedup"),
            f"{row['products']:.2f}", f"{row['half_products']:.2f}", f"{row['by_vector_unit']:.0%}",
            f"{row['over_bound']:.2f}",
        )  # fmt: skip
    console.print(table)
    threshold, cores = figures["threshold"], figures["cores"]
    console.print(f"The table for hs^a, made once: {figures['encrypt_table_s']:.2f} s.")
    console.print(
        f"Threshold decryption, {threshold['slots']} values packed: {threshold['us_per_value']:.0f} µs a value (a bare "
        f"power by GMP: {threshold['power_us']:.0f} µs); packing them before, "
        f"{threshold['pack_us_per_value']:.0f} µs a value."
    )
    console.print(
        f"{cores['rows']} x {COLUMNS}: {cores['one_s']:.2f} s in one process, {cores['all_s']:.2f} s in "
        f"{cores['processes']}; bare products were {cores['bare_products_scaling']:.2f} times faster in as many."
    )
    show_growth(figures, console)


def show_growth(figures: dict[str, Any], console: Console) -> None:
    table = Table("rows", "function", "µs per element", "phe, µs", "times faster", "products", "over bound")
    for row in figures["growth"]:
        table.add_row(
            f"{row['rows']:,}", row["function"], f"{row['us']:.2f}", f"{row['phe_us']:.1f}", f"{row['speedup']:.1f}",
            f"{row['products']:.2f}", f"{row['over_bound']:.2f}",
        )  # fmt: skip
    console.print(table)


def _optional(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.2f}" if name in row else "-"


if __name__ == "__main__":
    main()
