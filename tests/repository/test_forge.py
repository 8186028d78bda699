"""The workflow of a forge, and the hooks before a commit, run what `make` runs here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.each_case import each_case
from tests.repository.pins import MAKEFILE, PROJECT, ROOT

WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
HOOKS: dict[Any, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS: list[dict[str, Any]] = [step for job in JOBS.values() for step in job["steps"]]
PROGRAMS = Path(sys.executable).parent


def recipe(target: str) -> str:
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    return str(found)


# --- the workflow -----------------------------------------------------------------------------------------


def test_the_workflow_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not [name for name, job in JOBS.items() if "permissions" in job]
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"] for step in checkouts] == [{"persist-credentials": False}] * len(JOBS)
    assert "secrets" not in str(WORKFLOW)
    assert "pull_request_target" not in str(WORKFLOW)


def test_actions_are_the_forges_own_and_pinned_by_major_version() -> None:
    used = {step["uses"] for step in STEPS if "uses" in step}
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)


def test_the_workflow_runs_ci_on_every_python_and_the_lowest_versions() -> None:
    supported = re.findall(r"Python :: (3\.\d+)", str(PROJECT["project"]["classifiers"]))
    assert JOBS["check"]["strategy"]["matrix"]["python"] == supported
    assert [step["run"] for step in JOBS["check"]["steps"] if "run" in step] == [".ci/run"]
    assert [step["run"] for step in JOBS["lowest"]["steps"] if "run" in step] == ["make lowest"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    assert recipe("lowest")


# --- before a commit --------------------------------------------------------------------------------------


def test_no_hook_comes_from_elsewhere() -> None:
    assert [repository["repo"] for repository in HOOKS["repos"]] == ["local"]


@each_case("hook", HOOKS["repos"][0]["hooks"])
def test_a_hook_is_a_check_of_make(hook: dict[str, Any]) -> None:
    assert hook["language"] == "system"
    command = hook["entry"].removesuffix(" --force-exclude").replace(".venv/bin/", "$(BIN)/")
    ours = recipe("lint") + recipe("types")
    assert re.search(rf"@{re.escape(command)}( --check)?( \.)?$", ours, re.M), command


def test_every_check_of_make_is_a_hook() -> None:
    commands = (recipe("lint") + recipe("types")).splitlines()
    assert len(HOOKS["repos"][0]["hooks"]) == len(commands)


@each_case("hook", [hook for hook in HOOKS["repos"][0]["hooks"] if "--force-exclude" in hook["entry"]])
def test_a_hook_leaves_generated_code_alone(hook: dict[str, Any]) -> None:
    """pre-commit names the files, and a file that is named is checked unless the hook says otherwise."""
    _, *words = shlex.split(hook["entry"])
    done = subprocess.run(
        [PROGRAMS / "ruff", *words, *(["--check"] if "format" in words else []), "protos/control_pb2.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
