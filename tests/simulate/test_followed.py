"""The hints of `blindfit simulate` about its own options, followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.simulate import runs
from tests.command import Done, blindfit
from tests.hints.following import refused_command, says
from tests.simulate.patients import write_patients


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table; no run has a result, so an accepted command ends soon."""

    def run(*_: Any, **__: Any) -> None:
        raise DataError("no run in this test")

    monkeypatch.setattr(runs, "run_here", run)
    write_patients(tmp_path)
    return tmp_path


def simulate(folder: Path, *words: str) -> Done:
    system = "label-dp" if "--label-range" in words else "dp-lr"
    return blindfit(folder, "simulate", "patients.csv", "--label", "ill", "--systems", system, "--out", "out", *words)


def accepted(folder: Path, *words: str) -> None:
    done = simulate(folder, *words)
    assert done.stderr == ""
    assert "no run in this test" in done.stdout


@pytest.mark.parametrize(
    ("hint", "wrong", "right"),
    [
        (says("such as --jobs 2"), ("--jobs", "0"), ("--jobs", "2")),
        (says("such as {} 0.5,1,2"), ("--epsilon", "half"), ("--epsilon", "0.5,1,2")),
        (says("such as --bounds age:0:110"), ("--bounds", "x0"), ("--bounds", "x0:-9:110")),
        (says("such as 0:110"), ("--label-range", "0 to 110"), ("--label-range", "0:110")),
    ],
)
def test_an_option_as_the_hint_writes_it(
    folder: Path, hint: str, wrong: tuple[str, ...], right: tuple[str, ...]
) -> None:
    refused_command(hint, simulate(folder, *wrong))
    accepted(folder, *right)


@pytest.mark.parametrize(
    ("hint", "wrong", "right"),
    [
        (says('such as --network "40ms 100mbit"'), "dp-lr.network=40ms", ("--network", "40ms 100mbit")),
        (says("such as --epsilon 0.5,1,2"), "dp-lr.privacy.epsilon=2", ("--epsilon", "0.5,1,2")),
    ],
)
def test_what_all_systems_share_has_an_option_of_its_own(
    folder: Path, hint: str, wrong: str, right: tuple[str, ...]
) -> None:
    refused_command(hint, simulate(folder, "--set", wrong))
    accepted(folder, *right)


def test_a_system_without_a_budget_takes_no_epsilon(folder: Path) -> None:
    taylor = ("simulate", "patients.csv", "--label", "ill", "--systems", "taylor", "--out", "taylor")
    refused_command(
        "leave it out; to study an epsilon of {}, rehearse your own job: docs/guides/rehearse.md",
        blindfit(folder, *taylor, "--set", "taylor.privacy.epsilon=1"),
    )
    assert "no run in this test" in blindfit(folder, *taylor).stdout


def test_an_option_of_a_system_begins_with_its_name(folder: Path) -> None:
    told = refused_command("such as --set {}.OPTION=VALUE", simulate(folder, "--set", "iterations=3"))
    assert told.parts == ("dp-lr",)
    accepted(folder, "--set", "dp-lr.iterations=3")


def test_another_folder(folder: Path) -> None:
    accepted(folder)
    (folder / "out/runs/dp-lr-epsilon-1.0-1.json").write_text("{}")
    refused_command("name another folder with --out, or remove this one", simulate(folder, "--seed", "1"))
    accepted(folder, "--seed", "1", "--out", "other")
