"""A shop, a label holder, and three servers: two with shares of its labels, and one that is trusted with them."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows
from blindfit.algorithms.sharing import field as prime
from blindfit.coordinator.operator.split_labels import split_labels
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.measurement import codec
from blindfit.parties.measurement.servers import Server, Servers
from blindfit.parties.sessions.party import vault_of
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party, snapshot_writer
from tests.nodes import Nodes

ROWS = 120
SERVERS = ("east", "west")
ROLES = {"shop": "active", "east": "measurement", "west": "measurement", "whole": "measurement", "dealer": "key-node"}

PARTY = """
name = "{name}"
role = "{role}"
data_dir = "state/{name}"
identity = {{ certificate = "c", key = "k", authority = "a" }}
policy = {{ systems = ["walr", "evaluate"], max_epsilon = 8.0, accept_seed = true{more} }}

[peers]
{peers}
"""
SHOP = '[datasets.rows]\nurl = "csv:features.csv"\nid = "id"\nfeatures = "rest"\n'
LABELS = """
[populations.people]
epsilon = {budget}
delta = 1e-5

[datasets.rows]
url = "{url}"
id = "id"
population = "people"
active_parties = ["shop"]
{meaning}
"""
OF_SHARES = 'label = "share"\nlabel_kind = "share"\nsplit = "split_id"\n'
OF_LABELS = 'label = "label"\n'
JOB = """
name = "split"
protocol = "walr"
seed = 3
walr = {{ trust = "{trust}" }}
privacy = {{ epsilon = 1.0 }}
split = {{ test_fraction = 0.25 }}
timeouts = {{ step_s = 60.0, reconnect_s = 20.0 }}

