"""Processes that release labels until they are killed, or race for the last unit: orders come on standard input.

python -m tests.release_labels.children releasing DIRECTORY   a line: fork a child that releases; prints its pid
python -m tests.release_labels.children racing THREADS        a line "DIRECTORY TIME PREFIX": all threads release at
                                                              that time; prints what became of each
"""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from blindfit.algorithms.errors import BudgetExhausted, PolicyRefused
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.label_dp.release import Received
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.release_labels import LOST
from tests.measurement.house import House
from tests.measurement.talking import fork_until_killed, main
from tests.release_labels.house import NAMES, Counter, make_labels

BUDGET = Budget(12.0, 1e-6)  # room for twelve releases
LAST_UNIT = Budget(1.5, 1e-6)  # budget for one release


def octets(received: Received) -> str:
    return received.steps.tobytes().hex()


def releasing(directory: Path) -> None:
    dataset = make_labels(directory)
    fork_until_killed(lambda directory: release_until_killed(directory, dataset))


def release_until_killed(directory: Path, dataset: LabelDataset) -> None:
    """Write down each answer only after it has come; the system keeps a file's content after the process ends."""
    log = os.open(directory / "answers", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    counter = Counter(House(directory, {"prices": dataset}, BUDGET))
    rng = random.Random()
    stored = counter.house.service.store.reader().label_releases()
    names = [kept.release for kept in stored if kept.labels_sha256]
    for number in count(max(0, counter.charges - 1)):
        try:
            name, answer = str(number), octets(counter.ask(release=str(number)))
            names.append(name)
        except PolicyRefused as refused:
            if refused.reason != LOST:
                raise
            continue  # the child before was killed between its charge and its answer
        except BudgetExhausted:
            name = rng.choice(names)
            answer = octets(counter.ask(release=name))
        os.write(log, f"{name} {answer}\n".encode())


def racing(n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as threads:
        datasets: dict[Path, LabelDataset] = {}
        for line in sys.stdin:
            directory, start, prefix = line.split()
            own = Path(directory).parent / str(os.getpid())
            dataset = datasets[own] = datasets.get(own) or make_labels(own)
            counters = [Counter(House(Path(directory), {"prices": dataset}, LAST_UNIT)) for _ in range(n_threads)]
            names = [prefix if prefix == "same" else f"{prefix}-{i}" for i in range(n_threads)]
            print(*threads.map(lambda c, name, at=float(start): race(c, name, at), counters, names), flush=True)
            for counter in counters:
                counter.house.close()


def race(counter: Counter, name: str, start: float) -> str:
    """Return the racer's labels in hexadecimal, or nothing if the budget was spent."""
    time.sleep(max(0.0, start - time.time()))
    try:
        return octets(counter.ask(NAMES, release=name))
    except BudgetExhausted:
        return "-"


if __name__ == "__main__":
    main(releasing, racing)
