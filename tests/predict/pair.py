"""A bank and a shop in this process: models of known weights, and real prediction jobs on published rows of both."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.parties.predict import prediction
from blindfit.parties.predict.prediction import JointPrediction
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.systems import system
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.alignment import Alignment
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.wire.channel import LocalNetwork
from tests.published import published
from tests.taylor.seats import first_failure
from tests.unconnected import unconnected
from tests.world import World
from tests.world.files import write_csv

ROLES = {"bank": "active", "shop": "passive"}
MEMBERS = {name: Member(name, role, "", "rows") for name, role in ROLES.items()} | {
    "keys": Member("keys", "key-node", "", "")
}


@dataclass
class Pair:
    """Args:
    features: (n, k) columns of the shop for the rows r0, r1, ...
    policy, dataset: additions to the shop's file.
    """

    root: Path
    features: np.ndarray
    policy: dict[str, Any] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    _sessions: int = 0

    def __post_init__(self) -> None:
        ids = [f"r{i}" for i in range(len(self.features))]
        columns = {"id": ids, **{f"c{j}": column for j, column in enumerate(self.features.T)}}
        write_csv(self.root / "shop.csv", columns)
        write_csv(self.root / "bank.csv", {"id": ids, "a": np.linspace(-1, 1, len(ids))})
        self.world = World(self.root)
        self.parties = {name: self._party(name) for name in ROLES}

    def _party(self, name: str) -> Party:
        """Write the party's file, again if it is there already, and open its store."""
        predicts = {"systems": ["predict"]}
        if name == "bank":
            self.world.active(name, policy=predicts)
        else:
            self.world.passive(name, policy={**predicts, **self.policy}, about=self.dataset)
        return unconnected(self.world.settings(name), self.root)

    def close(self) -> None:
        for party in self.parties.values():
            party.store.close()

    def train(self, name: str, weights: np.ndarray, rounding: int | None = None) -> None:
        """Write the state after a training of this name that ended with these weights, without an evaluation.

        Args:
            rounding: rounding of the shop's scores; None: as the shop itself rounds them.
        """
        for party, columns in (("bank", np.linspace(-1, 1, len(self.features))[:, None]), ("shop", self.features)):
            scaling = Standardiser.fit([columns], tuple(f"c{j}" for j in range(columns.shape[1])))
            if party == "bank":
                scaling = Standardiser(("a",), scaling.kept, scaling.mean, scaling.std)
            own = weights if party == "shop" else np.array([0.5])
            part = VerticalModelPart(party, ROLES[party], "logistic", tuple(ROLES), scaling, own)
            here = self.parties[party]
            snapshot = published(here.snapshots, "rows")
            with here.store.transaction() as transaction:
                transaction.put_session_snapshot(name, snapshot.id)
            if party == "shop":
                own_rounding = ScoreQuota.of(here, snapshot).rounding(part)
                part = replace(part, score_rounding=own_rounding if rounding is None else rounding)
            ModelStore(here.data_dir, here.vault).keep(part, name)

    def scores(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return what the bank learns of the shop's part of the scores, in the order of the rows.

        Args:
            rows: rows that both parties have; None: all.

        Raises:
            BlindfitError: error of the first party that fails.
        """
        self._sessions += 1
        common = np.arange(len(self.features)) if rows is None else rows
        job, session = PredictJob(predict={"session": name}), f"predict-{self._sessions}"
        network = LocalNetwork({**ROLES, "keys": "key-node"}, *system("predict").tables())
        read = {party: published(self.parties[party].snapshots, "rows") for party in ROLES}

        async def in_order(_session: object, _seats: object, _rows: PartyRows, _party: Party) -> Alignment:
            return Alignment(common)

        async def run(party: str) -> None:
            seat = JointPrediction(self.parties[party])
            seat.check(job, MEMBERS[party])
            channel: Any = network.channel(party)
            asked = Session(
                session, "coordinator", MEMBERS, job.to_parameters(), job, channel, MEMBERS[party], read[party],
                {n: snapshot.id for n, snapshot in read.items()},
            )  # fmt: skip
            await seat.run(asked)

        async def both() -> None:
            await first_failure(*(run(party) for party in ROLES))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prediction, "align_by_id", in_order)
            asyncio.run(both())
        with (self.root / f"state/bank/predictions/{session}/scores.csv").open(newline="") as file:
            total = np.array([float(row["score"]) for row in csv.DictReader(file)])
        bank = ModelStore(self.parties["bank"].data_dir).read(name)
        return total - real_scores(bank.score_parts(np.linspace(-1, 1, len(self.features))[common][:, None]))
