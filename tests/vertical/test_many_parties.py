"""Sixteen passive parties on one machine: a job runs to its end, and nothing of it is left."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from blindfit.coordinator.running import launcher
from blindfit.coordinator.running.nursery import Child, Nursery
from blindfit.parties.systems import MOST_PASSIVE, system
from tests.world.vertical import bank_and_shops

SHOPS = tuple(f"shop-{letter}" for letter in "abcdefghijklmnop")
ROWS = 80


@pytest.mark.timeout(400)  # eighteen processes
def test_a_job_of_sixteen_passive_parties_ends_and_leaves_no_process_and_no_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(SHOPS) == MOST_PASSIVE
    children: list[Child] = []
    nurseries: list[Nursery] = []

    class Noting(Nursery):
        def start(self, words: Sequence[str], *how: Any) -> Child:
            nurseries.append(self)
            children.append(super().start(words, *how))
            return children[-1]

    monkeypatch.setattr(launcher, "Nursery", Noting)
    world = bank_and_shops(tmp_path, rows=ROWS, epochs=1, shops=SHOPS)
    done = world.launch('taylor.unsafe=["label-bits", "leverage"]')  # too few rows for so many columns
    assert done.returncode == 0, done.stderr
    report = json.loads(world.path("out/bank/report.json").read_text())
    assert report["rows"]["common"] == ROWS
    assert all(world.path(f"out/{name}/model.json").exists() for name in ("bank", *SHOPS))
    assert [child.returncode for child in children] == [0] * 18
    assert not any(psutil.pid_exists(process.pid) for process in (*children, nurseries[0]))
    for name in ("bank", "notary", *SHOPS):
        with socket.socket() as other:
            port = int(world.path(f"out/{name}/port").read_text())
            assert other.connect_ex(("127.0.0.1", port)) != 0, f"{name} still listens"


@pytest.mark.parametrize("protocol", ["taylor", "predict"])
def test_a_seventeenth_passive_party_is_refused(protocol: str) -> None:
    roles = ["active", "key-node", *["passive"] * (MOST_PASSIVE + 1)]
    assert "1 to 16 passive" in system(protocol).wrong_roles(roles)
