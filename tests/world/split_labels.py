"""A shop, a key node and three servers: two have shares of the labels, and one has the labels themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow.parquet as pq

from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows
from blindfit.algorithms.sharing import field as prime
from blindfit.coordinator.operator.split_labels import split_labels
from tests.world.files import write_csv
from tests.world.world import World

ROWS = 120
SERVERS = ("east", "west")
ROLES = {"shop": "active", "east": "measurement", "west": "measurement", "whole": "measurement", "dealer": "key-node"}
SHARE = {"label": "share", "label_kind": "share", "split": "split_id"}


@dataclass
class Split(World):
    """
    Args:
        persons: four rows belong to each person, and two of them count.
        asked: the shop's last request to each server.
    """

    persons: bool = False
    asked: dict[str, tuple[AggregateOpen, ConsumerRows]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        ids = [f"row {i}" for i in range(ROWS)]
        columns = {"id": ids, "x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS)}
        write_csv(self.root / "features.csv", columns)
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
        person = {"person": [f"person {i // 4}" for i in range(ROWS)]} if self.persons else {}
        write_csv(self.root / "labels.csv", {"id": list(self.labels), "label": labels, **person})

    def write_party(self, name: str, budget: float = 8.0, **policy: Any) -> None:
        """Write a party's file, again if it is there already; `policy` adds to its policy."""
        policy = {"systems": ["walr", "evaluate"], "max_epsilon": 8.0, **policy}
        if name == "shop":
            self.active(name, file="features.csv", policy=policy)
        elif name == "dealer":
            self.key_node(name, policy=policy)
        else:
            about = dict(SHARE if name in SERVERS else {})
            about |= {"person": "person", "max_rows_per_person": 2} if self.persons else {}
            file = f"{name}.parquet" if name in SERVERS else "labels.csv"
            people = {"people": {"epsilon": budget, "delta": 1e-5}}
            self.server(name, file=file, about=about, populations=people, policy={"min_rows": 20, **policy})

    def write_job(self, file: str, trust: str, parties: tuple[str, ...]) -> None:
        waits, split = {"step_s": 60.0, "reconnect_s": 20.0}, {"test_fraction": 0.25}
        self.walr(epsilon=1.0, file=file, parties=parties, walr={"trust": trust}, split=split, timeouts=waits)

    def write_evaluation(self, file: str, trust: str, session: str, **evaluate: Any) -> None:
        """Write evaluate.toml: it evaluates the model that a session trained, by the parties of another job file."""
        asked = {"trust": trust, "session": session, **evaluate}
        parties, waits = tuple(self.load(job=file).parties), {"step_s": 60.0, "reconnect_s": 20.0}
        self.job(
            "evaluate",
            file="evaluate.toml",
            parties=parties,
            evaluate=asked,
            privacy={"epsilon": 1.0},
            timeouts=waits,
        )

    def split(self) -> None:
        """Split all labels again."""
        out = self.root / "east.parquet", self.root / "west.parquet"
        for path in out:
            path.unlink(missing_ok=True)
        split_labels(self.settings("whole"), self.root, "rows", out)

    def publish_shares(self) -> None:
        for name in SERVERS:
            self.publish(name)

    def copied_to(self, root: Path) -> Self:
        other = super().copied_to(root)
        other.asked = {}
        return other

    def charges(self) -> list[int]:
        """Return the number of entries in each of the two ledgers."""
        return [len(self.ledger(name)) for name in SERVERS]

    def report(self, session: Any) -> Any:
        return self.written("shop", session, "report.json")

    def shares(self, name: str) -> dict[str, int]:
        table = pq.read_table(self.root / f"{name}.parquet")
        return dict(zip(table["id"].to_pylist(), table["share"].to_pylist(), strict=True))

    def exact(self, values: dict[str, int]) -> np.ndarray:
        """Return X^T y mod p of the last request, in Python's integers."""
        _, rows = next(iter(self.asked.values()))
        sums = [0] * rows.weights.shape[1]
        for row, line in zip(rows.ids, rows.weights.tolist(), strict=True):
            sums = [s + values[row] * x for s, x in zip(sums, line, strict=True)]
        return np.array([s % prime.P for s in sums], np.uint64)
