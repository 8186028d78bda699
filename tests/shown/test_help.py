"""The help of each command ends with examples that the command line accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from typer.testing import CliRunner

from blindfit.coordinator.cli.examples import EXAMPLES
from blindfit.coordinator.cli.main import app
from blindfit.coordinator.terminal.json_output import Call
from blindfit.coordinator.terminal.titles import TITLES
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
COMMAND: Any = typer.main.get_command(app)


def commands(group: Any = COMMAND, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the words and the object of each command that help lists."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        elif not command.hidden:
            yield prefix + name, command


NAMED = dict(commands())
TYPED = [(name, example) for name, examples in EXAMPLES.items() for example in examples]


def test_every_command_has_examples_and_no_example_is_of_another() -> None:
    assert set(EXAMPLES) == set(NAMED)
    assert [name for name, examples in EXAMPLES.items() if not examples] == []


@each_case("name", list(NAMED), ids=str)
def test_help_ends_with_the_examples(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    last = " ".join(EXAMPLES[name][-1].split())
    assert " ".join(shown.output.split()).endswith(last)


@each_case("name, example", TYPED, ids=str)
def test_the_words_of_an_example_are_accepted(name: str, example: str) -> None:
    program, *words = shlex.split(example)
    assert program == "blindfit"
    assert words[: len(name.split())] == name.split()
    command, words = NAMED[name], words[len(name.split()) :]
    with click.Context(COMMAND, obj=Call(None)) as parent:
        command.make_context(name, list(words), parent=parent)


@each_case("name", list(NAMED), ids=str)
def test_a_command_has_one_plain_line(name: str) -> None:
    line = NAMED[name].help.split("\n\n")[0].replace("\n", " ")
    assert line.endswith(".")
    assert len(line) <= 79


def test_examples_that_need_no_data_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples of certificates run one after the other in a new folder, all others in this repository."""
    for name in ("show", "explain", "version"):
        monkeypatch.chdir(ROOT)
        for example in EXAMPLES[name]:
            assert typed(example).exit_code == 0, example
    monkeypatch.chdir(tmp_path)
    for name in ("authority", "issue", "show", "renew", "crl", "revoke"):
        for example in EXAMPLES[f"certs {name}"]:
            assert typed(example).exit_code == 0, example


def typed(example: str) -> Any:
    return CliRunner().invoke(app, shlex.split(example)[1:], obj=Call(None))


@pytest.mark.parametrize("command", ["init", "simulate"])
def test_help_names_the_systems_with_their_titles(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], terminal_width=2000)
    plain = " ".join(shown.output.replace("│", " ").split())
    assert [system for system, title in TITLES.items() if f"{system} ({title})" not in plain] == []
