"""Another bank tries to learn whose rows a bureau scored for one bank, by which of its own predictions are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.sessions.party import Party
from blindfit.parties.systems import load_party
from blindfit.parties.vertical import scored_rows
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.vertical.scored_rows import ScoreQuota
from tests.published import published
from tests.unconnected import unconnected
from tests.world import World
from tests.world.files import write_csv

ROLES = {"bank-a": "active", "bank-b": "active", "bureau": "passive", "keys": "key-node"}
PEOPLE, COLUMNS = 120, 8
CUSTOMERS_OF_A = [*range(0, 60, 2), 101, 103]
NOT_WITH_A = list(range(1, 60, 2))  # known to B from its own staff
CANDIDATES = (100, 101, 102, 103)


class Banks:
    """Two banks that each have a model with the bureau, as if they had trained it."""

    def __init__(self, root: Path, models_per_row: int) -> None:
        self.root, self.features = root, np.random.default_rng(0).normal(size=(PEOPLE, COLUMNS))
        self.world, policy = World(root), {"systems": ["predict"]}
        for name in ("bank-a", "bank-b"):
            self.world.active(name, policy=policy)
        columns = {f"c{j}": column for j, column in enumerate(self.features.T)}
        rows = {"id": [f"r{i}" for i in range(PEOPLE)], **columns}
        self.world.passive("bureau", rows, policy=policy, about={"models_per_row": models_per_row})
        self.world.key_node("keys", policy=policy)
        self.holds("bank-a", CUSTOMERS_OF_A)
        self.holds("bank-b", NOT_WITH_A)
        self.parties = {name: self._party(name) for name in ("bank-a", "bank-b", "bureau")}
        for name in ("bank-a", "bank-b"):
            parties, asked = (name, "bureau", "keys"), {"session": f"of-{name}"}
            file = f"{name}-job.toml"
            self.world.job("predict", file=file, parties=parties, align={"min_common": 20}, predict=asked)
            self._train(name)

    def _party(self, name: str) -> Party:
        return unconnected(load_party(self.root / f"{name}.toml", []), self.root)

    def _train(self, bank: str) -> None:
        for name, columns in ((bank, ("a",)), ("bureau", tuple(f"c{j}" for j in range(COLUMNS)))):
            party, width = self.parties[name], len(columns)
            scaling = Standardiser(columns, tuple(range(width)), (0.0,) * width, (1.0,) * width)
            weights = np.random.default_rng(len(bank) + ord(bank[-1])).normal(size=width)
            part = VerticalModelPart(name, ROLES[name], "logistic", (bank, "bureau"), scaling, weights)
            snapshot = published(party.snapshots, "rows")
            with party.store.transaction() as transaction:
                transaction.put_session_snapshot(f"of-{bank}", snapshot.id)
            if name == "bureau":
                rounding = ScoreQuota.of(party, snapshot).rounding(part)
                part = replace(part, score_rounding=rounding)
            ModelStore(party.data_dir, party.vault).keep(part, f"of-{bank}")

    def holds(self, bank: str, people: list[int]) -> None:
        columns = {"id": [f"r{i}" for i in people], "a": np.arange(len(people), dtype=float)}
        write_csv(self.root / f"{bank}.csv", columns)

    def scored(self, bank: str, people: list[int]) -> bool:
        """Return False if the bank's whole job on a table of these people is refused because others have had scores."""
        self.holds(bank, people)
        self.parties[bank].snapshots.publish("rows")
        try:
            self.world.run(job=f"{bank}-job.toml")
        except PolicyRefused as refused:
            if "models_per_row: some of these rows have had scores" not in str(refused):
                raise
            return False
        return True

    def close(self) -> None:
        for party in self.parties.values():
            party.store.close()


def found(root: Path, models_per_row: int, *, a_asks: bool = True) -> list[bool]:
    """Return for each candidate whether B is refused when it asks about that person and people whom A has not asked
    about.
    """
    banks = Banks(root, models_per_row)
    if a_asks:
        assert banks.scored("bank-a", CUSTOMERS_OF_A)
    refused = [not banks.scored("bank-b", [*NOT_WITH_A, person]) for person in CANDIDATES]
    banks.close()
    return refused


def test_where_another_banks_model_counts_for_its_own_rows_its_customers_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_rows, "_counts", lambda _entry, here, **_: here)
    assert found(tmp_path, 1) == [person in CUSTOMERS_OF_A for person in CANDIDATES]


@pytest.mark.parametrize(
    ("models_per_row", "a_asks", "refused"), [(1, True, True), (1, False, False), (2, True, False)]
)
def test_no_answer_hangs_on_which_rows_another_bank_asks_about(
    tmp_path: Path, models_per_row: int, a_asks: bool, refused: bool
) -> None:
    assert found(tmp_path, models_per_row, a_asks=a_asks) == [refused] * len(CANDIDATES)
