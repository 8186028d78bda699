"""A bank with two datasets, and its snapshots."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from blindfit.parties.measurement.label_index import write_index
from blindfit.parties.snapshots.rows_file import write_rows
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from tests.world import World

ROWS = "id,label,age,income\na,0,31,10\nb,1,44,\nc,1,27,12.5\n"
BUDGET = {"epsilon": 5.0, "delta": 1e-5}
UNKNOWN = "5eed" * 8  # a snapshot's name


@dataclass
class Bank(World):
    role: str = "active"
    kept: Store = field(init=False)

    def __post_init__(self) -> None:
        meaning = {"features": "rest"} if self.role == "active" else {"active_parties": ["shop"]}
        other = {"url": "csv:other.csv", "id": "id", "label": "label", "population": "visitors", **meaning}
        budgets = {"people": BUDGET, "visitors": BUDGET}
        meaning |= {"label": "label", "population": "people"}
        about = {"file": "loans.csv", "populations": budgets, "datasets": {"other": other}}
        self.party("bank", self.role, None, meaning, dataset="loans", **about)
        if self.role == "measurement":
            self.set("peers.shop.role", "active")
        self.write(ROWS.replace("44,", "44,11"))
        self.path("other.csv").write_text("id,label,age\nx,0,1\ny,1,2\n")
        self.kept = Store(self.path("state/bank/party.sqlite"))

    def write(self, rows: str) -> None:
        self.path("loans.csv").write_text(rows)

    def describe(self, option: str, value: object = None) -> None:
        """Set an option of loans, or remove it."""
        self.set(f"datasets.loans.{option}", value, "bank")

    @property
    def snapshots(self) -> Snapshots:
        write = write_index if self.role == "measurement" else write_rows
        return Snapshots(self.settings("bank"), self.root, self.kept, write)

    def directories(self) -> list[str]:
        return sorted(os.listdir(self.path("state/bank/snapshots")))
