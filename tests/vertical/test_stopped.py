"""Lines that a job prints while it runs, and the state after Ctrl-C, which a terminal sends to every process of the
run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from blindfit.coordinator.running.progress import JobProgress, _Epochs
from blindfit.protos import control_pb2 as pb
from tests.world import World
from tests.world.vertical import bank_and_shops

DEADLINE_S = 120
EPOCHS = 30  # enough that none ends before it is stopped, even if the stop comes late


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=80, epochs=EPOCHS)


def interrupted(project: World, until: str, *words: str) -> tuple[int, str, str]:
    """Run a job and stop it once it has printed a match of this pattern; without one, once it has begun a process."""
    process = subprocess.Popen(
        project.command("run", "job.toml", "--out", "out", "--set", "taylor.patience=0", *words),
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    said, give_up = "", time.monotonic() + DEADLINE_S
    assert process.stdout is not None
    while until and not re.search(until, said):
        assert time.monotonic() < give_up
        said += process.stdout.readline()
        assert process.poll() is None, said
    while not until and not psutil.Process(process.pid).children():
        assert time.monotonic() < give_up
        time.sleep(0.01)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    os.killpg(process.pid, signal.SIGINT)
    rest, errors = process.communicate(timeout=DEADLINE_S)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    return process.returncode, said + rest, errors


def test_a_training_that_is_stopped_says_so_and_goes_on_from_its_last_epoch(project: World) -> None:
    code, said, errors = interrupted(project, rf"epoch ([3-9]|\d\d) of {EPOCHS}, hold-out loss 0\.\d{{4}}")
    assert code == 130
    assert re.match(r"stopped: the parties received the order to end vertical-[0-9a-f]{8}\n", errors)
    assert "Traceback" not in errors
    (session,) = re.findall(r"hint: go on from the last epoch: --set taylor\.resume=(\S+)\n", errors)
    told = [int(number) for number in re.findall(rf"^  epoch (\d+) of {EPOCHS}", said, re.M)]
    assert told == sorted(set(told))  # the newest now and then: one that ends soon after another may be left out
    again = project.launch(f"taylor.resume={session}", "taylor.patience=0")
    assert again.returncode == 0, again.stderr
    assert "epoch 1 of" not in again.stdout


def test_one_that_is_stopped_while_its_processes_start_leaves_none(project: World) -> None:
    code, _, errors = interrupted(project, "")
    assert code == 130
    assert errors.startswith("stopped: all processes of this machine have ended")
    assert "Traceback" not in errors


# --- only the lines ---------------------------------------------------------------------------------------


def shown(*events: tuple[str, str], epochs: int = 20, **how: Any) -> list[str]:
    console = Console(record=True, width=200, force_terminal=False)
    with JobProgress(["bank", "shop"], console, epochs=epochs, **how) as progress:
        for party, step in events:
            progress.show(party, pb.Event(progress=pb.Progress(step=step)))
    return console.export_text().splitlines()


def test_an_epoch_is_one_line_whoever_begins_it_and_messages_are_none() -> None:
    events = [("bank", "Hello"), ("bank", "align"), ("shop", "align"), ("shop", "epoch 1"), ("bank", "epoch 1")]
    expected = ["  bank: align", "  shop: align", "  epoch 1 of 20", "  epoch 2 of 20"]
    events += [("bank", "PartialLoss"), ("bank", "epoch 2"), ("shop", "epoch 2")]
    assert shown(*events) == expected
    assert shown(*events, quiet=True) == []
    assert shown(*events, verbose=True) == [f"  {party}: {step}" for party, step in events]


def test_a_fold_is_one_line_whoever_begins_it() -> None:
    events = [
        (party, f"point 1 of 2, fold {fold} of 3, epoch {n}")
        for fold in (1, 2)
        for n in (1, 2)
        for party in ("bank", "shop")
    ]
    assert shown(*events) == ["  point 1 of 2, fold 1 of 3", "  point 1 of 2, fold 2 of 3"]
    assert shown(*events, verbose=True) == [f"  {party}: {step}" for party, step in events]


def test_the_hold_out_loss_is_told_at_the_pace_of_who_knows_it() -> None:
    events = [("bank", "epoch 1"), ("shop", "epoch 1"), ("bank", "epoch 2"), ("shop", "epoch 2, hold-out loss 0.3410")]
    events += [("bank", "epoch 3"), ("shop", "epoch 3, hold-out loss 0.2990")]
    assert shown(*events, judge="shop") == [
        "  epoch 1 of 20",
        "  epoch 2 of 20, hold-out loss 0.3410",
        "  epoch 3 of 20, hold-out loss 0.2990",
    ]
    assert shown(*events[:3], judge="post") == ["  epoch 1 of 20", "  epoch 2 of 20"]  # the post reports no epochs


def test_what_is_no_loss_is_a_step_of_its_own() -> None:
    step = "epoch 1, hold-out loss \x1b[2J"
    (line,) = shown(("shop", step), judge="shop")
    assert line.startswith("  shop: epoch 1, hold-out loss")
    assert line.isprintable()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_peers_step_is_text_and_no_markup(terminal: bool) -> None:
    console = Console(record=True, width=200, force_terminal=terminal)
    with JobProgress(["bank"], console) as progress:
        progress.show("bank", pb.Event(progress=pb.Progress(step="[/bold] [red]align")))
    assert "[/bold] [red]align" in console.export_text()


def test_time_left_is_of_all_epochs_and_at_most_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch takes three seconds, counted from the first that this run begins."""
    now = [0.0]

    def later() -> float:
        return now[0]

    monkeypatch.setattr("blindfit.coordinator.running.progress.time.monotonic", later)
    epochs, said = _Epochs(60), []
    for epoch in (5, 6, 7, 60):
        now[0] = 100.0 + 3 * (epoch - 5)
        said.append(epochs.describe(epoch))
    assert said == [
        "epoch 5 of 60",
        "epoch 6 of 60, at most 3 min left",
        "epoch 7 of 60, at most 3 min left",
        "epoch 60 of 60, at most 3 s left",
    ]


def test_without_a_number_of_epochs_none_is_made_up() -> None:
    assert shown(("bank", "epoch 1"), epochs=0) == ["  epoch 1"]
