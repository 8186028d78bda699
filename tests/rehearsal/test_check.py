"""`blindfit check --rehearse` gives the same findings as `blindfit run --rehearse`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blindfit
from blindfit.coordinator.jobs.check import check
from blindfit.coordinator.running.rehearsal import Rehearsal
from tests.refusals import worlds
from tests.rehearsal.kept import kept_in
from tests.world import World
from tests.world.loans import loans
from tests.world.measured import shop_and_meter


@pytest.fixture
def spent(tmp_path: Path) -> World:
    """A project whose budget allows half a job."""
    project = shop_and_meter(tmp_path)
    project.set("populations.people.epsilon", 0.5, "meter")
    return project


def test_a_limit_is_a_refusal_or_a_warning(spent: World) -> None:
    before = kept_in(spent.root)
    sentence = "the budget of people would be passed: epsilon 0 of 0.5 is spent"
    refused = spent.blindfit("check", "job.toml", "--rehearse", "--json")
    assert refused.returncode == 1
    findings = json.loads(refused.stdout)["findings"]
    assert [f["about"] for f in findings if f["level"] == "refuses" and sentence in f["text"]] == ["meter"]
    warned = spent.blindfit("check", "job.toml", "--rehearse", "--warn-only", "--json")
    assert warned.returncode == 0, warned.stdout
    findings = json.loads(warned.stdout)["findings"]
    assert [f["about"] for f in findings if f["level"] == "warning" and sentence in f["text"]] == ["meter"]
    assert kept_in(spent.root) == before
    assert not blindfit.check(spent.path("job.toml"), rehearse=True, warn_only=True).refuses


def falcon(root: Path) -> World:
    return loans(root, "falcon")


@pytest.mark.parametrize("make", [worlds.walr, worlds.label_dp, worlds.dp_lr, worlds.taylor, falcon])
def test_the_parties_own_state_does_not_matter(make, tmp_path: Path, speed_is_not_measured: None) -> None:
    world = make(tmp_path)
    for name in world.roles:
        folder = world.path("state", name)
        folder.mkdir(parents=True)
        (folder / "party.sqlite").write_bytes(b"no database")
    assert any(finding.refuses for finding in world.check())
    before = kept_in(world.root)
    found = check(world.load(), Rehearsal())
    assert not [finding.text for finding in found if finding.refuses]
    assert kept_in(world.root) == before


def test_a_model_that_was_not_rehearsed_is_named(tmp_path: Path) -> None:
    project = shop_and_meter(tmp_path)
    project.job("evaluate", evaluate={"session": "monday"}, privacy={"epsilon": 1.0})
    refused = project.blindfit("check", "job.toml", "--rehearse")
    assert refused.returncode == 1
    assert "no rehearsal of monday is here" in refused.stdout
