"""Measure how a measurement server builds its label index: in its own process, and by two workers of a Dask cluster.

    python -m benchmarks.walr.label_index [--json FILE] [--rows 1000000] [--persons] [--rounds 5] [--quick]

Builds run in turn, each in a new server process. The figures are medians of the time until the index is on the disk,
the processor time of the server's process and of all processes, and the peak memory of the server's process.
`time_alone_over_cluster` is the median of each round's ratio. `disk_bytes_per_row` is the most that the build had on
the disk, and what stays.

`microseconds_per_id` is the processor time of the server's process for each id of a batch. It is measured for a look-up
in the index, and for an id that goes to the workers and comes back as a label, which costs the workers nothing here.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import LocalCluster
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.kit.in_turn import median_ratio
from blindfit.algorithms.workers import OpenWorkers, in_this_process
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.measurement.label_index import open_index, write_index
from blindfit.parties.work.compute import ComputeSettings, open_workers

PROCESSES = multiprocessing.get_context("forkserver")
WORKERS = 2
QUICK_ROWS = 2_000  # so few that no cluster is asked
ROWS_OF_A_PERSON = 3
ROWS_AT_ONCE = 1 << 17
LOOKS_EVERY_S = 0.05
SHOWN = ("time_alone_over_cluster", "disk_bytes_per_row", "microseconds_per_id")
IDS_OF_A_BATCH, BATCHES, QUICK_BATCHES = 1 << 14, 20, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--persons", action="store_true", help=f"{ROWS_OF_A_PERSON} rows of each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few rows, workers in this process: to see that it runs")
    options = parser.parse_args()
    n_rows, rounds = (QUICK_ROWS, 1) if options.quick else (options.rows, options.rounds)
    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=not options.quick, protocol="tcp://", dashboard_address=None
    ) as cluster:
        figures = measure(cluster, n_rows, rounds, persons=options.persons, quick=options.quick)
        result = {"machine": machine.describe(), **figures}
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def build(directory: Path, address: str, *, persons: bool) -> dict[str, float]:
    """Build the index in a process of its own, as a server does."""
    settings = DatasetSettings(url="parquet:rows.parquet", id="id", label="y", person="who" if persons else None)
    source = open_source(settings, directory, "rows")
    index = Path(tempfile.mkdtemp(dir=directory))
    with watched(index) as seen:
        started, used = time.perf_counter(), time.process_time()
        write_index(source, index, open_workers=workers_at(address))
        took_s, processor_s = time.perf_counter() - started, time.process_time() - used
    stays = sum(path.stat().st_size for path in index.iterdir())
    peak_kib = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return {
        "seconds": took_s,
        "server_processor_s": processor_s,
        "server_peak_mib": int(peak_kib[1]) / 1024 if peak_kib else float("nan"),
        "disk_bytes": max([*seen, stays]),
        "index_bytes": stays,
    }


def workers_at(address: str) -> OpenWorkers:
    return (lambda: open_workers(ComputeSettings(backend="dask", address=address))) if address else in_this_process


@contextmanager
def watched(directory: Path) -> Iterator[list[int]]:
    """Yield a list that gets the bytes below the directory again and again."""
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOKS_EVERY_S):
            found = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
            seen.append(sum(found))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def measure(cluster: LocalCluster, n_rows: int, rounds: int, *, persons: bool, quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, cluster.get_client() as client:
        write_rows(Path(folder) / "rows.parquet", n_rows)
        batches = QUICK_BATCHES if quick else BATCHES
        per_id = microseconds_per_id(Path(folder), n_rows, cluster.scheduler_address, batches)
        found: dict[str, list[dict[str, float]]] = {"alone": [], "cluster": []}
        for round_number in range(1 if quick else 0, rounds + 1):  # in round 0 the workers import what they need
            for name, address in (("alone", ""), ("cluster", cluster.scheduler_address)):
                before = sum(client.run(time.process_time).values())
                figures = started(Path(folder), address, persons=persons)
                used = sum(client.run(time.process_time).values()) - before
                figures["processor_s"] = figures["server_processor_s"] + (used if address else 0.0)
                if round_number:
                    found[name].append(figures)
    medians = {
        name: {key: statistics.median(each[key] for each in figures) for key in figures[0]}
        for name, figures in found.items()
    }
    seconds = {name: [each["seconds"] for each in figures] for name, figures in found.items()}
    return {
        "rows": n_rows,
        "persons": persons,
        "rounds": rounds,
        **medians,
        "time_alone_over_cluster": median_ratio(seconds["alone"], seconds["cluster"]),
        "microseconds_per_id": per_id,
        "disk_bytes_per_row": [medians["cluster"][key] / n_rows for key in ("disk_bytes", "index_bytes")],
    }


def started(folder: Path, address: str, *, persons: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        (Path(directory) / "rows.parquet").hardlink_to(folder / "rows.parquet")
        here, there = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=built, args=(there, Path(directory), address, persons))
        process.start()
        there.close()
        figures: dict[str, float] = here.recv()
        process.join()
    return figures


def built(answer: Connection, directory: Path, address: str, persons: bool) -> None:
    answer.send(build(directory, address, persons=persons))


def microseconds_per_id(folder: Path, n_rows: int, address: str, batches: int) -> dict[str, float]:
    source = open_source(DatasetSettings(url="parquet:rows.parquet", id="id", label="y"), folder, "rows")
    rng = np.random.default_rng(4)
    with tempfile.TemporaryDirectory(dir=folder) as directory, workers_at(address)() as workers:
        write_index(source, Path(directory))
        with open_index(Path(directory)) as index, index.new_request(None, "zero") as request:

            def next_batch() -> Any:
                return pa.array(rng.integers(0, n_rows, IDS_OF_A_BATCH) + 10**9).unique().cast(pa.string())

            def ship(ids: Any) -> None:
                workers.map(
                    labels_of, [(ids.slice(len(ids) * i // WORKERS, len(ids) // WORKERS),) for i in range(WORKERS)]
                )

            ship(next_batch())
            times: dict[str, list[float]] = {"looked_up": [], "shipped": []}
            for _ in range(batches):
                ids = next_batch()
                for name, function in (("looked_up", request.join), ("shipped", ship)):
                    before = time.process_time()
                    function(ids)
                    times[name].append((time.process_time() - before) / len(ids) * 1e6)
    return {name: statistics.median(taken) for name, taken in times.items()}


def labels_of(ids: Any) -> NDArray[np.uint8]:
    return np.zeros(len(ids), np.uint8)


def write_rows(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.permutation(n_rows)
    with pq.ParquetWriter(path, pa.schema({"id": pa.string(), "who": pa.string(), "y": pa.int64()})) as writer:
        for start in range(0, n_rows, ROWS_AT_ONCE):
            some = numbers[start : start + ROWS_AT_ONCE]
            texts = [pa.array(values).cast(pa.string()) for values in (some + 10**9, some // ROWS_OF_A_PERSON)]
            writer.write_table(pa.table({"id": texts[0], "who": texts[1], "y": rng.integers(0, 2, len(some))}))


def show(result: dict[str, Any], console: Console) -> None:
    persons = ", with persons" if result["persons"] else ""
    table = Table(title=f"A label index of {result['rows']:,} rows{persons}; medians of {result['rounds']}")
    for column in ("", "seconds", "processor s, server", "processor s, all", "server's peak, MiB"):
        table.add_column(column, justify="right")
    for name, title in (("alone", "this process"), ("cluster", f"{WORKERS} workers")):
        keys = ("seconds", "server_processor_s", "processor_s", "server_peak_mib")
        table.add_row(title, *(f"{result[name][key]:.2f}" for key in keys))
    console.print(table)
    console.print_json(data={key: result[key] for key in SHOWN})


if __name__ == "__main__":
    main()
