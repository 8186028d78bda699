"""New rows of a party as a joint prediction reads them: checked, published, converted by the model's record."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.data.source import Source
from blindfit.parties.predict.prediction import JointPrediction
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.tables import validate
from blindfit.parties.training.rows import PartyRows, read_rows
from blindfit.parties.vertical.model_store import ModelStore
from tests.published import published
from tests.unconnected import unconnected

TRAINING = "taylor-1a2b3c4d"


@dataclass
class NewRows:
    """
    Args:
        root: folder with the data, in any format.
        part: the bank's part of a model, which it kept after a training.
    """

    root: Path
    part: VerticalModelPart
    url: str = "csv:rows.csv"
    dataset: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = {
            "name": "bank",
            "role": "active",
            "data_dir": "state",
            "identity": {"certificate": "c", "key": "k", "authority": "a"},
            "peers": {"coordinator": {"role": "coordinator"}},
            "datasets": {"new": {"url": self.url, "id": "id", "features": "rest", **self.dataset}},
        }
        self.party = unconnected(validate(values, PartySettings, source="bank.toml"), self.root)
        ModelStore(self.party.data_dir, self.party.vault).keep(self.part, TRAINING)
        self.seat = JointPrediction(self.party)

    @property
    def snapshots(self) -> Snapshots:
        return self.party.snapshots

    def source(self) -> Source:
        """Return the source that a prediction reads.

        Raises:
            BlindfitError: as the check before a session, or as its start.
        """
        job, me = PredictJob(predict={"session": TRAINING}), Member("bank", "active", "", "new")
        published(self.snapshots, "new", skip_unreadable=True)
        self.seat.check(job, me)
        scale = self.part.standardiser
        return self.snapshots.require_current("new").for_model(scale.record, scale.columns, scale.means())

    def read(self) -> PartyRows:
        return read_rows(self.source(), labels=False, report=lambda *_: None)

    def numbers(self) -> list[list[float]]:
        return self.read().features.tolist()

    def close(self) -> None:
        self.party.store.close()
