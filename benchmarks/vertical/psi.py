"""Measure how near private set intersection comes to the time of the group operations that it cannot do without.

    python -m benchmarks.vertical.psi [--ids 100000] [--cores 2] [--json FILE] [--quick]

Two data parties have as many ids each, half of them common, and there is a key node. All three roles run in this
process, each with as many threads as there are cores. The network is in memory and still encodes every message. The
processor does the work of three machines here; where each role has its own, their work overlaps.

The bound counts, for each id: a point from a hash, two scalar multiplications (one by each party), and the key node's
check that the point is in the prime subgroup, which is a multiplication by the group's order. The time of one is
measured in the same run, before and after, on one core. On a machine with other work, "cores got" is lower, and the
processor's time is the better figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from nacl import bindings
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.algorithms.alignment import psi
from blindfit.algorithms.alignment.psi import BlindingKey
from blindfit.algorithms.protocols import align
from blindfit.algorithms.randomness import system_uniform
from blindfit.parties.wire.channel import LocalNetwork

PARTIES = ("advertiser", "bank")
KEY_NODE = "key node"
ROLES = {"advertiser": "active", "bank": "passive", KEY_NODE: "key-node"}
IDS, QUICK_IDS = 100_000, 500
OPERATIONS = 4_000  # of each kind, for the time of one
AIM_OVER_BOUND = 1.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, help=f"at each of the two data parties; default {IDS:,}")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_IDS:,} ids: to see that it runs")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    ids = options.ids or (QUICK_IDS if options.quick else IDS)
    result = {"machine": machine.describe()} | measure(ids, len(os.sched_getaffinity(0)))
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(ids: int, cores: int) -> dict[str, Any]:
    sets = [[f"person-{n:09d}" for n in range(start, start + ids)] for start in (0, ids // 2)]
    before_mib = peak_mib()
    first = operation_times()
    clocks = Clocks()
    cpu_before_s = time.process_time()
    alignments, elapsed_s = timed(lambda: asyncio.run(align_all(sets, cores, clocks)))
    cpu_s = time.process_time() - cpu_before_s
    operations_us = {name: (first[name] + second) / 2 for name, second in operation_times().items()}
    require_right(sets, alignments, ids - ids // 2)
    counts = {"hash_to_point": 2 * ids, "multiplication": 4 * ids, "check": 2 * ids}
    bound_s = {name: counts[name] * operations_us[name] * 1e-6 / cores for name in counts}
    return {
        "ids": ids,
        "cores_used": cores,
        "roles": "one process, two data parties and a key node, threads",
        "elapsed_s": elapsed_s,
        "ids_per_s": 2 * ids / elapsed_s,
        "blinding_s": clocks.blinded_s,
        "cpu_s": cpu_s,
        "cores_got": cpu_s / elapsed_s,
        "operations": counts,
        "operation_us": operations_us,
        "bound_s": sum(bound_s.values()),
        "over_bound": elapsed_s / sum(bound_s.values()),
        "cpu_over_bound": cpu_s / cores / sum(bound_s.values()),
        "over_bound_without_checks": elapsed_s / (bound_s["hash_to_point"] + bound_s["multiplication"]),
        "aim_over_bound": AIM_OVER_BOUND,
        "ids_mib": before_mib,
        "peak_mib": peak_mib(),
    }


# --- the run -------------------------------------------------------------------------------------------


@dataclass
class Clocks:
    """When the last point was blinded: what comes before is group operations, what comes after is comparing."""

    started: float = field(default_factory=time.perf_counter)
    blinded_s: float = 0.0

    def report(self, _step: str, _done: int, _total: int) -> None:
        self.blinded_s = time.perf_counter() - self.started


async def align_all(sets: list[list[str]], cores: int, clocks: Clocks) -> list[align.Alignment]:
    network = LocalNetwork(ROLES, align.TABLE, timeout_s=3600)
    clocks.started = time.perf_counter()
    options: dict[str, Any] = {
        "workers": psi.Threads(cores),
        "in_thread": asyncio.to_thread,
        "report": clocks.report,
    }
    key_node = align.run_key_node(PARTIES, KEY_NODE, network.channel(KEY_NODE), **options)
    data_parties = [
        align.run_data_party(ids, party, PARTIES, KEY_NODE, network.channel(party), **options)
        for ids, party in zip(sets, PARTIES, strict=True)
    ]
    alignments, _ = await asyncio.gather(asyncio.gather(*data_parties), key_node)
    return alignments


def timed(work: Callable[[], list[align.Alignment]]) -> tuple[list[align.Alignment], float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def require_right(sets: list[list[str]], alignments: list[align.Alignment], common: int) -> None:
    """Check that the parties were aligned; the time of a wrong result means nothing."""
    aligned = [[ids[row] for row in own.positions] for ids, own in zip(sets, alignments, strict=True)]
    if aligned[0] != aligned[1] or len(set(aligned[0])) != common:
        raise SystemExit("the parties were not aligned")


def peak_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


# --- the bound -----------------------------------------------------------------------------------------


def operation_times() -> dict[str, float]:
    """Return the microseconds of one operation on one core, in processor time, as the median of five rounds."""
    scalar = BlindingKey.draw(system_uniform).scalar
    point = psi.hash_id("person")
    uniform = np.random.default_rng(0).bytes(psi.POINT_BYTES)
    kinds: dict[str, Callable[[], object]] = {
        "hash_to_point": partial(bindings.crypto_core_ed25519_from_uniform, uniform),
        "multiplication": partial(bindings.crypto_scalarmult_ed25519_noclamp, scalar, point),
        "check": partial(bindings.crypto_core_ed25519_is_valid_point, point),
    }
    return {name: statistics.median(_time_us(operation) for _ in range(5)) for name, operation in kinds.items()}


def _time_us(operation: Callable[[], object]) -> float:
    started = time.process_time()
    for _ in range(OPERATIONS // 5):
        operation()
    return (time.process_time() - started) / (OPERATIONS // 5) * 1e6


def show(result: dict[str, Any], console: Console) -> None:
    title = f"{result['ids']:,} ids x {result['ids']:,} ids on {result['cores_used']} cores; {result['roles']}"
    table = Table("figure", "value", title=title)
    table.add_row("all of it", f"{result['elapsed_s']:.1f} s, {result['ids_per_s']:,.0f} ids/s")
    table.add_row("until the last point was checked", f"{result['blinding_s']:.1f} s")
    for name, count in result["operations"].items():
        table.add_row(f"{name.replace('_', ' ')}s", f"{count:,} of {result['operation_us'][name]:.1f} µs")
    table.add_row("their bound", f"{result['bound_s']:.1f} s")
    table.add_row("over the bound", f"{result['over_bound']:.3f} (aim: at most {result['aim_over_bound']})")
    table.add_row("over it in processor time", f"{result['cpu_over_bound']:.3f} ({result['cores_got']:.2f} cores got)")
    table.add_row("over the bound without checks", f"{result['over_bound_without_checks']:.3f}")
    table.add_row("peak memory", f"{result['peak_mib']:,.0f} MiB, of which {result['ids_mib']:,.0f} before the start")
    console.print(table)


if __name__ == "__main__":
    main()
