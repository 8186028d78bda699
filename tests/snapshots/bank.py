"""A bank with two datasets, and its snapshots."""

from __future__ import annotations

import os
from pathlib import Path

from blindfit.parties.measurement.label_index import write_index
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.rows_file import write_rows
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party

PARTY = """
name = "bank"
role = "{role}"
identity = {{ certificate = "c", key = "k", authority = "a" }}
peers = {{ coordinator = {{ role = "coordinator" }}, shop = {{ role = "active" }} }}
[populations]
people = {{ epsilon = 5.0, delta = 1e-5 }}
visitors = {{ epsilon = 5.0, delta = 1e-5 }}
[datasets.loans]
url = "csv:loans.csv"
id = "id"
label = "label"
population = "people"
{more}
[datasets.other]
url = "csv:other.csv"
id = "id"
label = "label"
population = "visitors"
{more}
"""


MORE = {"active": 'features = "rest"', "measurement": 'active_parties = ["shop"]'}


ROWS = "id,label,age,income\na,0,31,10\nb,1,44,\nc,1,27,12.5\n"


UNKNOWN = "5eed" * 8  # a snapshot's name


class Bank:
    def __init__(self, directory: Path, role: str = "active", **changes: str) -> None:
        self.directory, self.role = directory, role
        self.write(ROWS.replace("44,", "44,11"))
        (directory / "other.csv").write_text("id,label,age\nx,0,1\ny,1,2\n")
        self.describe()
        self.store = Store(directory / "state" / "party.sqlite")

    def write(self, rows: str) -> None:
        (self.directory / "loans.csv").write_text(rows)

    def describe(self, *edits: tuple[str, str]) -> None:
        text = PARTY.format(role=self.role, more=MORE[self.role])
        for before, after in edits:
            assert before in text
            text = text.replace(before, after, 1)
        (self.directory / "bank.toml").write_text(text)

    @property
    def settings(self) -> PartySettings:
        return load_party(self.directory / "bank.toml")

    @property
    def snapshots(self) -> Snapshots:
        write = write_index if self.role == "measurement" else write_rows
        return Snapshots(self.settings, self.directory, self.store, write)

    def directories(self) -> list[str]:
        return sorted(os.listdir(self.directory / "state" / "snapshots"))
