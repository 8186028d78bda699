"""Rehearse a job of every system, with its prediction and evaluation, where the parties' own state cannot be read."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from blindfit.algorithms.rehearsal import NOTHING, STAMP
from tests.command import Done, Forked
from tests.refusals import worlds
from tests.rehearsal.kept import Kept, kept_in
from tests.vertical.victim import POINTS
from tests.world import World
from tests.world.holders import Holders
from tests.world.loans import loans
from tests.world.measured import shop_and_meter
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares

UNREADABLE = b"a rehearsal does not read this"
STARTS_WITHIN_S = 60.0
EPOCHS = 30


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that the user keeps of other jobs cannot be read either."""
    folder = tmp_path / "user"
    (folder / "blindfit").mkdir(parents=True)
    (folder / "blindfit" / "receipts.sqlite").write_bytes(UNREADABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def with_unreadable_state(world: World) -> World:
    for name in world.roles:
        folder = world.path("state", name)
        folder.mkdir(parents=True)
        for file in ("party.sqlite", "receipt.key", "party.key", "log.jsonl"):
            (folder / file).write_bytes(UNREADABLE)
    return world


def kept(world: World, user: Path) -> Kept:
    return kept_in(world.root, user, except_for=(world.path("runs"),))


def typed(world: World, *words: str, code: int = 0) -> Done:
    done = world.blindfit(*words, "--rehearse")
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done


def contents(folder: Path) -> dict[str, bytes]:
    return {path: content for path, (_, content) in kept_in(folder).items()}


def stamps(folder: Path) -> None:
    """Check that all reports, models and scores below a folder have the stamp."""
    written = [path for path in folder.rglob("*") if "rehearsal" not in path.relative_to(folder).parts]
    documents = [path for path in written if path.suffix == ".json"]
    documents += folder.glob("rehearsal/*/models/*/*.json")
    assert [path for path in documents if path.name == "report.json"]
    for path in documents:
        content = json.loads(path.read_text())
        assert STAMP in (content.get("rehearsal"), content.get("format")) or path.name == "training_rows.json", path
    for path in (path for path in written if path.suffix == ".csv"):
        assert NOTHING in path.read_text().splitlines()[1], path
    assert STAMP in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    "make",
    [
        worlds.walr,
        worlds.label_dp,
        worlds.dp_lr,
        bank_and_shops,
        lambda root: loans(root, "falcon", columns=(3, 2, 2)),
    ],
    ids=["walr", "label-dp", "dp-lr", "taylor", "falcon"],
)
def test_a_training(make: Callable[[Path], World], tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = with_unreadable_state(make(root))
    before = kept(world, user)
    for _ in range(2):  # a rehearsal takes the place of an earlier one
        typed(world, "run", "job.toml", "--out", "runs/training")
    stamps(world.path("runs/training"))
    typed(world, "run", "job.toml", "--out", "runs/refused", "--set", "timeouts.step_s=0", code=2)
    assert kept(world, user) == before
    assert not world.path("runs/refused").exists()


@pytest.mark.parametrize("make", [bank_and_shops, bank_and_shops_in_shares], ids=["taylor", "falcon"])
def test_a_prediction_leaves_the_training_as_it_is(make: Callable[[Path], World], tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = with_unreadable_state(make(root))
    world.set("scores", {"url": "csv:scores_of_the_bank.csv", "if_exists": "replace"}, "bank")
    before = kept(world, user)
    more = ("--set", "falcon.weights=shared") if make is bank_and_shops_in_shares else ()
    typed(world, "run", "job.toml", "--out", "runs/training", *more)
    training = contents(world.path("runs/training"))
    for _ in range(2):
        typed(world, "predict", "predict.toml", "--model", "runs/training")
    stamps(world.path("runs/predict-rehearsal"))
    assert len(world.path("runs/predict-rehearsal/bank/scores.csv").read_text().splitlines()) > 50
    (session,) = {json.loads(world.path("runs/training/report.json").read_text())["session"]}
    typed(world, "predict", "predict.toml", "--session", session, "--out", "runs/by-session")
    assert contents(world.path("runs/training")) == training
    assert kept(world, user) == before
    refused = world.blindfit("predict", "predict.toml", "--model", "runs/training", "--out", "runs/real")
    assert refused.returncode
    assert f"comes from a rehearsal: {NOTHING}" in refused.stderr


def test_an_evaluation_of_a_joint_prediction(tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = Holders(root)
    world.write_prediction("which")
    parties, asked = ("shop", "meter"), {"session": "which", "scores": "which"}
    world.job("evaluate", file="evaluate.toml", parties=parties, evaluate=asked, privacy={"epsilon": 2.0})
    with_unreadable_state(world)
    before = kept(world, user)
    typed(world, "run", "job.toml", "--out", "runs/training")
    typed(world, "predict", "predict.toml", "--model", "runs/training", "--out", "runs/scores")
    for _ in range(2):
        words = ("--model", "runs/training", "--scores", "runs/scores")
        shown = typed(world, "evaluate", "evaluate.toml", *words).stdout
    assert STAMP in shown
    stamps(world.path("runs/evaluate-rehearsal"))
    assert kept(world, user) == before


def test_an_evaluation_of_a_whole_model(tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = shop_and_meter(root)
    world.set("policy.systems", ["walr", "evaluate"])
    world.job("evaluate", file="evaluate.toml", evaluate={"session": "which"}, privacy={"epsilon": 1.0})
    with_unreadable_state(world)
    before = kept(world, user)
    typed(world, "run", "job.toml", "--out", "runs/training")
    training = contents(world.path("runs/training"))
    for _ in range(2):
        typed(world, "evaluate", "evaluate.toml", "--model", "runs/training")
    assert contents(world.path("runs/training")) == training
    assert kept(world, user) == before


def test_a_rehearsal_that_is_killed_goes_on(tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = with_unreadable_state(bank_and_shops(root, rows=80, epochs=EPOCHS))
    before = kept(world, user)
    (points := tmp_path / "points").mkdir()
    (points / POINTS).touch()
    words = [sys.executable, "-m", "tests.blame.run_here", points, "run", "job.toml", "--rehearse"]
    words += ["--out", "runs/killed", "--set", "taylor.patience=0"]
    with (tmp_path / "said").open("wb") as log:
        process = Forked(words, stdout=log, stderr=log, cwd=root)
    try:
        give_up = time.monotonic() + STARTS_WITHIN_S
        while not (found := list(root.glob("runs/killed/rehearsal/shop-a/checkpoints/*/epoch-[1-9]*.json"))):
            assert time.monotonic() < give_up
            assert process.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(STARTS_WITHIN_S)
    sets = ("--set", f"taylor.resume={found[0].parent.name}", "--set", "taylor.patience=0")
    refused = world.blindfit("run", "job.toml", "--out", "runs/real", *sets)
    assert refused.returncode  # a real job does not use the result of a rehearsal
    for out in ("elsewhere", "killed"):  # with a copy of what the parties had kept, and with that itself
        resumed = typed(world, "run", "job.toml", "--out", f"runs/{out}", *sets)
        assert "epoch 1 of" not in resumed.stdout
    assert kept(world, user) == before


def test_an_operator_who_approves_each_job_is_not_asked(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    world.set("policy.approve", "ask")
    typed(world, "run", "job.toml", "--out", "runs/training")


def test_paths_of_a_party_start_in_the_folder_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_unreadable_state(shop_and_meter(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = World(elsewhere).blindfit("run", os.path.relpath(world.path("job.toml"), elsewhere), "--rehearse")
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "runs" / "latest-rehearsal" / "report.json").exists()
    assert not (elsewhere / "runs" / "latest").exists()


def test_keys_are_locked_with_the_partys_own_words(tmp_path: Path, user: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    world = with_unreadable_state(shop_and_meter(root))
    (root / "words").write_text("correct horse battery staple\n")
    (root / "words").chmod(0o600)
    world.set("secrets.passphrase_file", "words")
    before = kept(world, user)
    typed(world, "run", "job.toml", "--out", "runs/training")
    for name in world.roles:
        assert world.path("runs/training/rehearsal", name, "vault.json").exists()
    assert kept(world, user) == before
