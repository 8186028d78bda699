"""Tasks that the tests give to workers, which must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import BudgetExhausted, PeerTimeout
from blindfit.algorithms.paillier.kernel import Kernel, Residues

N = 3**1290 | 1 << 2047 | 1  # odd, 2048 bits


def products(kernel: Kernel, a: Residues, b: Residues) -> list[int]:
    return kernel.integers(kernel.products(a, b))


def product_tasks(count: int, size: int = 50) -> list[tuple[Kernel, Residues, Residues]]:
    """Return tasks whose results differ from task to task, and are the same in every process."""
    kernel = Kernel(N)
    vectors = [kernel.residues(pow(3 + 2 * i, 5000 + j, N * N) for j in range(size)) for i in range(count + 1)]
    return [(kernel, vectors[i], vectors[i + 1]) for i in range(count)]


def slow_sum(array: npt.NDArray[np.int64], seconds: float, index: int) -> tuple[int, int]:
    time.sleep(seconds)
    return index, int(array.sum())


def slow_tasks(count: int, seconds: float) -> list[tuple[npt.NDArray[np.int64], float, int]]:
    return [(np.full(1000, i), seconds, i) for i in range(count)]


def slow_sums(count: int) -> list[tuple[int, int]]:
    return [(i, 1000 * i) for i in range(count)]


def process(seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return os.getpid()


def meet(directory: Path, count: int) -> int:
    """Wait until this many processes have come."""
    (directory / str(os.getpid())).touch()
    give_up = time.monotonic() + 50
    while len(list(directory.iterdir())) < count and time.monotonic() < give_up:
        time.sleep(0.01)
    return os.getpid()


def leave_a_mark(directory: Path, index: int) -> int:
    (directory / str(index)).touch()
    time.sleep(0.2)
    return index


def die_once(marker: Path, index: int) -> int:
    """End the worker, unless this happened before."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return index


def die(*_secrets: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Arriving:
    """A result that leaves a mark where it is unpickled, and becomes its index there."""

    def __init__(self, directory: Path, index: int) -> None:
        self.directory, self.index = directory, index

    def __reduce__(self) -> tuple[Any, ...]:
        return arrived, (self.directory, self.index)


def arrived(directory: Path, index: int) -> int:
    (directory / f"{index}.arrived").touch()
    return index


def last_dies_once(directory: Path, index: int, last: int) -> Arriving:
    """Leave a mark for every time that it ran; the last waits for all the others' results before it dies."""
    (directory / f"{index}-{time.monotonic_ns()}").touch()
    if index == last and not (directory / "died").exists():
        while len(list(directory.glob("*.arrived"))) < last:
            time.sleep(0.01)
        time.sleep(0.3)  # until what was unpickled is noted
        (directory / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Arriving(directory, index)


def fail_with_key_error(index: int) -> None:
    raise KeyError(index)


def exhaust(index: int) -> None:
    raise BudgetExhausted(population="people", spent=1.0, budget=2.0, requested=1.5)


def wait_in_vain(index: int) -> None:
    raise PeerTimeout(peer="meter", step="Masked", timeout_s=3.0)


def kind_of(array: npt.NDArray[np.float64]) -> str:
    return type(array).__name__


def version_of(package: str) -> str:
    """Return a version that differs between processes started before and after the variable was set."""
    return os.environ.get("VERSION_OF_THE_TEST", "1.0")
