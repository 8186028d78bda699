"""Three holders of columns of the same people, each without some of them, and a server with their labels."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from blindfit.coordinator.running.session import JobSession
from blindfit.parties.store.database import Store
from tests.nodes import Nodes

ROWS = 1800
COLUMNS = {"bank": ("a", "b", "c", "d"), "chain": ("e", "f", "g", "h"), "shop": ("x", "z")}
MISSING = {"bank": 7, "chain": 11, "shop": 13}  # every so many rows, one is not there
ROLES = {"shop": "active", "bank": "passive", "chain": "passive", "meter": "measurement", "keys": "key-node"}
HOLDERS = tuple(COLUMNS)

PARTY = """
name = "{name}"
role = "{role}"
data_dir = "state/{name}"
identity = {{ certificate = "c", key = "k", authority = "a" }}
policy = {{ systems = {protocols}{more} }}

[peers]
{peers}
"""
FEATURES = '[datasets.rows]\nurl = "csv:{name}.csv"\nid = "id"\nfeatures = "rest"\n'
LABELS = """
[populations.people]
epsilon = {budget}
delta = 1e-5

[datasets.rows]
url = "csv:labels.csv"
id = "id"
label = "label"
population = "people"
active_parties = ["shop"]
holders = {holders}
"""
JOB = """
name = "{name}"
protocol = "walr"
seed = 3
privacy = {{ epsilon = 4.0 }}
split = {{ test_fraction = 0.2 }}
timeouts = {{ step_s = 60.0, reconnect_s = 20.0 }}

[parties]
{parties}
"""
PREDICT = """
name = "score"
protocol = "predict"
align = {{ min_common = 20 }}
predict = {{ session = "{session}" }}
timeouts = {{ step_s = 60.0, reconnect_s = 20.0 }}

[parties]
{parties}
"""
PARTIES = (*HOLDERS, "meter")


@dataclass
class House:
    root: Path
    labels: list[int] | None = None

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        self.features = {name: rng.normal(size=(ROWS, len(columns))) for name, columns in COLUMNS.items()}
        for name in HOLDERS:
            self.write_features(name)
        score = self.features["shop"][:, 0] + self.features["bank"][:, 0] - self.features["chain"][:, 1]
        drawn = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-score))).astype(int).tolist()
        self.labels = self.labels or drawn
        self.write_labels()
        for name in ROLES:
            self.write_party(name)
        self.write_job("job.toml", PARTIES)
        self.write_job("alone.toml", ("shop", "meter"))

    def ids(self, name: str) -> list[str]:
        return [f"row {i}" for i in range(ROWS) if i % MISSING[name] != 3]

    @property
    def common(self) -> list[str]:
        others = [set(self.ids(name)) for name in HOLDERS]
        return [i for i in self.ids("shop") if all(i in ids for ids in others)]

    def write_features(self, name: str) -> None:
        at = [int(i.removeprefix("row ")) for i in self.ids(name)]
        rows = np.random.default_rng(len(name)).permutation(at)  # each in an order of its own
        columns = dict(zip(COLUMNS[name], self.features[name][rows].T, strict=True))
        pyarrow.csv.write_csv(pa.table({"id": [f"row {i}" for i in rows], **columns}), self.root / f"{name}.csv")

    def write_labels(self) -> None:
        table = pa.table({"id": [f"row {i}" for i in range(ROWS)], "label": self.labels})
        pyarrow.csv.write_csv(table, self.root / "labels.csv")

    def write_party(
        self,
        name: str,
        *,
        budget: float = 8.0,
        policy: str = "",
        holders: tuple[str, ...] = ("bank", "chain"),
        rows: str = "",
    ) -> None:
        role = ROLES[name]
        others = {other: ROLES[other] for other in ROLES if other != name} | {"coordinator": "coordinator"}
        protocols = ["predict"] if role == "key-node" else ["walr", "evaluate"]
        protocols = ["walr", "predict"] if role == "passive" else protocols
        protocols += ["predict"] if role == "active" else []
        said = "\n".join(f'{other} = {{ role = "{role}" }}' for other, role in others.items())
        more = ", max_epsilon = 8.0, accept_seed = true" + (", min_rows = 20" if role == "measurement" else "") + policy
        more = policy if role == "key-node" else more
        text = PARTY.format(name=name, role=role, protocols=json.dumps(protocols), more=more, peers=said)
        if role == "measurement":
            text += LABELS.format(budget=budget, holders=json.dumps(holders))
        elif role != "key-node":
            text += FEATURES.format(name=name)
        (self.root / f"{name}.toml").write_text(text)

    def _parties(self, names: tuple[str, ...]) -> str:
        rows = {n: "" if ROLES[n] == "key-node" else ', dataset = "rows"' for n in names}
        return "\n".join(f'{n} = {{ role = "{ROLES[n]}", config = "{n}.toml"{rows[n]} }}' for n in names)

    def write_job(self, file: str, parties: tuple[str, ...]) -> None:
        (self.root / file).write_text(JOB.format(name=file.removesuffix(".toml"), parties=self._parties(parties)))

    def write_prediction(self, session: str) -> None:
        parties = self._parties((*HOLDERS, "keys"))
        (self.root / "predict.toml").write_text(PREDICT.format(session=session, parties=parties))

    def copied_to(self, root: Path) -> House:
        """With all that its parties keep."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        other.root = root
        return other

    def run(self, *overrides: str, job: str = "job.toml") -> JobSession:
        return Nodes(self.root).run(*overrides, job=job)

    # --- what came of it

    @contextlib.contextmanager
    def store(self, name: str) -> Iterator[Store]:
        with contextlib.closing(Store(self.root / "state" / name / "party.sqlite")) as store:
            yield store

    def spent(self) -> int:
        """How many entries the server's ledger has."""
        with self.store("meter") as store:
            return len(store.reader().ledger())

    def written(self, name: str, session: JobSession, file: str = "model.json") -> dict[str, Any]:
        return json.loads((self.root / "state" / name / "models" / session.id / file).read_text())
