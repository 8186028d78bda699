"""Running jobs from Python: what comes back, what a watcher sees, and how a job is stopped."""

from __future__ import annotations

import asyncio
import html
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import onnx
import pytest

import blindfit
from blindfit import ConfigError, PolicyRefused, Stopped
from blindfit.coordinator.job.out_dir import hold_folder
from tests.command import ROOT
from tests.hints.following import refused
from tests.world.loans import loans
from tests.world.measured import shop_and_meter
from tests.world.world import World

ENDS_WITHIN_S = 60.0
ENDLESS = {"epochs": 10_000, "patience": 0}  # on no machine such a job ends before it is stopped


async def test_a_job_runs_inside_a_running_loop_and_returns_what_it_left(measured: World) -> None:
    result = blindfit.run("job.toml", out="out", progress=False)
    await asyncio.sleep(0)  # the loop goes on
    assert result.folder == Path("out")
    assert result.document["session"] == result.session
    assert result.report.privacy.epsilon == 1.0
    assert list(result.models) == ["shop"]
    assert result.model.feature_weights == result.models["shop"].feature_weights
    assert result.session in html.unescape(result._repr_html_())
    exported = blindfit.export_model(result, "sql", out="walr.sql")
    assert exported.document["outputs"] == ("score", "probability")
    assert result.model.privacy_statement_[:30] in Path("walr.sql").read_text()
    assert [entry["epsilon"] for entry in blindfit.ledger("meter.toml").document["entries"]] == [1.0]
    assert list(result.scores) == ["id", "probability"]
    assert len(result.scores) == result.document["parties"]["shop"]["summary"]["rows"]["held_out"]


def test_reports_go_to_a_new_folder_where_nobody_names_one(measured: World) -> None:
    first, second = (blindfit.run("job.toml", progress=False) for _ in range(2))
    assert first.folder.parent == second.folder.parent == Path("runs")
    assert first.folder != second.folder


def test_two_jobs_at_once_do_not_share_a_folder(measured: World) -> None:
    Path("out").mkdir()
    with hold_folder(Path("out")), refused("wait until it has ended, or name another folder"):
        blindfit.run("job.toml", out="out", progress=False)
    assert blindfit.run("job.toml", out="out", progress=False).folder == Path("out")


def test_what_a_command_says_is_said_here_too(measured: World, capsys: pytest.CaptureFixture[str]) -> None:
    blindfit.run("job.toml", out="out")
    said = capsys.readouterr().out
    assert "shop: rows is published as snapshot 1" in said
    assert "  shop: done" in said
    blindfit.run("job.toml", out="again", progress=False)
    assert capsys.readouterr().out == ""


def test_a_refusal_is_an_exception_and_leaves_no_folder(measured: World) -> None:
    with pytest.raises(PolicyRefused, match=r"privacy\.epsilon: 3 is more than its max_epsilon = 2"):
        blindfit.run("job.toml", progress=False, privacy={"epsilon": 3})
    with pytest.raises(ConfigError, match="has no dataset named other"):
        blindfit.run("job.toml", out="none", progress=False, parties={"shop": {"dataset": "other"}})
    assert not Path("none").exists()


def test_check_and_plan_find_what_the_commands_find(measured: World) -> None:
    found = blindfit.check("job.toml")
    said = measured.blindfit("check", "job.toml").stdout
    assert all(finding.about in said for finding in found)
    assert not found.refuses
    assert blindfit.check("job.toml", privacy={"epsilon": 3}).refuses
    assert "meter" in found._repr_html_()
    assert repr(found[0]).startswith("Finding(")
    plan = blindfit.plan("job.toml", epsilon=[0.5], draws=2, out="plan", progress=False)
    assert Path("plan/plan.json") in plan.document["files"]


