"""Processes that release until they are killed, or race for the last unit: orders come on standard input.

python -m tests.measurement.children releasing DIRECTORY     a line: fork a child that releases; prints its pid
python -m tests.measurement.children racing THREADS          a line "DIRECTORY TIME PREFIX": all threads release at
                                                             that time; prints what became of each
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from blindfit.algorithms.errors import BudgetExhausted
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.walr import NoisySum, Tally
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.desk import AggregateDesk
from tests.measurement.house import NAMES, House, make_dataset, one_hot
from tests.measurement.talking import fork_until_killed, main

RELEASE_EPSILON, BUDGET = 0.2, Budget(1.0, 1e-6)  # room for about 20 releases
LAST_UNIT = Budget(1.0, 1e-6)
RACE_EPSILON = 0.7  # two of them do not fit


def dataset_of(directory: Path) -> LabelDataset:
    return make_dataset(directory, {name: i % 2 for i, name in enumerate(NAMES)})


# --- releasing ----------------------------------------------------------------------------------------


def releasing(directory: Path) -> None:
    dataset = dataset_of(directory)
    fork_until_killed(lambda directory: release_until_killed(directory, dataset))


def release_until_killed(directory: Path, dataset: LabelDataset) -> None:
    """Write down each answer only after `release` returned; the system keeps a file's content after the
    process ends.
    """
    log = os.open(directory / "answers", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    house = House(directory, {"visits": dataset}, BUDGET)
    rng = random.Random()
    names: list[str] = []
    for name in new_names(house):
        try:
            answer = house.octets(epsilon=RELEASE_EPSILON, release=name)
            names.append(name)
        except BudgetExhausted:
            name = rng.choice(names) if names else "0"
            answer = house.octets(epsilon=RELEASE_EPSILON, release=name)
        os.write(log, f"{name} {answer.hex()}\n".encode())


def new_names(house: House) -> Iterator[str]:
    """Yield names, first the last one that may have been answered: the active party that lost the answer asks again."""
    return map(str, count(max(0, len(house.entries) - 1)))


# --- racing -------------------------------------------------------------------------------------------


def racing(n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as threads:
        datasets: dict[Path, LabelDataset] = {}
        for line in sys.stdin:
            directory, start, prefix = line.split()
            dataset = datasets.setdefault(Path(directory).parent, dataset_of(Path(directory).parent / str(os.getpid())))
            house = House(Path(directory), {"visits": dataset}, LAST_UNIT)
            names = [prefix if prefix == "same" else f"{prefix}-{i}" for i in range(n_threads)]
            got = list(threads.map(lambda name, h=house, at=float(start): race(h, name, at), names))
            house.close()  # before the test reads the line: it removes the files
            print(*got, flush=True)


def race(house: House, name: str, start: float) -> str:
    """Return the racer's release in hexadecimal, or nothing if the budget was spent."""

    class WaitingDesk(AggregateDesk):
        """All racers were admitted, and now want to charge at once."""

        def release(self, tally: Tally) -> NoisySum:
            time.sleep(max(0.0, start - time.time()))
            return super().release(tally)

    request = house.request(one_hot(), epsilon=RACE_EPSILON, release=name)
    try:
        answer, _ = house.send(one_hot(), request, make_desk=WaitingDesk)
    except BudgetExhausted:
        return "-"
    return measurement_codec.answer_to_pb(answer).SerializeToString().hex()


if __name__ == "__main__":
    main(releasing, racing)
