"""CONTRIBUTING.md is followed to the letter, in a copy of the working tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repository.pins import MAKEFILE, ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TOO_LONG_HERE = {".venv/bin/lint-imports": "`make lint` runs it"}
PLACE = r"In `(?P<file>[\w./]+)`, (?P<where>above|below) the line `(?P<line>.+?)`, add"
ADDED = r"(?P<spaced> this and two empty lines)?:\n\n *```python\n(?P<lines>.*?)\n *```"
REPLACED = r"In `(?P<in_file>[\w./]+)`, replace `(?P<old>[^`]+)` by\s+`(?P<new>[^`]+)`"
TYPED = r"```sh\n(?P<commands>.*?)\n *```"
STEP = re.compile(f"{PLACE}{ADDED}|{REPLACED}|{TYPED}", re.S)


@dataclass(frozen=True)
class Clone:
    """A copy of what git knows of, with the environment of these tests in it."""

    folder: Path

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}  # the environment names the folder that is tested
        return subprocess.run(
            ["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=250, env=environment
        )

    def add(self, name: str, where: str, line: str, lines: str, *, spaced: bool) -> None:
        found = (self.folder / name).read_text().splitlines(keepends=True)
        (place,) = [number for number, text in enumerate(found) if text.rstrip("\n") == line]
        found.insert(
            place + (where == "below"), re.sub(r"^   ", "", lines, flags=re.M) + ("\n\n\n" if spaced else "\n")
        )
        (self.folder / name).write_text("".join(found))

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text, f"{name} has no {old}"
        (self.folder / name).write_text(text.replace(old, new))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is not a clone: git lists no files")
    for name in filter(None, done.stdout.split("\0")):
        source, target = ROOT / name, tmp_path / name
        if source.is_symlink() or source.exists():  # a file may be removed and not yet committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return Clone(tmp_path)


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return str(found)


def commands_in(block: str) -> list[str]:
    return [line.strip() for line in block.splitlines() if line.strip()]


@pytest.mark.timeout(300)  # a busy machine is not a fault
def test_a_newcomer_adds_a_system_and_runs_its_test(clone: Clone) -> None:
    steps, _, undone = section("Add a system").partition("To undo the steps")
    assert undone
    passed = ""
    for step in STEP.finditer(steps):
        if step["file"]:
            clone.add(step["file"], step["where"], step["line"], step["lines"], spaced=bool(step["spaced"]))
        elif step["in_file"]:
            clone.replace(step["in_file"], step["old"], step["new"])
        for command in commands_in(step["commands"] or ""):
            if command not in TOO_LONG_HERE:
                done = clone.type(command)
                assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
                passed += done.stdout
    assert "1 passed" in passed
    listed = clone.type(".venv/bin/python -c 'from blindfit.parties.systems import SYSTEMS; print(*SYSTEMS)'")
    assert "toy" in listed.stdout.split()
    git = [word for command in commands_in(STEP.search(undone)["commands"]) for word in command.split()[2:]]  # type: ignore[index]
    changed = {step["file"] or step["in_file"] for step in STEP.finditer(steps)} - {None}
    assert changed < set(git)
    assert all((clone.folder / name).exists() for name in set(git) - {"-fd"})


def test_a_step_that_this_test_cannot_follow_is_noticed() -> None:
    """Each numbered step has a command or a change of a file."""
    steps = re.split(r"^\d+\. ", section("Add a system"), flags=re.M)[1:]
    assert len(steps) > 5
    assert [step for step in steps if not STEP.search(step)] == []


def rest_of_the_commands() -> Iterator[str]:
    others = PAGE.replace(section("Add a system"), "")
    for block in re.findall(r"```sh\n(.*?)```", others, re.S):
        yield from commands_in(block)
    yield from re.findall(r"`((?:make|\.ci/run)[^`]*)`", PAGE)


def test_the_other_commands_are_there() -> None:
    """They take long, install packages or change this repository, so the test only checks that what they
    name exists.
    """
    for command in rest_of_the_commands():
        program, *words = command.split()
        if program == "make":
            for target in (word for word in words if "=" not in word):
                assert re.search(rf"^{target}:", MAKEFILE, re.M), command
        elif program == ".venv/bin/python":
            done = subprocess.run(
                [sys.executable, *words, "--collect-only", "-q"], cwd=ROOT, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{command}: {done.stdout}"
        else:
            known = {".ci/run", ".venv/bin/pip install pre-commit", ".venv/bin/pre-commit install"}
            assert command in known, command


def test_the_folders_of_the_layout_are_there() -> None:
    rows = [row.split("|")[1] for row in section("Layout").splitlines() if row.startswith("| `")]
    folders = [name for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert len(rows) == 10
    assert [name for name in folders if not (ROOT / name.removesuffix("/X")).is_dir()] == []
    for name in folders:
        if name.endswith("/X"):
            assert (ROOT / name.replace("X", "taylor")).is_dir(), name
