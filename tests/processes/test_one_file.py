"""One party file for `run` and for running parties; one folder for each run."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running import parties_up
from tests.processes.reading import error_line


def test_a_file_with_the_addresses_of_organisations_runs_on_one_machine_as_it_is(project):
    """Nobody listens at those addresses: here each process has its own port, which its peers learn."""
    for name, peer in (("shop", "meter"), ("meter", "shop")):
        project.edit(f"{name}.toml", f"[peers.{peer}]\n", f'[peers.{peer}]\naddress = "{peer}.invalid:7100"\n')
    done = project.blindfit("run", "job.toml", "--out", "out", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("job ")  # nothing stands before it
    both = project.blindfit("run", "job.toml", "--quiet", "--verbose")
    assert error_line(both) == "error: --quiet and --verbose cannot be combined"


def test_a_real_party_that_is_up_is_found_and_named(project):
    """The job's file or a peer's names its address; the run nevertheless starts its own party."""
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        project.edit("shop.toml", "[peers.meter]\n", f'[peers.meter]\naddress = "{address}"\n')
        done = project.blindfit("run", "job.toml", "--out", "out")
        assert done.returncode == 0, done.stderr
        assert (
            f"note: meter at {address} seems to be running. This run starts separate processes on this machine"
            in done.stdout
        )
        assert "`blindfit submit` takes the job to the parties that already run" in done.stdout
        quiet = project.blindfit("run", "job.toml", "--out", "out", "--quiet")
        assert (quiet.returncode, "note:" in quiet.stdout) == (0, False), quiet.stderr
    assert "note:" not in project.blindfit("run", "job.toml", "--out", "out").stdout


@pytest.mark.parametrize("address", ["meter.invalid:7100", "127.0.0.1:none", "", "[::1]:1", "127.0.0.1:99999"])
def test_who_is_not_there_or_has_no_address_is_not_up(address):
    found = {}
    parties_up._look(found, "meter", address)
    assert found == {}


def test_a_name_that_nobody_resolves_does_not_hold_a_run_up(project, monkeypatch):
    answer, answered = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        answer.wait()
        answered.set()
        raise OSError

    monkeypatch.setattr(parties_up.socket, "create_connection", slow)
    project.edit("shop.toml", "[peers.meter]\n", '[peers.meter]\naddress = "meter.example.org:7100"\n')
    job = load_job(project.path("job.toml"), [])
    assert parties_up.parties_up(job) == {}
    assert not answered.is_set()
    answer.set()
    assert answered.wait(20)


def test_each_run_has_a_folder_and_latest_leads_to_the_newest(project):
    folders = []
    for _ in range(2):
        done = project.blindfit("run", "job.toml")
        assert done.returncode == 0, done.stderr
        folders.append(project.path("runs/latest").resolve())
        assert (folders[-1] / "report.html").exists()
    assert folders[0] != folders[1]
    assert {path.name for path in project.path("runs").iterdir()} == {"latest", *(folder.name for folder in folders)}
    assert folders[0].name.startswith("test-")


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_job_that_is_refused_leaves_no_folder_and_the_link_where_it_was(project, command):
    before = project.path("runs/earlier")
    before.mkdir(parents=True)
    project.path("runs/latest").symlink_to("earlier")
    words = {
        "run": ("--set", "parties.shop.config=nowhere.toml"),
        "submit": ("--set", "coordinator.certificate=nowhere.pem"),
    }[command]
    assert project.blindfit(command, "job.toml", *words).returncode != 0
    assert sorted(path.name for path in project.path("runs").iterdir()) == ["earlier", "latest"]
    assert project.path("runs/latest").resolve() == before


def test_a_folder_in_the_way_of_the_link_is_left_alone(project):
    theirs: Path = project.path("runs/latest")
    theirs.mkdir(parents=True)
    (theirs / "notes").write_text("mine")
    refused = project.blindfit("run", "job.toml")
    assert refused.returncode == 2
    assert error_line(refused).startswith("error: runs/latest is a folder, and not the link")
    assert [path.name for path in project.path("runs").rglob("*")] == ["latest", "notes"]


def test_a_submitted_prediction_names_its_training(project):
    """The command stops without an address, and it would stop earlier without --session."""
    project.path("predict.toml").write_text(
        'name = "p"\nprotocol = "predict"\n[parties.shop]\nrole = "active"\ndataset = "rows"\n'
        '[parties.bank]\nrole = "passive"\ndataset = "rows"\n[parties.keys]\nrole = "key-node"\n'
    )
    assert "predict.session is missing" in error_line(project.blindfit("submit", "predict.toml"))
    assert "parties.shop.address is missing" in error_line(
        project.blindfit("submit", "predict.toml", "--session", "walr-1")
    )
    refused = project.blindfit("submit", "job.toml", "--session", "walr-1")
    assert error_line(refused).startswith("error: job.toml: this kind of job takes no model")
