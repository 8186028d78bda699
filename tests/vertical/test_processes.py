"""Vertical training between processes: few runs, each looked at from several sides."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.protocols import handshake
from blindfit.coordinator.running import launcher
from blindfit.coordinator.running.nursery import Child, Nursery
from blindfit.parties.systems import system
from tests.world import World
from tests.world.vertical import ROLES, bank_and_shops

pytestmark = pytest.mark.timeout(400)  # several jobs of four processes each
DATA_PARTIES = [name for name, role in ROLES.items() if role != "key-node"]


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path)


def weights(project: World, out: str) -> np.ndarray:
    parts = [json.loads((project.root / out / name / "model.json").read_text()) for name in DATA_PARTIES]
    return np.concatenate([list(part["weights"].values()) for part in parts])


def transcript(project: World, name: str) -> list[dict[str, object]]:
    lines = (project.root / "out" / name / "transcript.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_nothing_is_received_that_the_tables_do_not_list(project: World, full_size_keys: None) -> None:
    finished = project.launch("taylor.epochs=2", 'taylor.class_weights="balanced"', 'taylor.unsafe=["class-weights"]')
    assert finished.returncode == 0, finished.stderr
    arrows = [arrow for table in (handshake.TABLE, *system("taylor").tables()) for arrow in table.arrows]
    for name, role in ROLES.items():
        lines = transcript(project, name)
        for line in lines:
            sender = ROLES[str(line["from"])]
            found = [
                arrow
                for arrow in arrows
                if arrow.message.__name__ == line["kind"] and sender in arrow.senders and role in arrow.receivers
            ]
            assert found, f"{name} received {line['kind']} from {line['from']}"
            assert line["opened"] == found[0].opened
            assert re.fullmatch("[0-9a-f]{64}", str(line["sha256"]))
        kinds = {str(line["kind"]) for line in lines}
        assert ("MaskedGradient" in kinds) == (role == "key-node")
        assert ("NoisyGradient" in kinds) == (role != "key-node")
        assert ("MaskedScores" in kinds) == (role == "active")
    report = json.loads((project.root / "out" / "bank" / "report.json").read_text())
    assert report["rows"]["common"] == 240
    assert report["evaluation"]["auc"] > 0.7


def test_a_killed_party_is_named_and_the_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path, rows=75)
    session = _run_until_killed(project, "shop-a", epoch=3)
    before = project.root / "before"
    shutil.copytree(project.root / "state", before)
    resumed = project.launch(f"taylor.resume={session}", "taylor.epochs=6", out="from-3")
    assert resumed.returncode == 0, resumed.stderr
    assert not list((project.root / "state").glob("*/checkpoints/*"))  # nothing secret of it stays
    shutil.rmtree(project.root / "state")
    shutil.copytree(before, project.root / "state")
    for newest in (project.root / "state").glob("*/checkpoints/*/epoch-[2-9].json"):
        newest.unlink()
    again = project.launch(f"taylor.resume={session}", "taylor.epochs=6", out="from-1")
    assert again.returncode == 0, again.stderr
    # Epochs 2 and 3 were computed twice, with other ciphertexts: jitter, noise and the order of rows were the same.
    assert np.abs(weights(project, "from-3") - weights(project, "from-1")).max() <= 1e-9


def _run_until_killed(project: World, victim: str, epoch: int) -> str:
    """Run until the party is killed; return the session, of which the victim had kept that epoch."""
    started: dict[str, Child] = {}
    found: list[Path] = []
    ended = threading.Event()

    class Noting(Nursery):
        def start(self, words: Sequence[str], *how: Any) -> Child:
            return started.setdefault(Path(words[1]).stem, super().start(words, *how))

    def kill() -> None:
        while not found and not ended.is_set():
            found.extend((project.root / "state" / victim / "checkpoints").glob(f"*/epoch-{epoch}.json"))
            time.sleep(0.02)
        started[victim].kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launcher, "Nursery", Noting)
        killing = threading.Thread(target=kill)
        killing.start()
        try:
            done = project.launch("taylor.epochs=6", out="killed")
        finally:
            ended.set()
            killing.join()
    assert done.returncode != 0
    said = done.stderr
    assert said.startswith(f"error: {victim}'s process was killed (SIGKILL) in the middle of the job; its log is ")
    session = found[0].parent.name
    assert f"taylor.resume={session}" in said
    return session


def test_label_dp_is_charged_once_to_the_active_partys_ledger(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path, rows=100)
    finished = project.launch("privacy.epsilon=2", "taylor.epochs=2")
    assert finished.returncode == 0, finished.stderr
    report = json.loads((project.root / "out" / "bank" / "report.json").read_text())
    assert report["privacy"]["epsilon"] == 2.0
    assert report["privacy"]["spent_epsilon"] == pytest.approx(2.0, rel=1e-3)
    shown = json.loads((project.root / "out" / "report.json").read_text())
    assert "evaluation" not in shown["parties"]["bank"]["summary"]  # made from labels, and not charged
    refused = project.launch("privacy.epsilon=2.5", "taylor.epochs=2")
    assert refused.returncode != 0
    assert "budget" in refused.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("taylor.jitter=0", "jitter"),
        ("taylor.gradient_noise=0", "gradient_noise"),
        ("taylor.resume=nothing-1", "no checkpoint"),
        ("align.min_common=1000", "common"),
    ],
)
def test_what_is_unsafe_or_wrong_is_one_line(project: World, override: str, said: str) -> None:
    finished = project.launch(override)
    assert finished.returncode != 0
    assert said in finished.stderr.splitlines()[0]
