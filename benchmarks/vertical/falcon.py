"""Vertical training in secret shares, between real processes on this machine.

    python -m benchmarks.vertical.falcon [--json FILE] [--plot FILE] [--quick]

1. `shares_us_per_row` is the time of one more epoch for each row, with preprocessing and the epoch's check. The data
   are 65,536 rows of 50 + 50 features in batches of 4,096, at two data parties and a key node, with scores up to
   28 and MACs (`without_macs` has none). It is the difference of a job of three epochs and one of one epoch, over two.
   `bytes_per_row` is what all parties send, by the same difference. `shares_setup_s` is the one-time input of the
   features.
2. `online_us_per_row` is one data party's processor time for each row of an epoch, with all roles in one process and
   without the expansion of the dealing. `expanding_us_per_row` is this expansion, and `dealing_us_per_row` the key
   node's part. `online_over_bound` is the online time over that of its products of the field. Each product is timed by
   the same kernel on arrays of the same sizes, in turn with the epoch. `rounds_per_step` is counted.
3. `threshold_ms_per_row_step` and `threshold_over_bound` are for encrypted weights (falcon_threshold.py).
4. `growth` varies one thing at a time: rows, features, data parties.

The data are made up, because the cost of shares does not depend on values.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.kit.in_turn import in_turn, median_ratio
from benchmarks.vertical.falcon_threshold import AIMS_MS, FULL, QUICK, threshold
from benchmarks.vertical.growth import draw, grow
from benchmarks.vertical.job_files import Roles, begin_party_file, write_parties
from benchmarks.vertical.taylor import Party, made_up
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import FalconParameters, Held
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Dealer, Expander
from blindfit.algorithms.sharing.field import arithmetic
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import launch

REPETITIONS = 3
BASE = {"rows": 65_536, "features": 100, "parties": 2}
GROWTH: dict[str, list[int]] = {
    "rows": [10_000, 100_000, 1_000_000],
    "features": [10, 30, 100, 300],
    "parties": [2, 3, 4, 5],
}
GROWTH_BASE = {"rows": 65_536, "features": 30, "parties": 2}
TITLE = "Training in shares with MACs; otherwise 65,536 rows, 30 features, 2 data parties"
QUICK_BASE = {"rows": 256, "features": 6, "parties": 2}
QUICK_GROWTH: dict[str, list[int]] = {"parties": [2]}
BATCH_ROWS = 4096
M = TypeVar("M")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--plot", type=Path, help="draw the growth here")
    parser.add_argument("--quick", action="store_true", help="small shapes, one repetition")
    options = parser.parse_args()
    console = Console()
    base, shapes = (QUICK_BASE, QUICK_GROWTH) if options.quick else (BASE, GROWTH)
    repetitions = 1 if options.quick else REPETITIONS
    result: dict[str, Any] = {"machine": machine.describe(), **alone(base, repetitions)}
    with console.status("jobs between processes"):
        result |= between_processes(base, repetitions)
    console.print(_headline(result, base))
    result |= threshold(repetitions, *(QUICK if options.quick else FULL))
    console.print(_threshold_table(result["threshold"]))
    result["growth"] = growth(shapes, QUICK_BASE if options.quick else GROWTH_BASE, console)
    console.print(_growth_table(result["growth"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        draw(result["growth"], options.plot, TITLE, "us_per_row", "us", "bytes_per_row")


def _threshold_table(found: dict[str, dict[str, float]]) -> Table:
    table = Table(
        "encrypted weights, by", "ms a row, step and party", "aim", "products", "over bound (aim 1.5)", box=None
    )
    for unit, figures in found.items():
        ms, aim = f"{figures['ms_per_row_step']:.2f}", f"{AIMS_MS[unit]:g}"
        products, over = f"{figures['products_per_row_step']:.0f}", f"{figures['over_bound']:.2f}"
        table.add_row(unit.replace("_", " "), ms, aim, products, over)
    return table


# --- jobs between processes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    epochs: int
    put_in_s: float
    train_s: float
    bytes_sent: int


@dataclass(frozen=True)
class Epoch:
    """Cost of one more epoch for each row, and of the input, which is made once."""

    us_per_row: float
    bytes_per_row: float
    setup_s: float


def between_processes(base: dict[str, int], repetitions: int) -> dict[str, Any]:
    parties = made_up(**base)
    with_macs = [epoch_of(parties, base["rows"], "malicious") for _ in range(repetitions)]
    without = [epoch_of(parties, base["rows"], "semi-honest") for _ in range(repetitions)]
    return {
        "shares_us_per_row": round(statistics.median(run.us_per_row for run in with_macs), 3),
        "us_of_each_run": [round(run.us_per_row, 3) for run in with_macs],
        "shares_setup_s": round(statistics.median(run.setup_s for run in with_macs), 3),
        "bytes_per_row": round(statistics.median(run.bytes_per_row for run in with_macs)),
        "without_macs": {
            "shares_us_per_row": round(statistics.median(run.us_per_row for run in without), 3),
            "us_of_each_run": [round(run.us_per_row, 3) for run in without],
            "bytes_per_row": round(statistics.median(run.bytes_per_row for run in without)),
        },
    }


def epoch_of(parties: list[Party], rows: int, security: str) -> Epoch:
    short, long = (measure(parties, epochs, security) for epochs in (1, 3))
    more = (long.epochs - short.epochs) * rows
    return Epoch(
        (long.train_s - short.train_s) / more * 1e6, (long.bytes_sent - short.bytes_sent) / more, short.put_in_s
    )


def measure(parties: list[Party], epochs: int, security: str) -> Measured:
    with tempfile.TemporaryDirectory(prefix="blindfit-benchmark-") as directory:
        base = Path(directory)
        _write_job(base, parties, epochs, security)
        job = load_job(base / "job.toml")
        with launch(job, base / "out") as launched:
            session = drive(job, launched, Console(quiet=True))
    active = session.summaries[parties[0].name]
    sent = [int(str(summary.get("bytes_sent", 0))) for summary in session.summaries.values()]
    put_in_s, train_s = (float(str(active[f"timing.{lap}"])) for lap in ("put_in_s", "train_s"))
    return Measured(int(str(active["fit.epochs"])), put_in_s, train_s, sum(sent))


def _write_job(base: Path, parties: list[Party], epochs: int, security: str) -> None:
    roles = {party.name: party.role for party in parties} | {"notary": "key-node"}
    rows = len(parties[0].columns["id"])
    job = 'name = "benchmark"\nprotocol = "falcon"\nseed = 1\n[split]\ntest_fraction = 0.0\n'
    job += f"[falcon]\nepochs = {epochs}\nbatch_rows = {min(BATCH_ROWS, rows // 4)}\nvalidation_fraction = 0.0\n"
    job += 'waves = "medium"\n'
    job += f'learning_rate = 0.1\nsecurity = "{security}"\nunsafe = ["weight-bits"]\n'
    (base / "job.toml").write_text(job + write_parties(base, roles, _party_file))
    for party in parties:
        pyarrow.parquet.write_table(pa.table(party.columns), base / f"{party.name}.parquet")


def _party_file(name: str, roles: Roles) -> str:
    text = begin_party_file(name, roles, "falcon", 'unsafe = ["weight-bits"]\n')
    if roles[name] == "key-node":
        return text
    label = 'label = "y"\n' if roles[name] == "active" else ""
    return text + f'[datasets.rows]\nurl = "parquet:{name}.parquet"\nid = "id"\n{label}features = "rest"\n'


def growth(shapes: dict[str, list[int]], base: dict[str, int], console: Console) -> dict[str, list[dict[str, Any]]]:
    def measure_shape(shape: dict[str, int]) -> dict[str, float]:
        found = epoch_of(made_up(**shape), shape["rows"], "malicious")
        return {"us_per_row": found.us_per_row, "bytes_per_row": found.bytes_per_row, "setup_s": found.setup_s}

    return grow(shapes, base, measure_shape, console, digits=3)


# --- all seats in one process ---------------------------------------------------------------------------------------


class Memory:
    """Channels that hand messages over."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], asyncio.Queue[Any]] = defaultdict(asyncio.Queue)

    def channel(self, me: str) -> MemoryChannel:
        return MemoryChannel(me, self._queues)