[parties]
{parties}
"""


@dataclass
class House:
    root: Path
    persons: bool = False
    asked: dict[str, tuple[AggregateOpen, ConsumerRows]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        ids = pa.array([f"row {i}" for i in range(ROWS)])
        features = pa.table({"id": ids, "x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS)})
        pyarrow.csv.write_csv(features, self.root / "features.csv")
        self.write_labels([int(i * 7 % 10 < 4) for i in range(ROWS)])
        for name in ROLES:
            self.write_party(name)
        self.write_job("job.toml", "two-servers", ("shop", *SERVERS))
        self.write_job("trusted.toml", "trusted", ("shop", "whole"))
        self.write_job("hidden.toml", "encrypted-rows", ("shop", "whole"))
        self.write_job("shares.toml", "shared-rows", ("shop", *SERVERS, "dealer"))
        self.split()

    def write_labels(self, labels: list[int]) -> None:
        self.labels = {f"row {i}": label for i, label in enumerate(labels)}
        columns: dict[str, Any] = {"id": list(self.labels), "label": labels}
        if self.persons:
            columns["person"] = [f"person {i // 4}" for i in range(ROWS)]
        pyarrow.csv.write_csv(pa.table(columns), self.root / "labels.csv")

    def write_party(
        self, name: str, budget: float = 8.0, peers: tuple[str, ...] = tuple(ROLES), policy: str = ""
    ) -> None:
        others = {other: ROLES[other] for other in peers if other != name} | {"coordinator": "coordinator"}
        said = "\n".join(f'{other} = {{ role = "{role}" }}' for other, role in others.items())
        more = (", min_rows = 20" if ROLES[name] == "measurement" else "") + policy
        text = PARTY.format(name=name, role=ROLES[name], more=more, peers=said)
        if name == "shop":
            text += SHOP
        elif name != "dealer":
            url = f"parquet:{name}.parquet" if name in SERVERS else "csv:labels.csv"
            meaning = OF_SHARES if name in SERVERS else OF_LABELS
            meaning += 'person = "person"\nmax_rows_per_person = 2\n' if self.persons else ""
            text += LABELS.format(budget=budget, url=url, meaning=meaning)
        (self.root / f"{name}.toml").write_text(text)

    def write_job(self, file: str, trust: str, parties: tuple[str, ...]) -> None:
        rows = {p: "" if p == "dealer" else ', dataset = "rows"' for p in parties}
        lines = [f'{p} = {{ role = "{ROLES[p]}", config = "{p}.toml"{rows[p]} }}' for p in parties]
        (self.root / file).write_text(JOB.format(trust=trust, parties="\n".join(lines)))

    def write_evaluation(self, file: str, trust: str, session: str) -> None:
        """Of the model that a session trained, by the same parties."""
        text = (self.root / file).read_text()
        text = text.replace('protocol = "walr"', 'protocol = "evaluate"').replace("seed = 3\n", "")
        asked = f'evaluate = {{ trust = "{trust}", session = "{session}" }}'
        lines = [line for line in text.splitlines() if not line.startswith(("walr =", "split ="))]
        at = next(i for i, line in enumerate(lines) if line.startswith("privacy"))
        (self.root / "evaluate.toml").write_text("\n".join([*lines[:at], asked, *lines[at:]]) + "\n")

    def split(self) -> None:
        """All labels anew."""
        out = tuple(self.root / f"{name}.parquet" for name in SERVERS)
        for path in out:
            path.unlink(missing_ok=True)
        settings = load_party(self.root / "whole.toml")
        split_labels(settings, self.root, "rows", (out[0], out[1]))

    def publish(self, *servers: str) -> None:
        """As `blindfit snapshot` does."""
        for name in servers or SERVERS:
            settings = load_party(self.root / f"{name}.toml")
            with self.store(name) as store:
                writer = snapshot_writer("measurement", vault_of(settings, self.root))
                Snapshots(settings, self.root, store, writer).publish("rows")

    def copied_to(self, root: Path) -> House:
        """With all that its parties keep."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        other.root, other.asked = root, {}
        return other

    def run(self, *overrides: str, job: str = "job.toml") -> JobSession:
        return Nodes(self.root).run(*overrides, job=job)

    # --- what came of it

    @contextlib.contextmanager
    def store(self, name: str) -> Iterator[Store]:
        with contextlib.closing(Store(self.root / "state" / name / "party.sqlite")) as store:
            yield store

    def charges(self) -> list[int]:
        """How many entries each of the two ledgers has."""
        counts = []
        for name in SERVERS:
            with self.store(name) as store:
                counts.append(len(store.reader().ledger()))
        return counts

    def report(self, session: JobSession) -> dict[str, Any]:
        return json.loads((self.root / "state" / "shop" / "models" / session.id / "report.json").read_text())

    def shares(self, name: str) -> dict[str, int]:
        table = pq.read_table(self.root / f"{name}.parquet")
        return dict(zip(table["id"].to_pylist(), table["share"].to_pylist(), strict=True))

    def exact(self, values: dict[str, int]) -> np.ndarray:
        """X^T y mod p of what was asked last, in Python's integers."""
        _, rows = next(iter(self.asked.values()))
        sums = [0] * rows.weights.shape[1]
        for row, line in zip(rows.ids, rows.weights.tolist(), strict=True):
            sums = [s + values[row] * x for s, x in zip(sums, line, strict=True)]
        return np.array([s % prime.P for s in sums], np.uint64)


def overheard(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that measurement servers get from the shop in their calls, as it comes."""
    seen: list[bytes] = []
    from_pb = codec.Messages.from_pb

    def noted(self: codec.Messages, envelope: Any, kind: type, *, culprit: str) -> Any:
        if culprit == "shop":
            seen.append(envelope.SerializeToString())
        return from_pb(self, envelope, kind, culprit=culprit)

    monkeypatch.setattr(codec.Messages, "from_pb", noted)
    return seen


Change = Callable[[ConsumerRows], ConsumerRows]


def listen(house: House, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Change] | None = None) -> dict[str, Any]:
    """What each server answers, in the end; a consumer that changes its rows for a server tells it their hash."""
    answers: dict[str, Any] = {}
    ask = Servers._ask

    async def asked(self: Servers, server: Server, request: AggregateOpen, rows: ConsumerRows) -> Any:
        name = server.member.name
        if change := (changed or {}).get(name):
            rows = change(rows)
            content = walr.ContentDigest()
            for batch in rows.batches():
                content.update(batch)
            request = replace(request, content_sha256=content.digest(), request_id=f"of {name}")
        house.asked[name] = request, rows
        aggregate = await ask(self, server, request, rows)
        answers[name] = aggregate.answer
        return aggregate

    monkeypatch.setattr(Servers, "_ask", asked)
    return answers
