"""A vertical project on disk: a bank, two shops and a notary, and the command line to run it with."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.command import Done, blindfit

ROLES = {"bank": "active", "shop-a": "passive", "shop-b": "passive", "notary": "key-node"}
ROWS, COLUMNS = 240, 3

POPULATION = "[populations.people]\nepsilon = 3.0\ndelta = 1e-5\n"


@dataclass(frozen=True)
class Project:
    root: Path

    @classmethod
    def make(cls, root: Path, *, rows: int = ROWS, epochs: int = 4) -> Project:
        project = cls(root)
        for name in ROLES:
            (root / f"{name}.toml").write_text(_party(name))
        job = 'name = "vertical"\nprotocol = "taylor"\nseed = 5\n[align]\nmin_common = 50\n'
        job += f"[taylor]\nepochs = {epochs}\nbatch_rows = 64\n"
        (root / "job.toml").write_text(job + _parties())
        job = 'name = "scores"\nprotocol = "predict"\n[align]\nmin_common = 50\n'
        (root / "predict.toml").write_text(job + _parties())
        job = 'name = "linked"\nprotocol = "taylor"\n[align]\nmethod = "linkage"\nfields = ["name"]\nthreshold = 1.0\n'
        job += "min_common = 50\n[taylor]\nepochs = 2\nbatch_rows = 64\n"
        (root / "linkage.toml").write_text(job + _parties("shop-b"))  # linkage is between two
        project.write_rows(rows)
        return project

    def write_rows(self, rows: int) -> None:
        draw = np.random.default_rng(3)
        X = draw.normal(size=(rows, 3 * COLUMNS))
        labels = (X[:, 0] + X[:, COLUMNS] - X[:, 2 * COLUMNS] + draw.logistic(size=rows) > 0).astype(np.int64)
        ids = np.array([f"p{number}" for number in range(rows)])
        for number, name in enumerate(n for n, role in ROLES.items() if role != "key-node"):
            order = draw.permutation(rows)
            columns = {f"x{j}": X[order, number * COLUMNS + j] for j in range(COLUMNS)}
            label = {"bought": labels[order]} if name == "bank" else {}
            pyarrow.csv.write_csv(
                pa.table({"id": ids[order], "name": ids[order], **label, **columns}), self.root / f"{name}.csv"
            )

    def publish(self, name: str, *, remove_older: bool = False) -> None:
        """What a party's operator types."""
        settings = load_party(self.root / f"{name}.toml")
        with contextlib.closing(Store.of(settings, self.root)) as store:
            snapshots = Snapshots(settings, self.root, store)
            snapshots.publish("rows")
            if remove_older:
                snapshots.remove_older("rows")

    def with_numbers(self, labels: np.ndarray, label_range: tuple[float, float] | None = None) -> None:
        """Labels that are numbers, in the order of the bank's file."""
        path = self.root / "bank.csv"
        table = pyarrow.csv.read_csv(path)
        place = table.column_names.index("bought")
        pyarrow.csv.write_csv(table.set_column(place, "bought", pa.array(labels)), path)
        kind = 'label_kind = "number"\n' + (f"label_range = {list(label_range)}\n" if label_range else "")
        party = self.root / "bank.toml"
        party.write_text(party.read_text().replace('label = "bought"\n', f'label = "bought"\n{kind}'))

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "blindfit", *arguments]

    def run(self, *overrides: str, out: str = "out") -> Done:
        sets = [word for override in overrides for word in ("--set", override)]
        return blindfit(self.root, "run", str(self.root / "job.toml"), "--out", str(self.root / out), *sets)


def _parties(without: str = "") -> str:
    text = ""
    for name, role in ROLES.items():
        if name == without:
            continue
        dataset = "" if role == "key-node" else 'dataset = "rows"\n'
        text += f'[parties.{name}]\nrole = "{role}"\nconfig = "{name}.toml"\n{dataset}'
    return text


def _party(name: str) -> str:
    role = ROLES[name]
    text = f'name = "{name}"\nrole = "{role}"\ndata_dir = "state/{name}"\n'
    text += '[identity]\ncertificate = "-"\nkey = "-"\nauthority = "-"\n[peers.coordinator]\nrole = "coordinator"\n'
    text += "".join(f'[peers.{peer}]\nrole = "{other}"\n' for peer, other in ROLES.items() if peer != name)
    text += '[policy]\naccept_seed = true\nsystems = ["taylor", "predict"]\nmax_epsilon = 3.0\n'
    # Of tests that must repeat a run.
    text += 'unsafe = ["no-jitter", "no-gradient-noise", "leverage", "label-bits", "class-weights"]\n'
    if role == "key-node":
        return text
    text += 'min_linked = 30\n[compute]\nbackend = "serial"\n'
    label = 'label = "bought"\npopulation = "people"\nrow_is = "a client"\n' if role == "active" else ""
    text += f'[datasets.rows]\nurl = "csv:{name}.csv"\nid = "id"\n{label}features = "rest"\n'
    text += "scores_may_be_solved_for = true\n" if role == "passive" else ""  # three columns
    text += '[datasets.rows.quasi_identifiers]\nname = "name"\n'
    return text + (POPULATION if role == "active" else "")
