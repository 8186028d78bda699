"""Faults in trainings that go on from checkpoints, between forked processes."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest

from blindfit.algorithms.rehearsal import STAMP
from blindfit.coordinator.running import session
from blindfit.coordinator.running.study import Study
from blindfit.coordinator.terminal.exit_codes import ExitCode
from tests.faults.studying import study
from tests.faults.trainings import MAKERS, falcon, taylor
from tests.world.vertical import ROLES, SHOPS, weights

STOPPED_IN_CHECK = "it stopped during a check of its shares, after which no training goes on"
SHORT = {"step_s": 8.0, "reconnect_s": 6.0}  # on a busy machine a healthy party takes seconds for a handshake


def test_a_killed_party_is_named_and_the_hint_leads_on(tmp_path: Path) -> None:
    party = "bank"
    world = taylor(tmp_path)
    studied = study(world, f"kill {party} at epoch 2")
    assert studied.done.returncode == 1
    assert f"error: {party}'s process was killed (SIGKILL) in the middle of the job" in studied.done.stderr
    assert f'this command killed it, as the fault "kill {party} at epoch 2" asks' in studied.done.stderr
    assert "after the cause is mended, go on from the last epoch: --set taylor.resume=" in studied.done.stderr
    assert studied.faults["cause"] == party
    assert studied.faults["never"] == []
    assert studied.lines("fault") == ["is killed (SIGKILL)"]
    for other in set(ROLES) - {party}:
        assert any(f"names {party} as the cause" in line for line in studied.lines("said", other)), studied.faults
    assert studied.lines("said", party)[-1] == "nothing: its process has ended"
    assert studied.ended.startswith("failed: ")
    assert studied.ended.endswith(f"names {party} as the cause")
    assert "is killed (SIGKILL)" in studied.done.stdout
    assert not world.path("out", "report.json").exists()


def test_a_command_that_is_stopped_while_a_party_starts_again_keeps_the_timeline(tmp_path: Path) -> None:
    with mock.patch.object(Study, "start_again", side_effect=KeyboardInterrupt):
        studied = study(taylor(tmp_path), "restart shop-b at epoch 2", more=("--rehearse",))
    assert studied.done.returncode == ExitCode.STOPPED
    assert "shop-b was not running again, so the job has ended" in studied.done.stderr
    assert studied.lines("fault") == ["is killed (SIGKILL)"]
    assert studied.faults["rehearsal"] == STAMP


@pytest.mark.parametrize(
    ("system", "faults"),
    [
        ("taylor", ("restart shop-b at epoch 2", "restart notary at epoch 15")),
        ("falcon", ("restart notary at epoch 2",)),
    ],
)
def test_a_training_goes_on_after_each_party_that_is_started_again(
    tmp_path: Path, system: str, faults: tuple[str, ...]
) -> None:
    world = MAKERS[system](tmp_path)
    studied = study(world, *faults)
    if system == "falcon" and STOPPED_IN_CHECK in studied.done.stderr:  # it may be hit there: a clean end, as promised
        assert studied.done.returncode == 1
        return
    assert studied.done.returncode == 0, studied.done.stderr
    first, *later = studied.faults["sessions"]
    assert len(later) == len(faults)
    assert all(asked["at_s"] is not None for asked in studied.faults["asked"])
    assert studied.lines("fault") == ["is killed (SIGKILL)", "is started again"] * len(faults)
    assert {f"goes on as {session}" for session in later} <= set(studied.lines("job"))
    assert studied.ended == "is done"
    went_on = {line for line in studied.lines("said") if line.startswith(("goes on after", "goes on from"))}
    assert 1 <= len(went_on) <= len(faults)  # all parties agree
    report = studied.report
    assert report["session"] == later[-1]
    assert report["job"][system]["resume"] in [first, *later[:-1]]
    assert report["faults"] == studied.faults
    assert set(weights(world, later[-1])) == {"bank", *SHOPS}
    page = world.path("out", "report.html").read_text()
    assert "<h2>Faults</h2>" in page
    assert "is started again" in page


@pytest.mark.parametrize("system", list(MAKERS))
def test_what_was_killed_before_a_checkpoint_ends_with_the_way_on(tmp_path: Path, system: str) -> None:
    world = MAKERS[system](tmp_path)
    world.set(f"{system}.epochs", 2, "job")
    studied = study(world, "restart shop-a at start")
    assert studied.done.returncode == 1
    assert (
        "the party is running again, but there is no checkpoint to go on from: run the job again" in studied.done.stderr
    )
    assert studied.lines("fault") == ["is killed (SIGKILL)", "is started again"]
    done = world.blindfit("run", "job.toml", "--out", "again")
    assert done.returncode == 0, done.stderr


def test_a_party_that_is_frozen_for_a_while_holds_the_job_up(tmp_path: Path) -> None:
    world = falcon(tmp_path)
    studied = study(world, "freeze shop-b at epoch 2 for 300ms")
    assert studied.done.returncode == 0, studied.done.stderr
    frozen, thawed = studied.lines("fault")
    assert frozen == "is frozen (SIGSTOP) for 0.3 s; the job ends if it is silent for 40 s"
    assert thawed == "goes on (SIGCONT): its time is over"


def test_a_party_that_is_cut_off_for_a_while_holds_the_job_up(tmp_path: Path) -> None:
    world = taylor(tmp_path)
    studied = study(world, "cut shop-a at epoch 2 for 300ms")
    assert studied.done.returncode == 0, studied.done.stderr
    assert studied.lines("fault") == [
        "is cut off from all other parties for 0.3 s; the job ends if that lasts 70 s",
        "can be reached again: its time is over",
    ]


def test_a_party_that_stays_cut_off_is_named(tmp_path: Path) -> None:
    party = "shop-a"
    world = taylor(tmp_path, timeouts=SHORT)
    studied = study(world, f"cut {party} at epoch 2")
    assert studied.done.returncode == 1
    assert studied.faults["cause"] == party
    assert studied.lines("fault")[-1] == "can be reached again: the job has ended"
    for other in set(ROLES) - {party}:
        assert any(f"names {party} as the cause" in line for line in studied.lines("said", other)), studied.faults


def test_a_rehearsed_training_goes_on_too(tmp_path: Path) -> None:
    world = taylor(tmp_path)
    studied = study(world, "restart shop-a at epoch 2", more=("--rehearse", "--network", "1ms"))
    assert studied.done.returncode == 0, studied.done.stderr
    assert len(studied.faults["sessions"]) == 2
    assert not world.path("state", "bank", "party.sqlite").exists()


def test_a_party_that_stays_frozen_is_named_when_a_deadline_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    party = "notary"
    monkeypatch.setattr(session, "CANCEL_TIMEOUT_S", 0.5)  # a frozen party makes everybody wait for it
    world = taylor(tmp_path, timeouts=SHORT)
    studied = study(world, f"freeze {party} at epoch 2")
    assert studied.done.returncode == 1
    assert studied.faults["cause"] == party
    assert f"{party} does not answer" in studied.done.stderr
    assert studied.lines("fault")[-1] == "goes on (SIGCONT): the job has ended"
    assert studied.lines("said", party)  # once it can speak again


def test_a_fault_that_never_happened_makes_the_command_fail(tmp_path: Path) -> None:
    world = taylor(tmp_path)
    world.set("taylor.epochs", 2, "job")
    studied = study(world, "kill notary at epoch 3", "freeze bank at step baking")
    assert studied.done.returncode == 1
    line = 'the fault "kill notary at epoch 3" never happened: the job had no epoch 3'
    other = 'the fault "freeze bank at step baking" never happened: no party reported the step baking; the steps that'
    assert studied.faults["never"][0] == line
    assert studied.faults["never"][1].startswith(other)
    assert line in studied.done.stdout
    assert studied.report["state"] == "DONE"
    assert studied.report["faults"]["never"] == studied.faults["never"]


def test_as_json(tmp_path: Path) -> None:
    world = taylor(tmp_path)
    failed = study(world, "kill shop-a at epoch 2", more=("--json",))
    document = json.loads(failed.done.stdout)
    assert failed.done.returncode == 1
    assert document["faults"]["cause"] == "shop-a"
    assert document["faults"] == failed.faults
    assert document["file"] == "out/faults.json"
    error = json.loads(failed.done.stderr)["error"]
    assert error["kind"] == document["faults"]["error"]["kind"] == "TransportError"
