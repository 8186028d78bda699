"""WALR trainings between real nodes of this process, and what their active party keeps for auditors."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from cryptography import x509

from blindfit.parties.files.private_files import read_certificate
from tests.export import tampering
from tests.export.tampering import Change
from tests.nodes import Nodes

ROWS, COLUMNS = 300, 3
POLICY: dict[str, Any] = {"systems": ["walr"], "max_epsilon": 2.0, "accept_seed": True}


@dataclass
class World:
    """
    Args:
        flipped: the row whose label is the other one.
        person: rows of four belong to a person, of which two count.
    """

    root: Path
    flipped: int | None = None
    person: bool = False

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        drawn = np.random.default_rng(5)
        features = drawn.normal(size=(ROWS, COLUMNS)).round(6)
        labels = (features[:, 0] + drawn.normal(size=ROWS) > 0).astype(int)
        if self.flipped is not None:
            labels[self.flipped] = 1 - labels[self.flipped]
        names = [f"r{i}" for i in range(ROWS)]
        self.table = self.root / "features.csv"
        _write(
            self.table,
            ["id", "zeta", "b", "alpha"],
            [[n, *map(repr, map(float, f))] for n, f in zip(names, features, strict=True)],
        )
        persons = [[f"p{i // 4}"] if self.person else [] for i in range(ROWS)]
        header = ["id", "label", *(["person"] if self.person else [])]
        _write(
            self.root / "labels.csv",
            header,
            [[n, y, *p] for n, y, p in zip(names, labels.tolist(), persons, strict=True)],
        )
        shop = {"rows": _dataset("features.csv", features="rest")}
        self._toml("shop", {"role": "active", "datasets": shop, "policy": POLICY})
        more = {"person": "person", "max_rows_per_person": 2} if self.person else {}
        labelled = _dataset("labels.csv", label="label", population="people", active_parties=["shop"], **more)
        budget = {"people": {"epsilon": 3.0, "delta": 1e-5}}
        meter = {"datasets": {"labels": labelled}, "populations": budget, "policy": {**POLICY, "min_rows": 100}}
        self._toml("meter", {"role": "measurement", **meter})
        seats = {
            "shop": {"role": "active", "config": "shop.toml", "dataset": "rows"},
            "meter": {"role": "measurement", "config": "meter.toml", "dataset": "labels"},
        }
        job = {"name": "j", "protocol": "walr", "seed": 3, "parties": seats, "split": {"test_fraction": 0.2}}
        (self.root / "job.toml").write_text(tomli_w.dumps({**job, "privacy": {"epsilon": 1.0, "delta": 1e-5}}))
        self.nodes = Nodes(self.root)

    def _toml(self, name: str, content: dict[str, Any]) -> None:
        roles = {"coordinator": "coordinator", "shop": "active", "meter": "measurement"}
        peers = {party: {"role": role} for party, role in roles.items() if party != name}
        own: dict[str, Any] = {"name": name, "data_dir": f"state-{name}", "peers": peers}
        own["identity"] = {"certificate": "c.pem", "key": "k.pem", "authority": "a.pem"}
        (self.root / f"{name}.toml").write_text(tomli_w.dumps({**own, **content}))

    def train(self, *overrides: str) -> Path:
        """Returns the active party's directory of the session."""
        session = self.nodes.run(*overrides)
        return self.root / "state-shop" / "models" / session.id

    @property
    def authority(self) -> x509.Certificate:
        return read_certificate(self.root / "nodes-authority" / "authority.pem")

    def sealed_again(self, encoded: bytes, change: Change) -> bytes:
        return tampering.sealed_again(encoded, self.root / "state-shop", change)


def _dataset(file: str, **more: Any) -> dict[str, Any]:
    return {"url": f"csv:{file}", "id": "id", **more}


def _write(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
