"""A job with a measurement server, for the pre-flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.preflight.conftest import Project

IDENTITY = dict.fromkeys(("certificate", "key", "authority"), "none")


ROLES = {"shop": "active", "meter": "measurement"}


def measured(directory: Path, protocol: str, rows: int = 300, **job: Any) -> Project:
    """A shop's rows, and a measurement server's labels for them."""
    made, draw = Project(directory), np.random.default_rng(4)
    ids = np.array([f"p{i}" for i in range(rows)])
    made.tables["shop"] = {"id": ids, **{f"x{j}": draw.normal(size=rows).round(3) for j in range(3)}}
    numbers = protocol == "label-dp"
    labels = draw.uniform(0, 10, rows).round(2) if numbers else (draw.random(rows) < 0.4).astype(int)
    made.tables["meter"] = {"id": ids, "y": labels}
    for name, role in ROLES.items():
        peers = {"coordinator": {"role": "coordinator"}, **{n: {"role": r} for n, r in ROLES.items() if n != name}}
        made.parties[name] = {
            "name": name,
            "role": role,
            "data_dir": f"state/{name}",
            "identity": IDENTITY,
            "peers": peers,
            "policy": {"systems": [protocol], "max_epsilon": 50.0, "max_delta": 0.1},
            "datasets": {"rows": {"url": f"csv:{name}.csv", "id": "id"}},
        }
    made.parties["shop"]["datasets"]["rows"]["features"] = "rest"
    about = {"label": "y", "population": "people", "active_parties": ["shop"]}
    about |= {"label_kind": "number", "label_range": [0.0, 10.0]} if numbers else {}  # type: ignore[dict-item]
    made.parties["meter"]["datasets"]["rows"] |= about
    made.parties["meter"]["populations"] = {"people": {"epsilon": 100.0, "delta": 1e-5}}
    parties = {name: {"role": role, "config": f"{name}.toml", "dataset": "rows"} for name, role in ROLES.items()}
    made.job = {"protocol": protocol, "parties": parties, "privacy": {"epsilon": 1.0}, **job}
    return made
