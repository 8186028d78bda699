"""A stranger's path: public tables, `init`, `check`, `run`, and no edit by hand but what a hint says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Done, blindfit
from tests.init.public_tables import births, stocks, titanic

MOST_HINTS = 3
HINT = re.compile(
    r"(?P<party>\S+): datasets\.rows: .*?\bset datasets\.rows\.(?P<option>\w+) = (?P<value>[^ ,)]+) (?P<why>.*)"
)

PATHS: list[tuple[Callable[[Path], None], str, str]] = [
    (titanic, "taylor", "'register.csv' 'shipping line.csv' --label survived"),
    (titanic, "falcon", "'register.csv' 'shipping line.csv' --label survived"),
    (stocks, "taylor", "broker.csv exchange.csv --label IBM"),
    (births, "walr", "town.csv health_office_survey.csv --label mbsmoke --positive smoker"),
    (births, "label-dp", "town.csv scales.csv --label bweight --label-range 0:6000"),
    (births, "dp-lr", "clinic.csv --id birth --label mbsmoke --positive smoker --bounds '*:0:60'"),
]
QUICK = {"taylor": ("--set", "taylor.epochs=2"), "falcon": ("--set", "falcon.epochs=1")}


def follow_hint(folder: Path, said: str) -> str:
    """Do what a refusal of `check` says, in the file of the party that it names; return what was written."""
    found = re.search(HINT, " ".join(said.split()))
    assert found, said
    file = folder / f"joint/{found['party']}.toml"
    line = f"{found['option']} = {found['value']}"
    file.write_text(file.read_text() + f"{line}\n")  # [datasets.rows] is the last table of the file
    return f"{file.name}: {line}"


def walk(folder: Path, system: str, words: str, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Type what a stranger types; return what hints made them write."""

    def typed(*arguments: str) -> Done:
        done = blindfit(folder, *arguments)
        say(f"$ blindfit {shlex.join(arguments)}\n{done.stdout}{done.stderr}")
        return done

    made = typed("init", "--system", system, *shlex.split(words))
    assert made.returncode == 0, made.stderr
    written: list[str] = []
    while (checked := typed("check", "joint/job.toml", *QUICK.get(system, ()))).returncode:
        assert len(written) < MOST_HINTS, checked.stdout
        written.append(follow_hint(folder, checked.stdout))
        say(f"(as the hint says, {written[-1]})\n")
    done = typed("run", "joint/job.toml", "--out", "joint/run", *QUICK.get(system, ()))
    assert done.returncode == 0, done.stderr
    return written


@pytest.mark.parametrize(("save", "system", "words"), PATHS, ids=lambda one: getattr(one, "__name__", str(one)[:9]))
def test_a_public_table_becomes_a_model(tmp_path: Path, save: Callable[[Path], None], system: str, words: str) -> None:
    save(tmp_path)
    walk(tmp_path, system, words)
    assert (tmp_path / "joint/run/report.json").exists()
