"""Parties' files, for wrong options."""

from __future__ import annotations

from typing import Any

IDENTITY = {"certificate": "c.pem", "key": "k.pem", "authority": "a.pem"}


PEERS = {
    "coordinator": {"role": "coordinator"},
    "bank": {"role": "active"},
    "post": {"role": "passive"},
}


ROWS = {"url": "csv:rows.csv", "id": "id"}


LABELS = {**ROWS, "label": "y", "population": "people", "active_parties": ["bank"]}


BUDGET = {"populations": {"people": {"epsilon": 3.0, "delta": 1e-5}}}


def party(role: str, protocols: list[str], **tables: Any) -> dict[str, Any]:
    known = {name: peer for name, peer in PEERS.items() if name != "bank" or role != "active"}
    named = {"name": "party", "role": role, "identity": IDENTITY, "peers": known}
    return {**named, "policy": {"systems": protocols}, **tables}


PARTIES: dict[str, dict[str, Any]] = {
    "active": party(
        "active", ["taylor", "walr", "predict"], datasets={"rows": {**ROWS, "features": "rest", "label": "y"}}
    ),
    "passive": party("passive", ["taylor"], datasets={"rows": {**ROWS, "features": "rest"}}),
    "server": party("measurement", ["walr"], datasets={"rows": LABELS}, **BUDGET),
    "numbers": party(
        "measurement",
        ["label-dp"],
        datasets={"rows": {**LABELS, "label_kind": "number", "label_range": [0.0, 10.0]}},
        **BUDGET,
    ),
    "key-node": party("key-node", ["taylor"]),
}
