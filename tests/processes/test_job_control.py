"""`blindfit jobs` and `blindfit cancel`, between running processes: permissions, and reports to all parties."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.operator import job_control
from blindfit.parties.identity import authority
from blindfit.parties.systems import load_party
from tests.command import Piped
from tests.hints.following import refused_command
from tests.world import World
from tests.world.measured import write_rows

CANCELLED = "coordinator has cancelled it"
BY_ITS_OPERATOR = [
    "error: shop ended the session: CANCELLED",
    "hint: the log of shop has the reason; its operator has cancelled it, or stopped its process",
]


def jobs(project: World, party: str, *options: str) -> list[dict[str, str]]:
    done = project.blindfit("jobs", f"{party}.toml", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)["jobs"]
    return found


def wait_until(project: World, party: str, state: str) -> None:
    give_up = time.monotonic() + 30
    while [job["state"] for job in jobs(project, party)] != [state]:
        assert time.monotonic() < give_up, jobs(project, party)
        time.sleep(0.05)


def session_of(submitted: Piped) -> str:
    session = re.fullmatch(r"session (test-[0-9a-f]{8})\n", submitted.stdout.readline())
    assert session is not None
    return session[1]


def check_it_was_told(project: World, submitted: Piped, session: str) -> None:
    _, errors = submitted.communicate(timeout=60)
    assert submitted.returncode == 1
    assert errors.splitlines() == [
        f"error: {session} was cancelled, with the certificate of coordinator",
        "hint: the operator of a party, or the user who proposed the job, has cancelled it",
    ]


def test_a_job_that_waits_is_cancelled_by_who_submitted_it(project: World) -> None:
    project.edit("meter.toml", "min_rows = 50", 'min_rows = 50\napprove = "ask"')
    authority.issue(project.path("ca"), "rival", ["localhost"])
    for party in ("shop", "meter"):
        project.edit(f"{party}.toml", "[peers.coordinator]", '[peers.rival]\nrole = "coordinator"\n[peers.coordinator]')
    project.start("shop", "meter")
    with project.submitting() as submitted:
        session = session_of(submitted)
        wait_until(project, "meter", "HELD")
        assert [job["session"] for job in jobs(project, "meter", "--running")] == [session]

        party = project.blindfit("cancel", "job.toml", session, *_as(project, "shop"))
        assert party.returncode == 1
        assert "does not allow this party to call" in party.stderr
        rival = project.blindfit("cancel", "job.toml", session, *_as(project, "rival"))
        assert rival.returncode == 2
        told = refused_command("`blindfit jobs PARTY.TOML`, typed at a party, lists its sessions", rival)
        assert f"no party of the job has a session {session} that rival proposed" in told.text
        listed = project.blindfit(*(word.replace("PARTY.TOML", "meter.toml") for word in told.commands[0]), "--json")
        assert [(job["session"], job["state"]) for job in json.loads(listed.stdout)["jobs"]] == [(session, "HELD")]

        done = project.blindfit("cancel", "job.toml", session)
        assert done.returncode == 0, done.stderr
        assert "meter: cancelled" in done.stdout
        check_it_was_told(project, submitted, session)
    assert CANCELLED in project.log("meter")
    told = project.blindfit("logs", "meter.toml", session)
    assert f"session is cancelled (reason: {CANCELLED})" in told.stdout
    assert project.blindfit("logs", "meter.toml", "test-00000000").returncode == 2
    kept = project.path(f"state/meter/logs/{session}/party.log")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert project.blindfit("purge", "meter.toml", session, "--yes").returncode == 0
    assert not kept.exists()
    assert "no line of the log of" in project.blindfit("logs", "meter.toml", session).stdout
    assert [job["state"] for job in jobs(project, "meter")] == ["ENDED"]
    assert "cancelled" in project.blindfit("jobs", "meter.toml").stdout
    assert "no job runs or waits here" in project.blindfit("jobs", "meter.toml", "--running").stdout
    again = project.blindfit("cancel", "job.toml", "test-00000000")
    assert again.returncode == 2


def test_a_job_that_runs_is_cancelled_and_the_parties_take_the_next(project: World) -> None:
    write_rows(project.root, n_rows=200_000)  # to read them takes longer than to cancel
    project.start("shop", "meter")
    with project.submitting() as submitted:
        session = session_of(submitted)
        wait_until(project, "shop", "RUNNING")
        done = project.blindfit("cancel", "job.toml", session)
        assert done.returncode == 0, done.stderr
        check_it_was_told(project, submitted, session)
    for party in ("shop", "meter"):
        assert CANCELLED in project.log(party)
        assert [job["state"] for job in jobs(project, party)] == ["ENDED"]
    assert not project.path("out/report.json").exists()
    assert project.blindfit("submit", "job.toml", "--out", "next").returncode == 0


def test_an_operator_cancels_at_the_own_party(project: World) -> None:
    """The operator may have no part in the job's submission; that party informs the others, and all take
    the next job.
    """
    write_rows(project.root, n_rows=200_000)
    project.start("shop", "meter")
    with project.submitting() as submitted:
        session = session_of(submitted)
        give_up = time.monotonic() + 30
        while "session starts" not in project.log("shop"):
            assert time.monotonic() < give_up, project.log("shop")
            time.sleep(0.005)
        # Otherwise it may have answered, and be done, before it hears of the end.
        project.processes["meter"].send_signal(signal.SIGSTOP)
        done = project.blindfit("cancel", "shop.toml", session, "--json")
        project.processes["meter"].send_signal(signal.SIGCONT)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"session": session, "parties": {"shop": "ENDED"}}
        _, errors = submitted.communicate(timeout=60)
    assert submitted.returncode == 1
    assert errors.splitlines() == BY_ITS_OPERATOR
    assert "shop has cancelled it" in project.log("shop")
    assert [job["state"] for job in jobs(project, "meter")] in (["ENDED"], ["FAILED"])
    again = project.blindfit("cancel", "shop.toml", session)
    assert (again.returncode, again.stderr.splitlines()[0]) == (
        2,
        f"error: {session} is not a job that runs or waits at shop",
    )
    assert project.blindfit("submit", "job.toml", "--out", "next").returncode == 0


def test_an_operator_cancels_a_job_that_waits(project: World) -> None:
    project.edit("meter.toml", "min_rows = 50", 'min_rows = 50\napprove = "ask"')
    project.start("shop", "meter")
    with project.submitting() as submitted:
        session = session_of(submitted)
        wait_until(project, "meter", "HELD")
        done = project.blindfit("cancel", "shop.toml", session)  # the party has accepted it, and waits for its start
        assert (done.returncode, done.stdout) == (0, "shop: cancelled\n"), done.stderr
        _, errors = submitted.communicate(timeout=60)
    assert submitted.returncode == 1
    assert errors.splitlines() == BY_ITS_OPERATOR


def test_a_party_that_is_not_up_ends_no_job(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    project.edit("meter.toml", "min_rows = 50", 'min_rows = 50\napprove = "ask"')
    project.start("shop", "meter")
    with project.submitting() as submitted:
        session = session_of(submitted)
        wait_until(project, "meter", "HELD")
        project.processes["meter"].kill()
        project.processes["meter"].wait()
        monkeypatch.setattr(job_control, "OWN_PROCESS_S", 0.5)
        settings = load_party(project.path("meter.toml"))
        with pytest.raises(ConfigError, match=f"meter has not ended {session} in 0 s") as refused:
            job_control.cancel_here(settings, project.root, session)
        assert "if the party is not running, the job has ended with it" in str(refused.value.hint)
        submitted.communicate(timeout=60)


def _as(project: World, name: str) -> tuple[str, ...]:
    folder = authority.PartyFiles.in_folder(project.path(f"ca/{name}"))
    files = {"certificate": folder.certificate, "key": folder.key, "authority": folder.authority}
    return tuple(word for option, path in files.items() for word in ("--set", f"coordinator.{option}={path}"))
