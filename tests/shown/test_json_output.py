"""`--json`: every command has it, prints one document and nothing else, and fails in one line of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from blindfit.coordinator.cli.main import app
from blindfit.coordinator.terminal import json_output
from tests.command import ROOT, Done, blindfit
from tests.world import World
from tests.world.measured import project

__all__ = ["project"]  # a fixture


def commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    found: dict[str, Any] = dict(group.commands)  # type: ignore[attr-defined]
    certs = found.pop("certs")
    return found | {f"certs {name}": command for name, command in certs.commands.items()}


@pytest.mark.parametrize("name", commands())
def test_every_command_has_it(name: str) -> None:
    options = {option for parameter in commands()[name].params for option in parameter.opts}
    assert ("--json" in options) == (name not in ("party", "nursery"))  # processes that end with their command


def document(done: Done, status: int = 0) -> Any:
    assert done.returncode == status, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


def error(done: Done) -> dict[str, Any]:
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    found: dict[str, Any] = json.loads(line)["error"]
    assert found["exit_status"] == done.returncode
    return found


# --- documents ---------------------------------------------------------------------------------------------


def test_a_job_and_what_it_leaves(project: World) -> None:
    def told(*arguments: str) -> Any:
        return document(project.blindfit(*arguments, "--json"))

    assert told("show", "job.toml")["privacy"]["epsilon"] == 1.0
    assert {finding["level"] for finding in told("check", "job.toml")["findings"]} >= {"ok", "note"}
    assert told("plan", "job.toml", "--draws", "2")["files"] == ["runs/plan/plan.json", "runs/plan/plan.html"]
    ran = told("run", "job.toml", "--out", "out")
    assert ran["report"] == json.loads(project.path("out/report.json").read_text())
    ledger = told("ledger", "meter.toml")
    assert ledger["populations"]["people"] == {"releases": 1, "spent": 1.0, "budget": 2.0, "left": 1.0, "delta": 1e-5}
    assert [entry["requester"] for entry in ledger["entries"]] == ["shop"]
    assert told("ledger", "meter.toml", "--export", "chain.jsonl") == {"file": "chain.jsonl", "entries": 1}
    verified = told("ledger", "chain.jsonl", "--verify")
    assert (verified["whole"], verified["last_hash"]) == (True, ledger["entries"][0]["hash"])
    assert told("approve", "meter.toml") == {"waiting": []}
    assert told("snapshot", "shop.toml")["datasets"][0]["source"] == "unchanged"
    assert told("snapshot", "shop.toml", "rows")["snapshot"] == 2
    assert told("export", "out", "--out", "release.blindfit") == {"file": "release.blindfit", "keep_from": []}
    assert told("report", "out/shop") == {"file": "out/shop/report.html"}
    kept = told("purge", "shop.toml", "--all-ended", "--dry-run")
    assert not kept["removed"]
    assert all(project.path(one["path"]).exists() for one in kept["files"])
    assert told("purge", "shop.toml", "--all-ended", "--yes") == {**kept, "removed": True}
    assert not any(project.path(one["path"]).exists() for one in kept["files"])
    shown = told("certs", "show", "ca/shop/certificate.pem")
    assert (shown["file"], shown["name"]) == ("ca/shop/certificate.pem", "shop")
    assert set(shown) == {"file", "name", "role", "serial", "starts", "ends"}


def test_a_job_that_waits_for_its_operator(project: World) -> None:
    project.edit("meter.toml", "min_rows = 50", 'min_rows = 50\napprove = "ask"')
    project.start("shop", "meter")
    with project.submitting() as submitted:
        assert submitted.stdout is not None
        assert any("approval" in line for line in submitted.stdout)
        (waiting,) = document(project.blindfit("approve", "meter.toml", "--json"))["waiting"]
        assert waiting["proposed_by"] == "coordinator"
        assert {member["party"]: member["dataset"] for member in waiting["members"]} == {
            "shop": "rows",
            "meter": "labels",
        }
        words = ("approve", "meter.toml", waiting["session"], waiting["digest"], "--json")
        assert document(project.blindfit(*words)) == {"session": waiting["session"], "state": "approved"}
        assert submitted.wait(60) == 0


def test_a_check_that_does_not_hold_has_its_document_and_its_status(project: World) -> None:
    found = document(project.blindfit("check", "job.toml", "--set", "privacy.epsilon=3", "--json"), status=1)
    assert "refuses" in {finding["level"] for finding in found["findings"]}


def test_the_version(tmp_path: Path) -> None:
    assert set(document(blindfit(tmp_path, "version", "--json"))) == {"version"}


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("run", "none.toml"), "ConfigError", "none.toml does not exist"),
        (("ledger", "none.jsonl", "--verify"), "DataError", "none.jsonl cannot be read"),
        (("attack", "no-such-thing"), "ConfigError", "is neither a mechanism nor a file"),
        (("verify", "none.blindfit"), "", "none.blindfit"),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, arguments: tuple[str, ...], kind: str, said: str) -> None:
    found = error(blindfit(tmp_path, *arguments, "--json"))
    assert said in found["message"]
    assert kind in found["kind"]
    plain = blindfit(tmp_path, *arguments)  # the last request is forgotten
    assert plain.stderr.startswith(f"error: {found['message']}")


def test_nobody_is_asked(project: World) -> None:
    project.blindfit("run", "job.toml", "--out", "out")
    assert error(project.blindfit("purge", "shop.toml", "--all-ended", "--json"))["hint"] == "add --yes, or --dry-run"


def test_the_page_names_every_field() -> None:
    page = (ROOT / "docs/guides/script.md").read_text("utf-8")
    line = json.loads(json_output.error_line("ConfigError", "...", "...", 2))
    assert json.dumps(line) in page