@dataclass(frozen=True)
class MemoryChannel:
    me: str
    queues: dict[tuple[str, str], asyncio.Queue[Any]]

    async def send(self, to: str, message: object) -> None:
        queue = self.queues[self.me, to]
        queue.put_nowait(message)
        while queue.qsize() > 4:  # as a connection's window: the dealer does not run away
            await asyncio.sleep(0)

    async def receive(self, sender: str, _kind: type[M]) -> M:
        message: M = await self.queues[sender, self.me].get()
        return message


@dataclass
class Spent:
    """Processor time of this process, in all and in dealing and expanding."""

    total_s: float = 0.0
    dealing_s: float = 0.0
    expanding_s: float = 0.0

    def __sub__(self, other: Spent) -> Spent:
        return Spent(
            self.total_s - other.total_s, self.dealing_s - other.dealing_s, self.expanding_s - other.expanding_s
        )


class Counting:
    """A kernel that counts the products it computes, by what computes them."""

    def __init__(self, kernel: field.Kernel) -> None:
        self._kernel = kernel
        self.counted: dict[str, int] = defaultdict(int)

    def products(self, a: field.Elements, b: field.Elements) -> field.Elements:
        self.counted["products"] += a.size
        return self._kernel.products(a, b)

    def times_vector(self, matrix: field.Elements, vector: field.Elements) -> field.Elements:
        self.counted["times_vector"] += matrix.size
        return self._kernel.times_vector(matrix, vector)

    def transposed_times_vector(self, matrix: field.Elements, vector: field.Elements) -> field.Elements:
        self.counted["transposed_times_vector"] += matrix.size
        return self._kernel.transposed_times_vector(matrix, vector)


