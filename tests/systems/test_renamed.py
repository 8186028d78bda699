"""An old name of an option, of a value or of a command is refused with one line that gives the new name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
import typer.main

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.cli.main import app
from blindfit.coordinator.explain.command import explain
from blindfit.coordinator.explain.options import all_options
from blindfit.coordinator.job.job import load_job, read_job
from blindfit.parties import renamed
from blindfit.parties.systems import load_party, read_proposed
from tests.command import blindfit
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
PARTY = {
    "name": "bank",
    "role": "active",
    "identity": {"certificate": "c", "key": "k", "authority": "a"},
    "peers": {"coordinator": {"role": "coordinator"}},
}
JOB = ROOT / "examples" / "taylor" / "job.toml"


def party_with(path: str, value: Any) -> dict[str, Any]:
    *tables, option = path.split(".")
    values: dict[str, Any] = {option: value}
    for name in reversed(tables):
        values = {"visits" if name == renamed.NAME else name: values}
    return {**PARTY, **values}


@pytest.fixture
def old_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of name has an old name here, so that this test does not depend on recent renames."""
    monkeypatch.setitem(renamed.OPTIONS, "policy.least", "policy.min_rows")
    monkeypatch.setitem(renamed.OPTIONS, "datasets.NAME.askers", "datasets.NAME.active_parties")
    monkeypatch.setitem(renamed.OPTIONS, "taylor.rounds", "taylor.epochs")
    monkeypatch.setitem(renamed.VALUES, "taylor.optimiser", {"plain": "sgd"})
    monkeypatch.setitem(renamed.VALUES, "taylor.unsafe", {"jitter": "no-jitter"})
    monkeypatch.setitem(renamed.VALUES, "datasets.NAME.missing", {"leave": "drop"})
    monkeypatch.setitem(renamed.COMMANDS, "inspect", "check")


OLD = [
    ("datasets.NAME.missing", "leave", 'datasets.visits.missing = "leave" is now "drop": change the value'),
    ("policy.least", 3, "policy.least is now policy.min_rows: rename it"),
    ("datasets.NAME.askers", ["shop"], "datasets.visits.askers is now datasets.visits.active_parties: rename it"),
]


@pytest.mark.usefixtures("old_names")
@each_case(("path", "value", "line"), OLD)
def test_an_old_option_of_a_party_file(tmp_path: Path, path: str, value: Any, line: str) -> None:
    (tmp_path / "bank.toml").write_text(tomli_w.dumps(party_with(path, value)))
    with pytest.raises(ConfigError) as refused:
        load_party(tmp_path / "bank.toml")
    assert refused.value.message == f"{tmp_path / 'bank.toml'}: {line}"


@pytest.mark.usefixtures("old_names")
@each_case(
    ("option", "value", "line"),
    [
        ("rounds", 3, "taylor.rounds is now taylor.epochs: rename it"),
        ("optimiser", "plain", 'taylor.optimiser = "plain" is now "sgd": change the value'),
        ("unsafe", ["leverage", "jitter"], 'taylor.unsafe = "jitter" is now "no-jitter": change the value'),
    ],
)
def test_an_old_option_and_an_old_value_of_a_job(option: str, value: Any, line: str) -> None:
    """The old name comes in a file, with --set, and in a proposal of another version's coordinator."""
    asked = {"protocol": "taylor", "taylor": {option: value}}
    with pytest.raises(ConfigError) as refused:
        read_job({**asked, "parties": {"bank": {"role": "active"}}}, "job.toml")
    assert refused.value.message == f"job.toml: {line}"
    with pytest.raises(ConfigError) as refused:
        load_job(JOB, [f"taylor.{option}={value!r}".replace("'", '"')])
    assert refused.value.message == f"{JOB}: {line}"
    with pytest.raises(ConfigError) as refused:
        read_proposed({"protocol": "taylor", f"taylor.{option}": value})
    assert refused.value.message == f"the proposed job: {line}"


@pytest.mark.usefixtures("old_names")
@each_case(
    ("word", "lines"),
    [
        ("taylor.rounds", "taylor.rounds is now taylor.epochs: rename it"),
        ("datasets.visits.askers", "datasets.visits.askers is now datasets.visits.active_parties: rename it"),
        ("rounds", "taylor.rounds is now taylor.epochs: rename it"),
        ("askers", "datasets.NAME.askers is now datasets.NAME.active_parties: rename it"),
        ("plain", 'taylor.optimiser = "plain" is now "sgd": change the value'),
    ],
)
def test_an_old_option_or_value_is_explained_by_its_new_name(word: str, lines: str) -> None:
    with pytest.raises(ConfigError) as refused:
        explain(word)
    assert refused.value.message == lines


@pytest.mark.usefixtures("old_names")
def test_an_old_command(tmp_path: Path) -> None:
    done = blindfit(tmp_path, "inspect", "job.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: `blindfit inspect` is now `blindfit check`\n"


def test_a_command_that_never_was_is_refused_as_before(tmp_path: Path) -> None:
    done = blindfit(tmp_path, "nonsense")
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr


# --- the table itself --------------------------------------------------------------------------------------


def test_the_table_leads_to_names_of_today_and_no_old_name_works() -> None:
    options = {option.path: option for option in all_options()}
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert set(renamed.OPTIONS.values()) <= set(options)
    assert not set(renamed.OPTIONS) & set(options)
    assert set(renamed.COMMANDS.values()) <= commands
    assert not set(renamed.COMMANDS) & commands
    for path, values in renamed.VALUES.items():
        known = options[path].kind
        assert [new for new in values.values() if f'"{new}"' not in known] == []
        assert [old for old in values if f'"{old}"' in known] == []
