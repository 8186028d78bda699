"""Rehearse a walr job: nothing that the parties or the user keep is read or changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pytest

from blindfit import load_model
from blindfit.algorithms.rehearsal import NOTHING, STAMP
from blindfit.coordinator.terminal.exit_codes import ExitCode
from tests.command import ROOT
from tests.done_once import Kept, folder, run_once
from tests.rehearsal.kept import kept_in
from tests.world import World
from tests.world.measured import shop_and_meter

first_run, ran = run_once(shop_and_meter, "out")


@pytest.fixture(scope="module")
def first_rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    project = shop_and_meter(folder(tmp_path_factory))
    done = project.blindfit("run", "job.toml", "--rehearse", "--out", "rehearsed")
    assert done.returncode == 0, done.stderr
    assert STAMP in done.stdout
    return Kept(project)


@pytest.fixture
def rehearsed(first_rehearsal: Kept) -> Iterator[World]:
    """A project whose job was rehearsed once, into rehearsed."""
    with first_rehearsal.anew() as project:
        yield project


@pytest.fixture
def user() -> Path:
    return Path(os.environ["XDG_STATE_HOME"])


def test_rehearsals_at_other_epsilons_change_nothing_that_is_kept(ran: World, user: Path) -> None:
    outs = tuple(ran.path(f"rehearsed-{epsilon}") for epsilon in ("1", "1.7", "1.9"))
    before = kept_in(ran.root, user, except_for=outs)
    for out in outs:
        epsilon = out.name.removeprefix("rehearsed-")
        done = ran.blindfit("run", "job.toml", "--rehearse", "--out", out.name, "--set", f"privacy.epsilon={epsilon}")
        assert done.returncode == 0, done.stderr
    assert kept_in(ran.root, user, except_for=outs) == before


def test_all_that_it_writes_has_the_stamp(rehearsed: World) -> None:
    out = rehearsed.path("rehearsed")
    for name in ("report.json", "shop/report.json", "shop/model.json"):
        assert json.loads((out / name).read_text())["rehearsal"] == STAMP, name
    assert STAMP in (out / "report.html").read_text()
    scores = pyarrow.csv.read_csv(out / "shop" / "held_out_scores.csv")
    assert set(scores["rehearsal"].to_pylist()) == {NOTHING}
    shown = rehearsed.blindfit("report", "rehearsed/shop")
    assert shown.returncode == 0, shown.stderr
    assert STAMP in (out / "shop" / "report.html").read_text()


def test_the_stamp_survives_when_a_model_is_loaded(rehearsed: World) -> None:
    model = load_model(rehearsed.path("rehearsed/shop/model.json"))
    assert model.to_dict()["rehearsal"] == STAMP
    assert model.privacy_statement_.startswith(STAMP)


@pytest.mark.parametrize(
    "command",
    [
        ("export", "rehearsed", "--out", "release"),
        ("verify", "rehearsed/shop/release.json"),
        ("export-model", "rehearsed/shop/model.json", "--format", "sql"),
        ("evaluate", "job.toml", "--model", "rehearsed", "--set", "protocol=evaluate"),
    ],
    ids=lambda words: words[0],
)
def test_nothing_is_released_from_it(rehearsed: World, command: tuple[str, ...]) -> None:
    refused = rehearsed.blindfit(*command)
    assert refused.returncode == 1
    assert "rehearsal: nothing was charged" in refused.stderr + refused.stdout


def test_a_real_job_does_not_start_from_its_model(rehearsed: World) -> None:
    sets = ("--set", "walr.init=rehearsed/shop/model.json", "--set", "walr.l2=1")
    refused = rehearsed.blindfit("run", "job.toml", "--out", "out", *sets)
    assert refused.returncode == 1
    assert "comes from a rehearsal" in refused.stderr
    again = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "again", *sets)
    assert again.returncode == 0, again.stderr


def test_no_job_writes_over_the_reports_of_the_other_kind(rehearsed: World) -> None:
    refused = rehearsed.blindfit("run", "job.toml", "--out", "rehearsed")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert "has the files of a rehearsal" in refused.stderr
    real = rehearsed.blindfit("run", "job.toml", "--out", "out")
    assert real.returncode == 0, real.stderr
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "out")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert "of a real job, and a rehearsal does not replace it" in refused.stderr


def test_what_one_job_costs_is_refused_or_only_a_warning(rehearsed: World) -> None:
    rehearsed.set("populations.people.epsilon", 0.5, "meter")
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "too-much")
    assert refused.returncode == 1
    sentence = (
        "the budget of people would be passed: epsilon 0 of 0.5 is spent, and a release of epsilon 1 does not fit"
    )
    assert sentence in refused.stderr
    warned = rehearsed.blindfit("run", "job.toml", "--rehearse", "--warn-only", "--out", "too-much")
    assert warned.returncode == 0, warned.stderr
    assert f"meter: {sentence}" in warned.stdout
    assert json.loads(rehearsed.path("too-much/report.json").read_text())["warnings"] == [f"meter: {sentence}"]
    rehearsed.set("policy.max_epsilon", 0.5, "meter")
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--warn-only", "--out", "no-policy")
    assert "max_epsilon = 0.5" in refused.stderr


def test_a_folder_that_no_rehearsal_has_made_is_left_alone(rehearsed: World) -> None:
    mine = rehearsed.path("rehearsal", "mine.txt")
    mine.parent.mkdir()
    mine.write_text("mine")
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", ".")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert ", where a rehearsal keeps its state" in refused.stderr
    assert mine.read_text() == "mine"
    real = rehearsed.blindfit("run", "job.toml", "--out", ".")
    assert real.returncode == 0, real.stderr


def test_a_folder_with_a_note_of_its_own_is_left_alone(rehearsed: World) -> None:
    for name in ("README.txt", "table.csv"):
        rehearsed.path("study", "rehearsal").mkdir(parents=True, exist_ok=True)
        rehearsed.path("study", "rehearsal", name).write_text("mine")
    before = kept_in(rehearsed.path("study"))
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "study")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert ", where a rehearsal keeps its state" in refused.stderr
    assert kept_in(rehearsed.path("study")) == before


def test_a_folder_to_which_a_link_leads_is_left_alone(rehearsed: World) -> None:
    rehearsed.path("linked").mkdir()
    rehearsed.path("linked", "rehearsal").symlink_to(rehearsed.path("rehearsed", "rehearsal"))
    before = kept_in(rehearsed.path("rehearsed"))
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "linked")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert ", where a rehearsal keeps its state" in refused.stderr
    assert kept_in(rehearsed.path("rehearsed")) == before


@pytest.mark.parametrize("data_dir", ["study/rehearsal/meter", "study/rehearsal", "study/meter", "link/meter"])
def test_the_state_of_a_party_never_lies_where_a_rehearsal_writes(rehearsed: World, data_dir: str) -> None:
    rehearsed.path("link").symlink_to("study")
    rehearsed.set("data_dir", data_dir, "meter")
    refused = rehearsed.blindfit("run", "job.toml", "--rehearse", "--out", "study")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert f"meter keeps its own state there, in data_dir = {data_dir}" in refused.stderr
    assert not rehearsed.path("study", "rehearsal").exists()


def test_a_real_job_does_not_write_over_the_reports_of_a_rehearsal_without_its_state(rehearsed: World) -> None:
    shutil.rmtree(rehearsed.path("rehearsed", "rehearsal"))
    refused = rehearsed.blindfit("run", "job.toml", "--out", "rehearsed")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert "has the files of a rehearsal" in refused.stderr


def test_the_scorer_without_packages_writes_the_stamp(rehearsed: World) -> None:
    words = [sys.executable, ROOT / "docs" / "scorer.py", "rehearsed/shop/model.json", "rows.csv"]
    done = subprocess.run(words, cwd=rehearsed.root, capture_output=True, text=True, check=True)
    assert done.stderr == f"warning: the model comes from a {STAMP}\n"
    head, first, *_ = done.stdout.splitlines()
    assert head == "id,score,probability,rehearsal"
    assert NOTHING in first
