"""All parties of a Falcon training in one process, over channels that serialise."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import FalconParameters, Held, Model, Progress, Trained
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.wire.channel import LocalNetwork, Wire

Floats = NDArray[np.float64]
KEY_NODE = "notary"
UNTESTED = {"test_rows": 0}  # figures of test rows take half of a run
PARTIES = ("hospital", "laboratory", "archive", "clinic")


class Rows(Protocol):
    """Rows and parameters of a training by `train`."""

    parameters: FalconParameters

    @property
    def n_parties(self) -> int: ...

    def held(self, place: int) -> Held: ...


@dataclass
class Case:
    """A table of standardised columns, split among parties.

    The last 40 + 60 rows are held out; the options may remove the test rows.
    """

    n_parties: int = 2
    rows: int = 340
    batches: int = 2
    seed: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal((self.rows, 3 * self.n_parties)).clip(-4, 4)
        w = rng.standard_normal(x.shape[1])
        scores = x @ w + rng.logistic(size=self.rows) - 0.3
        blocks = np.split(x, self.n_parties, axis=1)
        blocks[0] = np.hstack([blocks[0], np.ones((self.rows, 1))])
        self.features = [np.rint(block * 2**FEATURE_BITS).astype(np.int64) for block in blocks]
        parties = PARTIES[: self.n_parties]
        train = self.rows - 100
        of_each = train // self.batches
        base = FalconParameters(
            data_parties=parties,
            key_node=KEY_NODE,
            columns=tuple(block.shape[1] for block in blocks),
            batch_rows=(of_each,) * (self.batches - 1) + (train - of_each * (self.batches - 1),),
            validation_rows=40,
            test_rows=60,
            epochs=4,
            optimiser=OptimiserSettings(learning_rate=0.5, l2=0.02),
        )
        self.parameters = p = replace(base, **self.options)
        numbers = np.clip(np.rint(scores / scores.std() * 2.0**p.label_bits), -8 << p.label_bits, 8 << p.label_bits)
        self.labels = (numbers if p.is_linear else scores > 0).astype(np.int64)
        self.class_weights = np.array([192, 384])  # 0.75 and 1.5

    @property
    def row_weights(self) -> NDArray[np.int64]:
        return self.class_weights[(self.labels > 0).astype(np.intp)]

    @property
    def whole(self) -> Floats:
        return np.hstack(self.features) / 2.0**FEATURE_BITS

    @property
    def y(self) -> Floats:
        return self.labels / 2.0**self.parameters.label_bits

    def held(self, place: int) -> Held:
        own = self.features[place][: self.parameters.rows]
        if place:
            return Held(own)
        return Held(own, self.labels[: len(own)], self.class_weights if self.parameters.weighted else None)

    def plain(self, epochs: int, noises: Floats | None = None) -> Floats:
        """Return the weights after the same steps on plain numbers.

        Args:
            noises: noise of each step's move, (steps, columns).
        """
        p, x = self.parameters, self.whole
        w = velocity = np.zeros(x.shape[1])
        pull = p.penalised.astype(np.float64)
        for epoch in range(epochs):
            for number in range(len(p.batch_rows)):
                rows = p.batch(epoch, number)
                z = x[rows] @ w
                predicted = z if p.is_linear else 1 / (1 + np.exp(-z))
                weights = self.row_weights[rows] / 256 if p.weighted else 1.0
                gradient = x[rows].T @ (weights * (predicted - self.y[rows])) / len(z)
                move = p.optimiser.rate(epoch) * (gradient + p.optimiser.l2 * pull * w)
                if noises is not None:
                    move = move + noises[epoch * len(p.batch_rows) + number]
                velocity = p.optimiser.momentum_of * velocity - move
                before, threshold = w, p.optimiser.rate(epoch) * p.optimiser.l1 * pull
                w = w + velocity
                w = np.sign(w) * np.maximum(np.abs(w) - threshold, 0)
                velocity = w - before
        return w

    def split(self, w: Floats) -> list[Floats]:
        return np.split(w, np.cumsum(self.parameters.columns)[:-1])


def seeds_of(case: Rows) -> list[Seed]:
    return [Seed(bytes([7, place]) * 16) for place in range(case.n_parties)]


def train(
    case: Rows,
    *,
    wire: Wire | None = None,
    progress: Mapping[str, Progress] | None = None,
    run: str = "run-1",
    network: LocalNetwork | None = None,
    models: Mapping[str, Model] | None = None,
    key: PrivateKey | None = None,
) -> dict[str, Trained]:
    """Return what each party ends with, by name; raise the first error.

    Args:
        models: checkpoints of a training that goes on.
        key: key of the encrypted weights.
    """
    try:
        network = network or network_of(case, wire)
        return asyncio.run(train_together(case, network, progress or {}, run, models or {}, key))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def network_of(case: Rows, wire: Wire | None = None) -> LocalNetwork:
    parties = case.parameters.data_parties
    roles = {KEY_NODE: "key-node", parties[0]: "active", **dict.fromkeys(parties[1:], "passive")}
    options: dict[str, Any] = {} if wire is None else {"wire": wire}
    long = 90.0  # for an epoch with a key of 2048 bits, on a busy machine
    return LocalNetwork(roles, falcon.TABLE, timeout_s=long, **options)


async def train_together(
    case: Rows,
    network: LocalNetwork,
    progress: Mapping[str, Progress],
    run: str,
    models: Mapping[str, Model],
    key: PrivateKey | None = None,
) -> dict[str, Trained]:
    parties, seeds = case.parameters.data_parties, seeds_of(case)

    async def data_party(place: int, name: str) -> Trained:
        channel = network.channel(name)
        seed = await falcon.receive_seed(KEY_NODE, channel)
        told, model, share = progress.get(name), models.get(name), None
        if key is not None:
            bits = key.public_key.bits
            share = await falcon.receive_key_share(name, parties, KEY_NODE, bits, channel)
        return await falcon.run_data_party(
            name, case.held(place), case.parameters, seed, run, channel, progress=told, model=model, key_share=share
        )

    async def key_node() -> Trained:
        channel = network.channel(KEY_NODE)
        await falcon.deal_seeds(seeds, parties, channel)
        if key is not None:
            await falcon.deal_key(key, parties, channel)
        epochs = next((model.epochs for model in models.values()), 0)
        return await falcon.run_key_node(case.parameters, seeds, run, channel, epochs=epochs)

    async with asyncio.TaskGroup() as tasks:
        started = {name: tasks.create_task(data_party(place, name)) for place, name in enumerate(parties)}
        started[KEY_NODE] = tasks.create_task(key_node())
    return {name: task.result() for name, task in started.items()}
