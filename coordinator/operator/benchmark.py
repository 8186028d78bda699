"""`blindfit benchmark`: test whether a party's workers work, and measure how much faster they are than one worker."""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from blindfit.algorithms.errors import ComputeFailed
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.workers import Workers
from blindfit.coordinator.terminal.json_output import Found
from blindfit.parties.settings import PartySettings
from blindfit.parties.work.compute import workers_of

KEY_BITS = (2048, 3072)
BATCH = 2048  # residues
ROUNDS = 32  # products of a batch in one task: a quarter of a second, similar to a task of a job
TASKS_PER_WORKER = 4


@dataclass(frozen=True)
class Calibration:
    """Measured speed. Rates are products mod n^2 in a second, n of KEY_BITS[0], with the transport there and back."""

    backend: str
    workers: int
    product_us: dict[int, float]  # for one product on one core of this machine, by key bits
    vector_unit: bool  # True if this processor multiplies eight numbers at a time
    start_s: float  # until every worker finished its first task
    one_per_s: float
    all_per_s: float


def calibrate(settings: PartySettings, base_dir: Path) -> Found:
    """Measure on this machine and through the workers.

    Raises:
        ComputeFailed: the workers cannot be reached, fail, or compute other results than this process.
    """
    with workers_of(settings, base_dir) as workers:
        measured = _measure(settings.compute.address or settings.compute.backend, workers)
    return Found({"party": settings.name, **asdict(measured)}, (_table(settings.name, measured),))


def _measure(backend: str, workers: Workers) -> Calibration:
    product_us = {bits: _product_us(*_random_batch(bits)) for bits in KEY_BITS}
    task = _random_batch(KEY_BITS[0])
    has_unit = task[0].unit is not None
    right = _multiply_repeatedly(*task)
    start_s = _time(backend, workers, [task] * workers.count, right)
    one_s = sum(_time(backend, workers, [task], right) for _ in range(TASKS_PER_WORKER))
    all_s = _time(backend, workers, [task] * (TASKS_PER_WORKER * workers.count), right)
    products = BATCH * ROUNDS * TASKS_PER_WORKER
    return Calibration(
        backend, workers.count, product_us, has_unit, start_s, products / one_s, products * workers.count / all_s
    )


def _random_batch(bits: int) -> tuple[Kernel, Residues, Residues]:
    """Return a modulus whose key nobody has, and two vectors."""
    kernel = Kernel(secrets.randbits(bits) | 1 << (bits - 1) | 1)
    below = int(kernel.modulus)
    a, b = (kernel.residues(secrets.randbelow(below) for _ in range(BATCH)) for _ in range(2))
    return kernel, a, b


def _product_us(kernel: Kernel, a: Residues, b: Residues) -> float:
    started = time.perf_counter()
    kernel.products(a, b)
    return 1e6 * (time.perf_counter() - started) / BATCH


def _multiply_repeatedly(kernel: Kernel, a: Residues, b: Residues) -> list[int]:
    for _ in range(ROUNDS):
        a = kernel.products(a, b)
    return kernel.integers(a)


def _time(backend: str, workers: Workers, tasks: list[tuple[Kernel, Residues, Residues]], right: list[int]) -> float:
    started = time.perf_counter()
    results = workers.map(_multiply_repeatedly, tasks)
    elapsed_s = time.perf_counter() - started
    wrong = sum(result != right for result in results)
    if wrong:
        raise ComputeFailed(
            backend=backend,
            failed=wrong,
            tasks=len(tasks),
            reason="their products differ from those of this process",
            hint="check the workers' version of gmpy2, and their memory",
        )
    return elapsed_s


def _table(party: str, measured: Calibration) -> Table:
    table = Table(title=f"Workers of {party}", box=SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("backend", measured.backend)
    table.add_row("workers", str(measured.workers))
    for bits, product_us in measured.product_us.items():
        table.add_row(f"product_us, {bits} bits, one core here", f"{product_us:.2f}")
    table.add_row("eight products at once (AVX-512 IFMA) here", "yes" if measured.vector_unit else "no")
    table.add_row("start_s, the first task of every worker", f"{measured.start_s:.2f}")
    table.add_row("products per second, one worker", f"{measured.one_per_s:,.0f}")
    table.add_row("products per second, all workers", f"{measured.all_per_s:,.0f}")
    table.add_row("scaling", f"{measured.all_per_s / measured.one_per_s:.2f}")
    return table
