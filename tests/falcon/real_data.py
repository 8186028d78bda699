"""Real tables, split and prepared as the parties would, for trainings in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.protocols.falcon import FalconParameters, Held
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.falcon.data_party import make_held
from blindfit.parties.falcon.parameters import parameters_of, preparation_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import Prepared, prepare
from blindfit.parties.vertical.seats import Seats
from tests.falcon.local import KEY_NODE, PARTIES

Floats = NDArray[np.float64]


@dataclass
class RealCase:
    """Blocks of columns, the first of the party with the labels."""

    blocks: list[Floats]
    y: NDArray[Any]
    job: FalconJob
    seed: int

    def __post_init__(self) -> None:
        n = len(self.y)
        order = PublicRandomness.from_seed(self.seed).generator("split").permutation(n)
        self.prepared: list[Prepared] = []
        for place, block in enumerate(self.blocks):
            labels = self.y.astype(np.float64) if place == 0 else None
            rows = PartyRows(None, block, labels, np.ones(n, np.bool_))
            names = tuple(f"x{j}" for j in range(block.shape[1]))
            self.prepared.append(prepare(rows, names, preparation_of(self.job), order, active=place == 0))
        parties = PARTIES[: self.n_parties]
        told = {name: Ready(one.columns.shape[1]) for name, one in zip(parties, self.prepared, strict=True)}
        seats = Seats(parties[0], parties, KEY_NODE)
        self.parameters: FalconParameters = parameters_of(self.job, seats, told, self.prepared[0].plan)

    @property
    def n_parties(self) -> int:
        return len(self.blocks)

    def held(self, place: int) -> Held:
        return make_held(self.prepared[place], self.parameters)

    @property
    def table(self) -> tuple[Floats, NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """All columns standardised, labels, the rows not held out for the test, and the test rows."""
        plan = self.prepared[0].plan
        x = np.hstack(self.blocks)
        rest = np.setdiff1d(np.arange(len(self.y)), plan.test)
        x = (x - x[rest].mean(axis=0)) / np.maximum(x[rest].std(axis=0), 1e-12)
        return x, self.y, rest, plan.test
