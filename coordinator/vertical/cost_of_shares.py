"""The cost of a training on secret shares: counted from its program, timed by a small training on this machine.

Computation grows with what is dealt. Waiting grows with the rounds: in each round every data party sends a message to
every other, and goes on when all messages are there.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key
from blindfit.algorithms.paillier.threshold import deal
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import FalconParameters, Held, Progress
from blindfit.algorithms.protocols.falcon.program import run_program
from blindfit.algorithms.protocols.falcon.seats import ModelState, zeros
from blindfit.algorithms.protocols.falcon.selection import select
from blindfit.algorithms.sharing.descent import Labels
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.products import DealerMatrix
from blindfit.algorithms.statistics.vertical.selection import Selection
from blindfit.coordinator.vertical.counted import Counted, counting_seat
from blindfit.parties.wire.channel import LocalNetwork

BYTES_PER_ELEMENT = 8
# In seconds of a core, between processes over TLS: measured as additional processor time of 40 epochs of 38 rounds.
MESSAGE_S = 0.0025
NOISE_S = 44e-6  # of a core, to draw one number of noise exactly
BUSY = 0.88  # used share of a machine's cores if all parties share it: they also wait for each other
TRAINED_ROWS, TESTED_ROWS = (64, 2048), 128  # for the trials
ENCRYPTED_ROWS = (16, 128)  # the same, for encrypted weights
WITHOUT_END = 10_000


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of one core of this machine if nothing else uses it, for each element that is dealt.

    The time covers the work of all parties, with the key node.

    Attributes:
        element_s: seconds of an element of the training.
        compared_s: seconds of an element of figures of test rows, which consist of comparisons.
    """

    element_s: float
    compared_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a training, by part.

    Attributes:
        start: input of rows and labels, and all trainings of folds.
        first, epoch: first epoch, and each later epoch, which also compares losses.
        end: weights and figures.
    """

    parameters: FalconParameters
    start: Counted
    first: Counted
    epoch: Counted
    end: Counted

    @property
    def all(self) -> Counted:
        """Cost of a training that runs to its last epoch."""
        return self.start + self.first + self.epoch.times(self.parameters.epochs - 1) + self.end

    def epoch_seconds(self, speed: Speed, cores: int) -> float:
        """Return the seconds of an epoch, with all parties on one machine that runs nothing else."""
        counted = self.epoch if self.parameters.epochs > 1 else self.first
        return self._seconds(counted, speed.element_s, cores) + self._noise_seconds(1, cores)

    def train_seconds(self, speed: Speed, cores: int) -> float:
        """Return the seconds of a training that runs to its last epoch, likewise."""
        trained_s = self._seconds(self.all - self.end, speed.element_s, cores)
        opened_s = self._seconds(self.end, speed.compared_s, cores)
        return trained_s + opened_s + self._noise_seconds(self.parameters.epochs, cores)

    def _seconds(self, counted: Counted, element_s: float, cores: int) -> float:
        parties = len(self.parameters.data_parties)
        messages = counted.rounds * parties * (parties - 1)
        return (counted.dealt * element_s + messages * MESSAGE_S) / (BUSY * min(cores, parties + 1))

    def _noise_seconds(self, epochs: int, cores: int) -> float:
        """Return the seconds in which every data party draws its noise, for each weight in each step."""
        p = self.parameters
        if p.noise is None:
            return 0.0
        numbers = epochs * len(p.batch_rows) * sum(p.columns)
        parties = len(p.data_parties)
        return numbers * NOISE_S * parties / (BUSY * min(cores, parties + 1))

    def dealt_bytes(self, counted: Counted) -> int:
        """Return the bytes from the key node to the active party."""
        return BYTES_PER_ELEMENT * counted.dealt

    def count_exchanged_bytes(self, counted: Counted) -> int:
        """Return the bytes that all data parties exchange with each other."""
        others = len(self.parameters.data_parties) - 1
        opened = BYTES_PER_ELEMENT * counted.opened + 2 * (self.parameters.key_bits or 0) // 8 * counted.ciphertexts
        return others * (BYTES_PER_ELEMENT * counted.put_in + opened * len(self.parameters.data_parties))


def cost_of(parameters: FalconParameters) -> Cost:
    """Count the cost of a job. A training with a grid has the epochs of the largest grid point."""
    if parameters.selection is None:
        return _cost_of_training(parameters)
    points = range(len(parameters.selection.points))
    longest = max(points, key=lambda point: parameters.at(point).epochs)
    final = _cost_of_training(parameters.at(longest))
    descents = [_count_descents(parameters, point) for point in points]
    return replace(final, start=sum(descents, final.start + _count_figures(parameters, parameters.selection)))


def _count_descents(p: FalconParameters, point: int) -> Counted:
    """Count the epochs of all folds of a grid point."""
    counted = Counted()
    for rows, folds in Counter(p.fold(point, fold).batch_rows for fold in range(p.folds)).items():
        fold = replace(p.fold(point, 0), batch_rows=rows, validation_rows=0)
        cost = _cost_of_training(fold)
        counted += (cost.all - cost.start - cost.end).times(folds)
    return counted


def _count_figures(p: FalconParameters, chosen: Selection) -> Counted:
    """Count the cost of the figures of all grid points, after each fold was trained."""
    seat = counting_seat(p)
    shape = (p.rows, sum(p.columns))
    rows = DealerMatrix(np.broadcast_to(np.uint64(0), shape))

    async def train(*_: object) -> ModelState:
        return seat.beginning(shape[1])

    asyncio.run(select(seat, p, chosen, rows, Labels(zeros((p.rows,))), None, train, Progress()))
    return seat.counted


def _cost_of_training(parameters: FalconParameters) -> Cost:
    """Count two epochs and the end of the training, without any party's numbers."""
    seat, marks = counting_seat(parameters), []

    def mark(*_: object) -> None:
        marks.append(seat.counted)

    def begins(step: str, done: int, _total: int) -> None:
        if (step, done) == ("epoch 1", 0):
            mark()

    epochs = min(parameters.epochs, 2)
    short = replace(parameters, epochs=epochs, patience=WITHOUT_END if parameters.judges else 0)
    asyncio.run(run_program(seat, short, None, Progress(report=begins, keep=mark)))
    start, *ends = marks
    return Cost(
        parameters, start, ends[0] - start, ends[-1] - ends[-2] if epochs == 2 else Counted(), seat.counted - ends[-1]
    )


