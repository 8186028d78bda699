"""Measure how long many parties on one machine take to start and to stop, and how much memory an idle party takes.

    python -m benchmarks.parties [--passive 2 4 8 16] [--rounds 3] [--json FILE] [--quick]

The parties are those of a taylor job: one active party, a key node, and the passive parties of `--passive`. `blindfit
init` writes their files. Parties start as `blindfit run` starts them, with published snapshots, and no job runs. RSS
counts a page of memory at each process that has it. PSS divides the page among these processes, so PSS of all processes
adds up to what they take together. The last line is a party that an operator starts by itself, with `blindfit party`.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.python.calls import init
from blindfit.coordinator.running.launcher import launch
from blindfit.parties.identity import authority

PASSIVE, ROUNDS = (2, 4, 8, 16), 3
ROWS, COLUMNS = 200, 4  # fewer columns could be computed from scores, and are refused
IDLE_S = 1.0
UP_WITHIN_S = 60.0
NO_FIGURE = float("nan")  # the operating system has no such figure
AIMS = {"up_s": 10.0, "stop_s": 5.0, "rss_mib": 110.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passive", type=int, nargs="+", default=PASSIVE, help="numbers of passive parties")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="starts of each number; the figures are medians")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="one start of two passive parties: to see that it runs")
    options = parser.parse_args()
    numbers, rounds, idle_s = ((2,), 1, 0.0) if options.quick else (options.passive, options.rounds, IDLE_S)
    result = {
        "machine": machine.describe(),
        "aims": AIMS,
        "runs": [measure(number, rounds, idle_s) for number in numbers],
        "by_command": measure_by_command(idle_s),
    }
    Console().print(table_of(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(passive: int, rounds: int, idle_s: float) -> dict[str, Any]:
    """Return medians over starts of one job; the first of them publishes and is left out."""
    with tempfile.TemporaryDirectory(prefix="blindfit-benchmark-") as directory:
        job = make_job(Path(directory), passive)
        start(job, Path(directory), 0.0)
        starts = [start(job, Path(directory), idle_s) for _ in range(rounds)]
    medians = {name: statistics.median(each[name] for each in starts) for name in starts[0]}
    return {"passive": passive, "parties": passive + 2, **medians}


def start(job: Job[Any], base: Path, idle_s: float) -> dict[str, float]:
    began = time.monotonic()
    with launch(job, base / "out") as launched:
        up_s = time.monotonic() - began
        time.sleep(idle_s)
        memory = [memory_mib(process.pid) for process in launched.processes.values()]
        stops = time.monotonic()
    stop_s = time.monotonic() - stops
    return {
        "up_s": up_s,
        "stop_s": stop_s,
        "rss_mib": max(each["Rss"] for each in memory),
        "pss_mib": sum(each["Pss"] for each in memory) / len(memory),
        "processes_left": sum(Path(f"/proc/{process.pid}").exists() for process in launched.processes.values()),
        "ports_left": sum(is_open(address) for address in launched.addresses.values()),
    }


def measure_by_command(idle_s: float) -> dict[str, float]:
    """Return the figures of one passive party that is started by itself, after its dataset was published."""
    with tempfile.TemporaryDirectory(prefix="blindfit-benchmark-") as directory:
        base = Path(directory)
        job = make_job(base, 1)
        start(job, base, 0.0)  # publishes
        name = next(iter(job.with_role("passive")))
        certificates = base / "joint" / "certificates"  # where the party's file looks for its own
        authority.create_authority(certificates, "benchmark")
        authority.issue(certificates, name, ["localhost"], role="passive")
        ready, file = base / "ready", base / "joint" / f"{name}.toml"
        words = [sys.executable, "-m", "blindfit", "party", str(file), "--ready-file", str(ready)]
        words += ["--set", "listen=127.0.0.1:0"]
        began = time.monotonic()
        with (base / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > began + UP_WITHIN_S:
                    sys.exit((base / "log").read_text())
                time.sleep(0.01)
            up_s = time.monotonic() - began
            time.sleep(idle_s)
            memory = memory_mib(process.pid)
            stops = time.monotonic()
            process.terminate()
            process.wait()
            stop_s = time.monotonic() - stops
    return {"up_s": up_s, "stop_s": stop_s, "rss_mib": memory["Rss"], "pss_mib": memory["Pss"]}


def make_job(base: Path, passive: int) -> Job[Any]:
    draw = np.random.default_rng(1)
    ids = [f"p{number}" for number in range(ROWS)]
    files = []
    for number in range(passive + 1):
        columns: dict[str, Any] = {"id": ids}
        columns |= {f"x{number}_{column}": draw.normal(size=ROWS) for column in range(COLUMNS)}
        if number == 0:
            columns["y"] = draw.integers(0, 2, ROWS)
        files.append(base / f"party{number}.csv")
        pyarrow.csv.write_csv(pa.table(columns), files[-1])
    return init(files, system="taylor", label="y", row_id="id", out=base / "joint", show=False)


def memory_mib(pid: int) -> dict[str, float]:
    """Return RSS and PSS of a process."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    if not path.exists():
        return {"Rss": NO_FIGURE, "Pss": NO_FIGURE}
    lines = (line.split() for line in path.read_text().splitlines()[1:])
    return {words[0].rstrip(":"): int(words[1]) / 2**10 for words in lines}


def is_open(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as other:
        return other.connect_ex((host, int(port))) == 0


def table_of(result: dict[str, Any]) -> Table:
    columns = (
        "parties",
        "started in, s",
        "stopped in, s",
        "largest RSS, MiB",
        "PSS of each, MiB",
        "processes left",
        "ports left",
    )
    table = Table(*columns, box=None)
    for run in result["runs"]:
        table.add_row(f"{run['passive']} passive, {run['parties']} in all", *_figures(run), *_left(run))
    table.add_row("one, by `blindfit party`", *_figures(result["by_command"]), "", "")
    return table


def _figures(run: dict[str, float]) -> Sequence[str]:
    return (f"{run['up_s']:.2f}", f"{run['stop_s']:.2f}", f"{run['rss_mib']:.0f}", f"{run['pss_mib']:.0f}")


def _left(run: dict[str, float]) -> Sequence[str]:
    return (f"{run['processes_left']:.0f}", f"{run['ports_left']:.0f}")


if __name__ == "__main__":
    main()