def test_scores_of_a_training_and_of_new_rows_are_data_frames(vertical: World) -> None:
    trained = blindfit.run("job.toml", out="out", progress=False, taylor={"epochs": 1})
    assert list(trained.scores)[:4] == ["id", "label", "score", "probability"]
    assert len(trained.scores) == trained.document["parties"]["bank"]["summary"]["rows"]["test"]
    assert set(trained.models) == {"bank", "post", "shop"}
    with refused("take `models`, which has all of them"):
        _ = trained.model
    blindfit.export_model(trained, "onnx")
    exported = onnx.load("out/bank/model.onnx")
    assert len(exported.graph.input) == 12
    facts = {each.key: each.value for each in exported.metadata_props}
    assert facts["session"] == trained.session
    assert trained.document["privacy_statement"][0]["title"] in facts["privacy"]
    assert list(trained.models["bank"].feature_names_in_) == ["bank0", "bank1", "bank2"]


def test_a_watcher_hears_every_word_and_cancels(vertical: World) -> None:
    with blindfit.run("job.toml", out="out", wait=False, taylor=ENDLESS) as running:
        heard = []
        for event in running.watch():
            heard.append(event)
            if event.step.startswith("epoch 2"):
                running.cancel()
        assert running.has_ended
        assert {event.party for event in heard} == {"bank", "post", "shop", "notary"}
        assert list(running.watch()) == heard
        with pytest.raises(Stopped, match="the parties received the order to end") as caught:
            running.result()
        assert "taylor.resume" in caught.value.hint
    assert not _processes_of(vertical.root)


@pytest.mark.parametrize("waits_s", [0.0, 0.05, 0.3, 1.0])
def test_a_block_that_ends_ends_its_job_at_any_moment(vertical: World, waits_s: float) -> None:
    with blindfit.run("job.toml", out="out", wait=False, taylor=ENDLESS) as running:
        time.sleep(waits_s)
    assert running.has_ended
    with pytest.raises(Stopped):
        running.result()
    assert not _processes_of(vertical.root)


def test_two_jobs_run_at_once(measured: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = shop_and_meter(tmp_path_factory.mktemp("other"))
    runs = [blindfit.run(root / "job.toml", out=root / "out", wait=False) for root in (measured.root, other.root)]
    assert len({run.result().session for run in runs}) == 2


def test_a_signal_handler_of_the_program_stays(measured: World) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    blindfit.run("job.toml", out="out", progress=False)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert not [t for t in threading.enumerate() if t.name.startswith("blindfit")]


def test_an_interrupt_cancels_the_job_and_ends_its_processes(vertical: World) -> None:
    """A notebook's stop button interrupts the whole group of processes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-u", "-m", "tests.python_calls.interrupted"]
    with subprocess.Popen(
        words, cwd=vertical.root, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "epoch 1" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(ENDS_WITHIN_S) == 0
    assert "interrupted" in rest
    assert not _processes_of(vertical.root)


def _processes_of(root: Path) -> list[str]:
    """Return the command lines of parties that still run in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            here, words = (path / "cwd").resolve(), (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if here == root and path.name != str(os.getpid()):
            found.append(b" ".join(words).decode())
    return found


@pytest.mark.parametrize("protocol", ["taylor", "falcon"])
async def test_a_check_runs_inside_a_running_loop(tmp_path: Path, protocol: str) -> None:
    loans(tmp_path, protocol, columns=(3, 4, 5))
    assert "bytes" in {finding.about for finding in blindfit.check("job.toml")}


def test_the_figures_of_an_evaluation_are_typed(measured: World) -> None:
    for party in ("shop.toml", "meter.toml"):
        measured.edit(party, "[policy]", '[policy]\nsystems = ["walr", "evaluate"]')
    trained = blindfit.run("job.toml", out="out", progress=False)
    privacy = {"epsilon": 1.0, "delta": 1e-5}
    asked = blindfit.Job(
        protocol="evaluate",
        parties=trained.document["job"]["parties"],
        privacy=privacy,
        evaluate={"session": "x", "rows": "all"},
    )
    result = blindfit.evaluate(asked, model=trained, out="tried", progress=False)
    figures = result.report.figures
    assert figures["accuracy"].low <= figures["accuracy"].value <= figures["accuracy"].high
    assert result.report.trained_in == trained.session
    assert result.report.rows.counted == result.document["rows"]["counted"]
    assert result.report.privacy.epsilon == 1.0
    assert result.models == {}
    with refused(
        "a prediction leaves one, and so does a training whose split.test_fraction is above 0, unless its protocol "
        "reveals no score of a row"
    ):
        _ = result.scores
    assert len(trained.scores)
