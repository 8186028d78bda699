"""Hints that name a rehearsal, and hints of a rehearsal, are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

import blindfit
from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.rehearsal import STAMP
from tests.hints.following import Told, refused_command
from tests.refusals import worlds
from tests.world import World
from tests.world.loans import loans
from tests.world.measured import shop_and_meter

STUDY = "to study the job without spending anything, add --rehearse (in Python, rehearse=True)"
TRAIN = "rehearse its training with `blindfit run JOB.TOML --rehearse`, and name that folder: --model DIR"
WARN = "to go on with a warning, add --warn-only (in Python, warn_only=True)"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project whose job was rehearsed into out; no test changes it."""
    project = shop_and_meter(tmp_path_factory.mktemp("rehearsed"))
    project.set("policy.systems", ["walr", "evaluate"])
    project.job("evaluate", file="evaluate.toml", evaluate={"session": "monday"}, privacy={"epsilon": 1.0})
    done = project.blindfit("run", "job.toml", "--rehearse", "--out", "out")
    assert done.returncode == 0, done.stderr
    return project


def with_spent_budget(root: Path) -> World:
    world = worlds.walr(root)
    world.set("populations.people.epsilon", 0.1, "meter")
    return world


def with_small_label_budget(root: Path) -> World:
    world = worlds.label_dp(root)
    world.set("populations.people.epsilon", 0.1, "meter")
    return world


def alone_with_spent_budget(root: Path) -> World:
    world = worlds.dp_lr(root)
    (name,) = world.roles
    (population,) = world.settings(name).populations
    world.set(f"populations.{population}.epsilon", 0.1)
    return world


def with_full_account(root: Path) -> World:
    """Make a training in shares whose opened weights reveal too much about so few labels."""
    return loans(root, "falcon", columns=(3, 60, 2))


def with_spent_label_dp(root: Path) -> World:
    world = loans(root, "taylor")
    world.set("privacy.epsilon", 1.0, "job")
    world.set("populations.customers.epsilon", 0.1, "bank")
    return world


@pytest.mark.parametrize(
    "make",
    [with_spent_budget, with_small_label_budget, alone_with_spent_budget, with_spent_label_dp, with_full_account],
)
def test_a_refusal_of_each_system_names_the_rehearsal(make, tmp_path: Path) -> None:
    world = make(tmp_path)
    told = refused_command(STUDY, world.blindfit("run", "job.toml", "--out", "out"))
    alone = refused_command(WARN, world.blindfit("run", "job.toml", "--out", "rehearsed", "--rehearse"))
    assert not told.is_in(alone.text)
    done = world.blindfit("run", "job.toml", "--out", "rehearsed", "--rehearse", "--warn-only")
    assert done.returncode == 0, done.stderr


def test_what_an_earlier_job_has_spent_is_no_matter(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    world.set("populations.people.epsilon", 1.0, "meter")
    assert world.blindfit("run", "job.toml", "--out", "one").returncode == 0
    again = ("run", "job.toml", "--set", "privacy.release=second", "--out", "two")
    told = refused_command(STUDY, world.blindfit(*again))
    done = world.blindfit(*again, "--rehearse")
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)


def test_a_policy_that_refuses_names_no_rehearsal(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    done = world.blindfit("run", "job.toml", "--set", "privacy.epsilon=3", "--out", "out")
    assert done.returncode
    assert not Told(STUDY).is_in(done.stderr)


def test_a_real_job_does_not_take_what_was_rehearsed(rehearsed: World) -> None:
    words = ("evaluate", "evaluate.toml", "--model", "out", "--out", "tried")
    said = rehearsed.blindfit(*words)
    told = refused_command("add --rehearse (in Python, rehearse=True), or name a real training", said)
    done = rehearsed.blindfit(*words, "--rehearse")
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)


def test_a_rehearsal_takes_a_model_that_was_rehearsed(rehearsed: World) -> None:
    told = refused_command(TRAIN, rehearsed.blindfit("evaluate", "evaluate.toml", "--rehearse", "--out", "which"))
    assert told.commands[0][-1] == "--rehearse"
    done = rehearsed.blindfit("evaluate", "evaluate.toml", "--rehearse", "--out", "which", "--model", "out")
    assert done.returncode == 0, done.stderr


def test_a_start_that_was_rehearsed(rehearsed: World) -> None:
    sets = ("--set", "walr.init=out/shop/model.json", "--set", "walr.l2=1")
    told = refused_command(
        "set walr.init to the model of a real training, or add --rehearse",
        rehearsed.blindfit("run", "job.toml", "--out", "real", *sets),
    )
    done = rehearsed.blindfit("run", "job.toml", "--out", "started", "--rehearse", *sets)
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)


def test_a_release_that_was_rehearsed(rehearsed: World, tmp_path: Path) -> None:
    said = rehearsed.blindfit("export", "out", "--out", str(tmp_path / "release"))
    told = refused_command("run the job without --rehearse", said)
    real = shop_and_meter(tmp_path)
    assert real.blindfit("run", "job.toml", "--out", "out").returncode == 0
    done = real.blindfit("export", "out", "--out", "release")
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)


def test_the_folder_of_a_rehearsal(rehearsed: World) -> None:
    said = rehearsed.blindfit("run", "job.toml", "--out", "out")
    told = refused_command("name another folder: --out DIR, or remove this one first", said)
    done = rehearsed.blindfit("run", "job.toml", "--out", "another")
    assert not told.is_in(done.stderr)


def test_warn_only_without_a_rehearsal(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    done = world.blindfit("check", "job.toml", "--warn-only")
    assert done.returncode == 2
    assert "--warn-only does nothing" in done.stderr
    for call in (blindfit.check, blindfit.run):
        with pytest.raises(ConfigError, match="warn_only does nothing"):
            call(tmp_path / "job.toml", warn_only=True)


def test_a_party_that_somebody_else_operates(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    told = refused_command(
        "start the rehearsal with `blindfit run JOB.TOML --rehearse`, which starts every party",
        world.blindfit("party", "shop.toml", "--rehearse", "warn"),
    )
    assert not world.path("state").exists()
    done = world.blindfit("run", "job.toml", "--rehearse", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)
    refused = world.blindfit("submit", "job.toml", "--rehearse")
    assert refused.returncode == 2


def test_a_party_of_real_jobs_does_not_go_on_with_the_state_of_a_rehearsal(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    (tmp_path / "out" / "rehearsal").mkdir(parents=True)
    (tmp_path / "out" / "rehearsal" / "README.txt").write_text(f"{STAMP}\n")
    world.set("data_dir", "out/rehearsal/shop", "shop")
    told = refused_command("set data_dir to another folder", world.blindfit("party", "shop.toml"))
    assert not world.path("out", "rehearsal", "shop").exists()
    world.set("data_dir", "state/shop", "shop")
    done = world.blindfit("run", "job.toml", "--out", "real")
    assert done.returncode == 0, done.stderr
    assert not told.is_in(done.stderr)
