"""A stranger's path: public tables, `init`, `check`, `run`, and edits only as hints advise."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Done, blindfit
from tests.hints.following import SETS
from tests.init.public_tables import births, stocks, titanic

MOST_HINTS = 3
PATHS: list[tuple[Callable[[Path], None], str, str]] = [
    (titanic, "taylor", "'register.csv' 'shipping line.csv' --label survived"),
    (titanic, "falcon", "'register.csv' 'shipping line.csv' --label survived"),
    (stocks, "taylor", "broker.csv exchange.csv --label IBM"),
    (births, "walr", "town.csv health_office_survey.csv --label mbsmoke --positive smoker"),
    (births, "label-dp", "town.csv scales.csv --label bweight --label-range 0:6000"),
    (births, "dp-lr", "clinic.csv --id birth --label mbsmoke --positive smoker --bounds '*:0:60'"),
]
QUICK = {"taylor": ("--set", "taylor.epochs=2"), "falcon": ("--set", "falcon.epochs=1")}


def follow_hint(folder: Path, findings: list[dict[str, str]]) -> str:
    """Set the first option that the first refusal of `check` names; return what was written."""
    refusal = next(one for one in findings if one["level"] == "refuses")
    found = SETS.search(refusal["text"])
    assert found, refusal
    (*table, option), value = found[1].split("."), found[2]
    file = folder / "joint" / (f"{refusal['about']}.toml" if table[0] == "datasets" else "job.toml")
    head = f"[{'.'.join(table)}]\n"
    text = re.sub(rf"^{option} = .*\n", "", file.read_text(), flags=re.MULTILINE)
    assert head in text
    file.write_text(text.replace(head, f"{head}{option} = {value}\n"))
    return f"{file.name}: {head.strip()} {option} = {value}"


def walk(folder: Path, system: str, words: str, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Type what a stranger types; return the edits that hints asked for."""

    def typed(*arguments: str) -> Done:
        done = blindfit(folder, *arguments)
        say(f"$ blindfit {shlex.join(arguments)}\n{done.stdout}{done.stderr}")
        return done

    made = typed("init", "--system", system, *shlex.split(words))
    assert made.returncode == 0, made.stderr
    written: list[str] = []
    while typed("check", "joint/job.toml", *QUICK.get(system, ())).returncode:
        assert len(written) < MOST_HINTS, written
        checked = blindfit(folder, "check", "joint/job.toml", "--json", *QUICK.get(system, ()))
        written.append(follow_hint(folder, json.loads(checked.stdout)["findings"]))
        say(f"(as the hint says, {written[-1]})\n")
    done = typed("run", "joint/job.toml", "--out", "joint/run", *QUICK.get(system, ()))
    assert done.returncode == 0, done.stderr
    return written


@pytest.mark.parametrize(("save", "system", "words"), PATHS, ids=lambda one: getattr(one, "__name__", str(one)[:9]))
def test_a_public_table_becomes_a_model(tmp_path: Path, save: Callable[[Path], None], system: str, words: str) -> None:
    save(tmp_path)
    walk(tmp_path, system, words)
    assert (tmp_path / "joint/run/report.json").exists()