@dataclass(frozen=True)
class Alone:
    """One epoch in one process: time of the parties, time of the dealer, and the parties' products of the field."""

    spent: Spent
    dealing_s: float
    products: dict[str, int]


def alone(base: dict[str, int], repetitions: int) -> dict[str, Any]:
    rows, features = base["rows"], base["features"]
    runs: list[Alone] = []
    units = Units(min(BATCH_ROWS, rows // 4), features)
    times = in_turn({**units.runs, "epoch": lambda: runs.append(one_epoch(rows, features))}, repetitions)
    bound_s = sum(units.seconds(times, name) * count for name, count in runs[0].products.items())
    online = [run.spent.total_s - run.spent.dealing_s - run.spent.expanding_s for run in runs]
    us = 1e6 / rows
    twice = rounds_of(2, features) - rounds_of(1, features)
    return {
        "kernel": type(field.kernel()).__name__,
        "online_us_per_row": round(statistics.median(online) / 2 * us, 3),
        "expanding_us_per_row": round(statistics.median(run.spent.expanding_s for run in runs) / 2 * us, 3),
        "dealing_us_per_row": round(statistics.median(run.dealing_s for run in runs) * us, 3),
        "online_over_bound": round(median_ratio(online, [bound_s] * len(online)), 3),
        "products_per_row": round(sum(runs[0].products.values()) / 2 / rows, 1),
        "rounds_per_step": twice,
    }


@dataclass(frozen=True)
class Units:
    """The field's products on arrays of a step's sizes."""

    rows: int
    features: int

    @property
    def runs(self) -> dict[str, Any]:
        draw = np.random.default_rng(1)
        matrix = draw.integers(0, field.P, (self.rows, self.features), dtype=np.uint64)
        wide, narrow = matrix[0].copy(), draw.integers(0, field.P, self.rows, dtype=np.uint64)
        stack = draw.integers(0, field.P, (32, self.rows), dtype=np.uint64)
        kernel = field.kernel()
        return {
            "products": lambda: kernel.products(stack, stack),
            "times_vector": lambda: kernel.times_vector(matrix, wide),
            "transposed_times_vector": lambda: kernel.transposed_times_vector(matrix, narrow),
        }

    def seconds(self, times: Any, name: str) -> float:
        """Return the seconds of one product."""
        count = 32 * self.rows if name == "products" else self.rows * self.features
        return float(times.median(name)) / count


def parameters(rows: int, features: int, batch_rows: int) -> FalconParameters:
    own = features // 2
    return FalconParameters(
        data_parties=("party-0", "party-1"),
        key_node="notary",
        columns=(own, features - own),
        batch_rows=(batch_rows,) * (rows // batch_rows),
        validation_rows=0,
        test_rows=0,
        epochs=1,
        optimiser=OptimiserSettings(learning_rate=0.1),
        intercept=False,
    )


def one_epoch(rows: int, features: int) -> Alone:
    """Run one epoch, and return its figures from the first step to its end."""
    batch_rows = min(BATCH_ROWS, rows // 4)
    p, kernel, spent = parameters(rows, features, batch_rows), Counting(field.kernel()), Spent()
    marks: list[tuple[Spent, dict[str, int]]] = []
    dealt_at: list[float] = []

    def mark(step: object = "", *_: object) -> None:
        if step in ("put in", "open weights"):
            return
        now = Spent(time.process_time(), spent.dealing_s, spent.expanding_s)
        marks.append((now, dict(kernel.counted)))

    def mark_dealt(step: object = "", *_: object) -> None:
        if step not in ("put in", "open weights"):
            dealt_at.append(spent.dealing_s)

    with _instrumented(kernel, spent):
        asyncio.run(_run(p, rows, features, mark, mark_dealt))
    (begun, before), (ended, after) = marks[0], marks[-1]
    products = {name: after[name] - before.get(name, 0) for name in after}
    return Alone(ended - begun, dealt_at[-1] - dealt_at[0], products)


def rounds_of(steps: int, features: int) -> int:
    """Return the rounds of openings and checks in a run of this many steps."""
    rows = 64 * steps
    return asyncio.run(_run(parameters(rows, features, 64), rows, features, _not_marked, _not_marked))


def _not_marked(*_: object) -> None: ...


async def _run(p: FalconParameters, rows: int, features: int, mark: Any, mark_dealt: Any) -> int:
    """Return the rounds of a party.

    The first party calls `mark`. The dealer, which is ahead of it, calls `mark_dealt`.
    """
    draw = np.random.default_rng(1)
    x = draw.integers(-(2**12), 2**12, (rows, features))
    y = draw.integers(0, 2, rows)
    seeds, memory, rounds = [Seed.random(), Seed.random()], Memory(), list[int]()
    first, of_dealer = falcon.Progress(report=mark, keep=mark), falcon.Progress(report=mark_dealt, keep=mark_dealt)

    async def party(place: int) -> None:
        name, blocks = p.data_parties[place], np.split(x, [p.columns[0]], axis=1)
        held = Held(blocks[place], y if place == 0 else None)
        progress = first if place == 0 else None
        channel = memory.channel(name)
        trained = await falcon.run_data_party(name, held, p, seeds[place], "benchmark", channel, progress=progress)
        rounds.append(trained.rounds)

    async with asyncio.TaskGroup() as tasks:
        for place in range(2):
            tasks.create_task(party(place))
        dealer = falcon.run_key_node(p, seeds, "benchmark", memory.channel("notary"), progress=of_dealer)
        tasks.create_task(dealer)
    return rounds[0]


@contextlib.contextmanager
def _instrumented(kernel: Counting, spent: Spent) -> Iterator[None]:
    """Time dealing and expanding, and do not count the products of the field in them."""
    deal, shares = Dealer.deal, Expander.shares

    def timed(work: Callable[..., Any], add: Callable[[float], None]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            counted, started = dict(kernel.counted), time.process_time()
            result = work(*arguments)
            add(time.process_time() - started)
            kernel.counted.clear()
            kernel.counted.update(counted)
            return result

        return run

    def dealt(seconds: float) -> None:
        spent.dealing_s += seconds

    def expanded(seconds: float) -> None:
        spent.expanding_s += seconds

    with (
        mock.patch.object(Dealer, "deal", timed(deal, dealt)),
        mock.patch.object(Expander, "shares", timed(shares, expanded)),
        mock.patch.object(arithmetic, "kernel", return_value=kernel),
    ):
        yield


# --- showing --------------------------------------------------------------------------------------------------------


def _headline(result: dict[str, Any], base: dict[str, int]) -> Table:
    table = Table(f"{base['rows']:,} rows of {base['features']} features, 2 data parties", "measured", box=None)
    table.add_row("us for each row and epoch, between processes, with MACs", f"{result['shares_us_per_row']:.2f}")
    table.add_row("the same without MACs", f"{result['without_macs']['shares_us_per_row']:.2f}")
    table.add_row("seconds to put the features in, once", f"{result['shares_setup_s']:.2f}")
    table.add_row("bytes sent by all, each row and epoch, with MACs", f"{result['bytes_per_row']:,}")
    table.add_row("the same without MACs", f"{result['without_macs']['bytes_per_row']:,}")
    table.add_row("a party's processor time online, us a row", f"{result['online_us_per_row']:.2f}")
    table.add_row("and to expand what was dealt", f"{result['expanding_us_per_row']:.2f}")
    table.add_row("the key node's, to deal", f"{result['dealing_us_per_row']:.2f}")
    bound = f"{result['online_over_bound']:.2f} ({result['products_per_row']:.0f} products a row, {result['kernel']})"
    table.add_row("online over the time of its products", bound)
    table.add_row("rounds a step", str(result["rounds_per_step"]))
    return table


def _growth_table(grown: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table("varied", *GROWTH_BASE, "us / row epoch", "bytes / row epoch", "set-up s", box=None)
    for varied, points in grown.items():
        for point in points:
            shape = [f"{point[name]:,}" for name in GROWTH_BASE]
            figures = (f"{point['us_per_row']:.2f}", f"{point['bytes_per_row']:,.0f}", f"{point['setup_s']:.2f}")
            table.add_row(varied, *shape, *figures)
    return table


if __name__ == "__main__":
    main()