def measure(parameters: FalconParameters) -> Speed:
    """Measure small trainings with this many parties and columns, on zeros, in one thread, in a second or two."""
    alone = replace(parameters, selection=None, validation_rows=0, test_rows=0, epochs=1, noise=None)
    trained_rows = TRAINED_ROWS if parameters.key_bits is None else ENCRYPTED_ROWS
    few, many = (replace(alone, batch_rows=(rows,)) for rows in trained_rows)
    tested = replace(alone, batch_rows=trained_rows[:1], test_rows=TESTED_ROWS)
    _seconds(few)  # makes what is made once
    more = cost_of(many).all.dealt - cost_of(few).all.dealt
    trained_s = max(0.0, _seconds(many) - _seconds(few))
    return Speed(trained_s / more, _seconds(tested) / cost_of(tested).all.dealt)


def _seconds(parameters: FalconParameters) -> float:
    """Return seconds of this thread's own time, so that other programs do not count."""
    key = None if parameters.key_bits is None else _key(parameters.key_bits)
    started = time.thread_time()
    asyncio.run(_train_on_zeros(parameters, key))
    return time.thread_time() - started


@cache
def _key(bits: int) -> PrivateKey:
    """Return a key only for trials on zeros."""
    return generate_private_key(bits)


async def _train_on_zeros(p: FalconParameters, key: PrivateKey | None) -> None:
    active, *passives = p.data_parties
    roles = {p.key_node: "key-node", active: "active", **dict.fromkeys(passives, "passive")}
    network, seeds = LocalNetwork(roles, falcon.TABLE), [Seed.random() for _ in p.data_parties]
    shares = None if key is None else deal(key, len(p.data_parties))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(falcon.run_key_node(p, seeds, "trial", network.channel(p.key_node)))
        for place, (name, seed) in enumerate(zip(p.data_parties, seeds, strict=True)):
            labels = np.zeros(p.rows, dtype=np.int64) if name == active else None
            held = Held(np.zeros((p.rows, p.columns[place]), dtype=np.int64), labels)
            share = None if shares is None else shares[place]
            channel = network.channel(name)
            tasks.create_task(falcon.run_data_party(name, held, p, seed, "trial", channel, key_share=share))
