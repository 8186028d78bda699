"""The simulated views are those of the protocol, integer for integer."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.randomisers import ShortExponent
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, KeySeat, run_data_party, run_key_node
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, Patience
from blindfit.parties.wire.channel import LocalNetwork
from tests.attacks import views
from tests.attacks.views import Data, Floats, Setting, Training, simulate


@dataclass(slots=True, repr=False)
class RecordingOptimiser(Optimiser):
    """Optimiser that keeps each gradient as its party gets it."""

    gradients: list[Floats] = field(default_factory=list)

    def step(self, gradient: Floats, epoch: int, batch: int) -> None:
        self.gradients.append(gradient)
        Optimiser.step(self, gradient, epoch, batch)


def by_the_protocol(data: Data, setting: Setting, key: PrivateKey, simulated: Training) -> list[list[Floats]]:
    """Return each party's gradients, from a run over messages with the simulation's jitter, start and noise."""
    grid = Grid("logistic", len(data.parts))
    features = [seen.features for seen in simulated.seen]
    parameters = replace(views.parameters_of(features, grid, setting), key_bits=512)
    seats = []
    for place, (name, part) in enumerate(zip(parameters.data_parties, features, strict=True)):
        start = simulated.seen[place].views[0].weights
        plan, rows = simulated.plan, grid.reals(part[simulated.plan.train])
        optimiser = RecordingOptimiser(setting.optimiser, start, place == 0, len(plan.batches), rows)
        uniform = random.Random(place).randrange
        seats.append(DataSeat(name, part, optimiser, ShortExponent(key.public_key), uniform))
    seats[0].label_terms, seats[0].y = simulated.label_terms, data.y
    key_seat = KeySeat(key, setting.noise_key, Patience(0, 0.0))
    roles = dict.fromkeys(parameters.data_parties, "passive")
    network = LocalNetwork({**roles, parameters.active: "active", "key-node": "key-node"}, taylor.TABLE)

    async def run() -> None:
        batch_rows = [len(batch) for batch in simulated.plan.batches]
        await asyncio.gather(
            run_key_node(key_seat, batch_rows, 0, parameters, network.channel("key-node")),
            *(run_data_party(seat, simulated.plan, parameters, network.channel(seat.name)) for seat in seats),
        )

    # This test does not cover the key exchange: the parties have the key already.
    asyncio.run(run())
    return [seat.optimiser.gradients for seat in seats]  # type: ignore[attr-defined]


SMALL = Setting(batch_rows=25, epochs=2, secret_start=0.5)
SETTINGS = {"defended": SMALL, "not": replace(SMALL, jitter=0.0, gradient_noise=0.0, shorten=False)}
SETTINGS["label DP"] = replace(SMALL, epsilon=1.0)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
def test_a_view_is_what_the_protocol_shows(insecure_test_key: PrivateKey, setting: Setting) -> None:
    data = views.planted(np.random.default_rng(3), 50, (2, 3, 1), signal=(1, 1, 1))
    simulated = simulate(data, setting)
    for seen, gradients in zip(
        simulated.seen, by_the_protocol(data, setting, insecure_test_key, simulated), strict=True
    ):
        assert len(gradients) == len(seen.views) == 4
        for view, gradient in zip(seen.views, gradients, strict=True):
            scale = (1 << seen.grid.gradient_bits) * len(view.batch)
            assert np.array_equal(np.rint(gradient * scale), view.gradient)


def test_others_is_what_the_party_did_not_know() -> None:
    data = views.planted(np.random.default_rng(3), 60, (2, 3), signal=(1, 1))
    training = simulate(data, views.without_defences(batch_rows=30, epochs=1))
    passive, batch = training.seen[1], training.plan.batches[0]
    np.testing.assert_allclose(passive.others(passive.views[0]), -passive.reals(batch).T @ data.y[batch] / 2)


def test_reshuffled_batches_are_of_the_same_rows() -> None:
    data = views.planted(np.random.default_rng(3), 60, (2, 3), signal=(1, 1))
    training = simulate(data, Setting(batch_rows=30, epochs=2, kept_batches=False))
    epochs = [np.concatenate([v.batch for v in training.seen[0].views if v.epoch == epoch]) for epoch in range(2)]
    assert not np.array_equal(*epochs)
    assert np.array_equal(*(np.sort(rows) for rows in epochs))
