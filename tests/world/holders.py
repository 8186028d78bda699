"""Three parties with columns of the same people, each without some of them, and a server with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.world.files import write_csv
from tests.world.world import World

ROWS = 1800
COLUMNS = {"bank": ("a", "b", "c", "d"), "chain": ("e", "f", "g", "h"), "shop": ("x", "z")}
MISSING = {"bank": 7, "chain": 11, "shop": 13}  # every so many rows, one is not there
HOLDERS = tuple(COLUMNS)
WAITS = {"step_s": 60.0, "reconnect_s": 20.0}
POLICY = {"max_epsilon": 8.0}


@dataclass
class Holders(World):
    labels: list[int] | None = None

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        self.features = {name: rng.normal(size=(ROWS, len(columns))) for name, columns in COLUMNS.items()}
        score = self.features["shop"][:, 0] + self.features["bank"][:, 0] - self.features["chain"][:, 1]
        drawn = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-score))).astype(int).tolist()
        self.labels = self.labels or drawn
        self.active("shop", policy={**POLICY, "systems": ["walr", "evaluate", "predict"]})
        for name in ("bank", "chain"):
            self.passive(name, policy={**POLICY, "systems": ["walr", "predict"]})
        self.write_server(("bank", "chain"))
        self.key_node("keys", policy={"systems": ["predict"]})
        for name in HOLDERS:
            self.write_features(name)
        write_csv(self.root / "labels.csv", {"id": [f"row {i}" for i in range(ROWS)], "label": self.labels})
        self.write_job("job.toml", (*HOLDERS, "meter"))
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
        write_csv(self.root / f"{name}.csv", {"id": [f"row {i}" for i in rows], **columns})

    def write_server(self, holders: Sequence[str]) -> None:
        policy = {**POLICY, "systems": ["walr", "evaluate"], "min_rows": 20}
        self.server("meter", file="labels.csv", about={"passive_parties": list(holders)}, policy=policy)

    def write_job(self, file: str, parties: Sequence[str]) -> None:
        self.walr(epsilon=4.0, file=file, parties=parties, split={"test_fraction": 0.2}, timeouts=WAITS)

    def write_prediction(self, session: str) -> None:
        asked: dict[str, Any] = {"align": {"min_common": 20}, "predict": {"session": session}}
        self.job("predict", file="predict.toml", parties=(*HOLDERS, "keys"), timeouts=WAITS, **asked)

    def spent(self) -> int:
        """Return the number of entries in the server's ledger."""
        return len(self.ledger("meter"))
