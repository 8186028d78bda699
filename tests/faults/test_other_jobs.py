"""Faults in jobs that leave no checkpoint: the systems with a measurement server, dp-lr, predictions, evaluations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import blindfit
from blindfit.algorithms.errors import BlindfitWarning, ConfigError, TransportError
from tests.command import forked_parties
from tests.dp_lr.conftest import write_project as clinic
from tests.faults.studying import study
from tests.label_dp.conftest import write_project as counted_labels
from tests.world import World
from tests.world.measured import shop_and_meter
from tests.world.vertical import bank_and_shops

SYSTEMS: dict[str, tuple[Callable[[Path], World], tuple[str, ...]]] = {
    "walr": (shop_and_meter, ("shop", "meter")),
    "label-dp": (counted_labels, ("shop", "meter")),
    "dp-lr": (clinic, ("clinic",)),
}
FROM_TRAINED = ("--model", "trained")
PAIRS = [(system, party) for system, (_, parties) in SYSTEMS.items() for party in parties]


def spent(world: World, party: str) -> int:
    return len(world.ledger(party))


@pytest.mark.parametrize("moment", ["at start", "after 60ms"])
@pytest.mark.parametrize(("system", "party"), PAIRS)
def test_a_killed_party_is_named_and_the_same_job_is_charged_once(
    tmp_path: Path, system: str, party: str, moment: str
) -> None:
    make, parties = SYSTEMS[system]
    world = make(tmp_path)
    studied = study(world, f"restart {party} {moment}")
    if studied.faults["never"]:  # the job was over
        assert studied.done.returncode == 1
        assert studied.ended == "is done"
    elif studied.ended != "is done":
        assert studied.done.returncode == 1
        assert studied.faults["cause"] == party
        assert f"error: {party}'s process was killed (SIGKILL) in the middle of the job" in studied.done.stderr
        assert "run the job again" in studied.done.stderr
        assert studied.lines("fault") == ["is killed (SIGKILL)", "is started again"]
    else:  # it had done its part
        assert studied.done.returncode == 0
    done = world.blindfit("run", "job.toml", "--out", "again")
    assert done.returncode == 0, done.stderr
    assert spent(world, parties[-1]) == 1


def test_a_prediction_whose_party_was_started_again_is_made_by_the_same_command(tmp_path: Path) -> None:
    party = "notary"
    world = bank_and_shops(tmp_path, rows=75, epochs=1)
    world.set("taylor.patience", 0, "job")
    trained = world.blindfit("run", "job.toml", "--out", "trained")
    assert trained.returncode == 0, trained.stderr
    studied = study(world, f"restart {party} at start", command="predict", job="predict.toml", more=FROM_TRAINED)
    assert studied.done.returncode == 1
    assert studied.faults["cause"] == party
    assert "run the job again" in studied.done.stderr
    again = study(world, f"freeze {party} at start for 200ms", command="predict", job="predict.toml", more=FROM_TRAINED)
    assert again.done.returncode == 0, again.done.stderr
    assert again.report["faults"] == again.faults
    assert "<h2>Faults</h2>" in world.path("out", "report.html").read_text()


def test_an_evaluation(tmp_path: Path) -> None:
    party = "meter"
    world = shop_and_meter(tmp_path)
    world.set("policy.systems", ["walr", "evaluate"])
    world.set("populations.people.epsilon", 4.0, "meter")
    world.job("evaluate", file="evaluate.toml", privacy={"epsilon": 1.0})
    trained = world.blindfit("run", "job.toml", "--out", "trained")
    assert trained.returncode == 0, trained.stderr
    killed = study(world, f"kill {party} at start", command="evaluate", job="evaluate.toml", more=FROM_TRAINED)
    assert killed.done.returncode == 1
    assert killed.faults["cause"] == party
    frozen = study(
        world, f"freeze {party} at start for 200ms", command="evaluate", job="evaluate.toml", more=FROM_TRAINED
    )
    assert frozen.done.returncode == 0, frozen.done.stderr
    assert frozen.report["faults"] == frozen.faults
    assert "<h2>Faults</h2>" in world.path("out", "report.html").read_text()


def test_only_a_study_of_a_real_job_charges_and_says_so(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    real = study(world, "cut meter at start for 200ms")
    assert real.done.returncode == 0, real.done.stderr
    assert "the faults happen to a real job: its charges stay, even if it fails; add --rehearse" in (real.done.stdout)
    assert spent(world, "meter") == 1
    shutil.rmtree(world.path("out"))
    rehearsed = study(world, "freeze meter at start for 200ms", more=("--rehearse",))
    assert rehearsed.done.returncode == 0, rehearsed.done.stderr
    assert "add --rehearse" not in rehearsed.done.stdout
    assert rehearsed.report["faults"] == rehearsed.faults
    assert spent(world, "meter") == 1


def test_submit_has_no_faults(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    done = world.blindfit("submit", "job.toml", "--fault", "kill shop at start")
    assert done.returncode == 2
    assert "No such option" in done.stderr


@pytest.mark.parametrize(
    ("faults", "line"),
    [
        (["kil shop at start"], 'error: fault "kil shop at start": the verb kil is unknown'),
        (["kill shap at start"], 'error: fault "kill shap at start": the job has no party shap'),
        (["kill shop at start", "freeze shop at start"], "error: shop has two faults:"),
    ],
)
def test_a_wrong_fault_is_refused_before_any_party_starts(tmp_path: Path, faults: list[str], line: str) -> None:
    world = shop_and_meter(tmp_path)
    done = world.blindfit("run", "job.toml", "--out", "out", *(word for one in faults for word in ("--fault", one)))
    assert done.returncode == 2
    assert done.stderr.startswith(line)
    assert not world.path("out").exists()


def test_one_party_has_nothing_to_be_cut_from(tmp_path: Path) -> None:
    world = clinic(tmp_path)
    refused = world.blindfit("run", "job.toml", "--out", "out", "--fault", "cut clinic at start")
    assert refused.returncode == 2
    assert "the job has one party, and so no connection to cut\nhint: use kill or freeze" in refused.stderr
    assert study(world, "freeze clinic at start for 50ms").done.returncode == 0


def test_from_python(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    job = world.path("job.toml")
    with pytest.raises(ConfigError, match="the verb stop is unknown"):
        blindfit.run(job, faults=["stop shop at start"])
    with forked_parties(), pytest.raises(TransportError, match="meter's process was killed"):
        blindfit.run(job, out=tmp_path / "killed", progress=False, faults=["kill meter at start"])
    assert json.loads((tmp_path / "killed" / "faults.json").read_text())["cause"] == "meter"
    with forked_parties(), pytest.warns(BlindfitWarning, match='the fault "kill meter at epoch 3" never happened'):
        result = blindfit.run(job, out=tmp_path / "never", progress=False, faults=["kill meter at epoch 3"])
    assert result.document["faults"]["asked"] == [{"fault": "kill meter at epoch 3", "at_s": None}]
