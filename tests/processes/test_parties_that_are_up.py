"""`blindfit party` and `blindfit submit`: two parties that keep running, their operators, and failures."""

from __future__ import annotations

import json
import re
import resource
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.parties.identity import authority
from tests.processes.reading import error_line


def submit(project, *arguments):
    return project.blindfit("submit", "job.toml", "--out", "out", *arguments)


def test_a_submitted_job_leaves_the_model_at_its_party(project):
    project.start("shop", "meter")
    done = submit(project)
    assert done.returncode == 0, done.stderr
    (model,) = project.path("state/shop/models").glob("*/model.json")
    weights = json.loads(model.read_text())["weights"]
    assert set(weights) == {"f0", "f1", "f2", "f3"}
    # The coordinator never sees a weight.
    report = json.loads(project.path("out/report.json").read_text())
    assert report["models"] == report["party_reports"] == {}
    for name in ("report.json", "report.html"):
        text = project.path(f"out/{name}").read_text()
        assert not any(repr(weight)[:12] in text for weight in weights.values())  # less of it is there by chance
        assert not re.search(r"\bf[0-3]\b", text)  # no row of a table of weights, in any rounding, is there


def test_two_jobs_at_once_and_parties_stay_up(project):
    project.start("shop", "meter")
    with project.submitting("--set", "privacy.release=a", "--set", "privacy.epsilon=0.5") as one:
        other = submit(project, "--set", "privacy.release=b", "--set", "privacy.epsilon=0.5")
        assert one.wait(60) == 0
    assert other.returncode == 0, other.stderr
    assert submit(project, "--set", "privacy.epsilon=0.3").returncode == 0


def test_sigterm_ends_a_party_within_5_seconds(project):
    project.start("shop", "meter")
    assert project.kill("meter", signal.SIGTERM) == 0
    assert project.kill("shop", signal.SIGTERM) == 0


BUSY = """
import asyncio, multiprocessing, time
from blindfit.parties import node

start = node.PartyNode.start

async def busy(self):
    await start(self)
    self.work = asyncio.create_task(asyncio.to_thread(time.sleep, 600))
    self.child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    self.child.start()
    print("child", self.child.pid, flush=True)

node.PartyNode.start = busy

from blindfit.__main__ import main

if __name__ == "__main__":
    main()
"""


def test_sigterm_waits_for_no_thread_and_leaves_no_process(project):
    """A fit may have minutes to go."""
    project.start("meter", program=("-c", BUSY))
    (child,) = re.findall(r"^child (\d+)$", project.log("meter"), re.MULTILINE)
    assert project.kill("meter", signal.SIGTERM) == 0
    assert "party ended" in project.log("meter")
    assert ends(int(child))


def ends(pid: int) -> bool:
    """Return True once the killed process has ended; a busy machine takes a moment."""
    for _ in range(600):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_an_operator_approves_and_refuses(project):
    project.edit("meter.toml", "[policy]", '[policy]\napprove = "ask"')
    project.start("shop", "meter")
    assert "no job waits" in project.blindfit("approve", "meter.toml").stdout
    with project.submitting() as job:
        session, digest = wait_for_held(project)
        shown = project.blindfit("approve", "meter.toml", session)
        assert error_line(shown) == "error: the digest is missing, and an approval needs it"
        assert f"blindfit approve meter.toml {session} {digest}" in shown.stdout
        other = project.blindfit("approve", "meter.toml", session, "0" * 32)
        assert error_line(other) == f"error: {'0' * 32} is not the digest of the job that waits here as {session}"
        assert project.blindfit("approve", "meter.toml", session, digest).returncode == 0
        assert job.wait(60) == 0, job.stderr.read()
    with project.submitting() as job:
        session, _ = wait_for_held(project)
        assert project.blindfit("approve", "meter.toml", session, "--refuse").returncode == 0
        assert job.wait(60) == 1
        assert "its operator did not approve the job" in job.stderr.read()
    assert project.blindfit("approve", "meter.toml", "nothing").returncode == 2


def wait_for_held(project) -> tuple[str, str]:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        with sqlite3.connect(project.path("state/meter/party.sqlite")) as database:
            rows = database.execute("SELECT session, digest FROM sessions WHERE state = 'HELD'").fetchall()
        if rows:
            return rows[0]
        time.sleep(0.1)
    raise AssertionError("no job is held")


def test_a_server_killed_in_the_middle_of_a_stream_ends_the_job_in_one_line(project):
    many_rows(project, 300_000)
    project.start("shop", "meter")
    with project.submitting("--set", "split.test_fraction=0") as job:
        assert any("send rows" in line for line in job.stdout)
        project.kill("meter")
        assert job.wait(60) == 1
        error = job.stderr.read()
    assert error.startswith("error: cannot reach meter"), error
    project.start("meter")
    again = submit(project, "--set", "split.test_fraction=0")
    assert again.returncode == 0, again.stderr
    assert "releases" not in again.stderr


def many_rows(project, n_rows: int) -> None:
    generator = np.random.default_rng(0)
    ids = pa.array(np.arange(n_rows)).cast("string")
    features = {f"f{j}": generator.standard_normal(n_rows) for j in range(8)}
    pq.write_table(pa.table({"id": ids, **features}), project.path("rows.parquet"))
    labels = pa.table({"id": ids, "label": generator.integers(0, 2, n_rows)})
    pq.write_table(labels, project.path("labels.parquet"))
    project.edit("shop.toml", "csv:rows.csv", "parquet:rows.parquet")
    project.edit("meter.toml", "csv:labels.csv", "parquet:labels.parquet")


def test_a_party_that_is_down_is_named(project):
    project.start("shop")
    refused = submit(project)
    assert refused.returncode == 1
    assert error_line(refused).startswith("error: cannot reach meter at localhost:")


def test_a_revoked_party_is_refused(project):
    project.start("shop", "meter")
    authority.revoke(project.path("ca"), "meter")
    refused = submit(project, "--set", "coordinator.revoked=ca/crl.pem")
    assert refused.returncode == 1
    assert "meter" in error_line(refused)
    assert "revoked" in error_line(refused)


def test_a_revoked_coordinator_is_refused(project):
    project.start("shop", "meter")
    its_list = project.path("ca/coordinator/crl.pem")
    before = its_list.read_bytes()
    authority.revoke(project.path("ca"), "coordinator")
    assert "error: ca/coordinator/certificate.pem was revoked" in submit(project).stderr
    its_list.write_bytes(before)  # this party has not heard of it, but the others have
    refused = submit(project)
    assert refused.returncode == 1
    assert "its certificate was revoked (reported by shop)" in error_line(refused)


def test_a_coordinator_of_another_authority_is_refused(project):
    authority.create_authority(project.path("other"), "other-authority")
    authority.issue(project.path("other"), "coordinator", ["localhost"])
    project.start("shop", "meter")
    refused = submit(project, *(f"--set=coordinator.{k}=other/coordinator/{k}.pem" for k in ("certificate", "key")))
    assert refused.returncode in (1, 2)
    assert "Traceback" not in refused.stderr


def test_a_party_may_not_propose_a_job(project):
    """The role is wrong: the shop's certificate is good, and yet the shop may not do what a coordinator does."""
    project.start("shop", "meter")
    refused = submit(project, *(f"--set=coordinator.{k}=ca/shop/{k}.pem" for k in ("certificate", "key")))
    assert refused.returncode == 1
    assert "does not allow this party to call /blindfit.v1.Control/Describe" in error_line(refused)


def test_another_partys_certificate_is_noticed_at_the_start(project):
    project.edit("meter.toml", "ca/meter/", "ca/shop/")
    refused = project.in_a_process("party", "meter.toml")
    assert refused.returncode == 2
    assert "is the certificate of shop" in error_line(refused)


def test_a_restored_ledger_is_noticed_and_acknowledged(project):
    project.start("shop", "meter")
    assert submit(project, "--set", "privacy.epsilon=0.4").returncode == 0
    project.kill("meter", signal.SIGTERM)
    backup = {p: p.read_bytes() for p in project.path("state/meter").glob("party.sqlite*")}
    project.start("meter")
    assert submit(project, "--set", "privacy.epsilon=0.5").returncode == 0
    project.kill("meter", signal.SIGTERM)
    for path in project.path("state/meter").glob("party.sqlite*"):
        path.unlink()
    for path, content in backup.items():
        path.write_bytes(content)
    project.start("meter")
    refused = submit(project, "--set", "privacy.epsilon=0.6")
    assert refused.returncode == 1
    assert "a signed receipt proves entry 2" in error_line(refused)
    acknowledged = project.blindfit("ledger", "meter.toml", "--acknowledge", "restored from Monday")
    assert "1 lost charges were charged again" in acknowledged.stdout
    done = submit(project, "--set", "privacy.epsilon=0.6")
    assert done.returncode == 0, done.stderr
    assert "(recovered)" in project.blindfit("ledger", "meter.toml").stdout


def test_a_ledger_that_cannot_be_written_releases_nothing(project):
    """The operating system reports a full disk: no file of the server may grow."""
    project.start("shop", "meter")
    pid = project.processes["meter"].pid
    size = project.path("state/meter/party.sqlite-wal").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    refused = submit(project)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    shown = project.blindfit("ledger", "meter.toml")
    assert "shop" not in shown.stdout  # nothing was charged
    assert submit(project).returncode == 0


def test_logs_hold_no_label_feature_or_key(project):
    """The test searches everything that was written down for canaries: an id, a feature and the parties'
    private keys.
    """
    rows = project.path("rows.csv").read_text().splitlines()
    rows[10] = "canary-person,7654.3211234,0.5,0.25,0.125"
    project.path("rows.csv").write_text("\n".join(rows) + "\n")
    project.edit("labels.csv", "u9,", "canary-person,")
    project.start("shop", "meter")
    done = submit(project)
    assert done.returncode == 0, done.stderr
    submit(project, "--set", "privacy.epsilon=1.9", "--set", "privacy.release=x")  # over the budget
    keys = [line for name in ("shop", "meter") for line in key_lines(project.path(f"ca/{name}/key.pem"))]
    written = [project.log("shop"), project.log("meter"), done.stdout, done.stderr]
    written += [path.read_text() for path in project.path("out").glob("report.*")]
    for text in written:
        assert "canary-person" not in text
        assert "7654.32" not in text
        assert not any(line in text for line in keys)


def key_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("-")]


@pytest.mark.parametrize("name", ["shop", "meter"])
def test_bad_party_files_are_named(project, name):
    project.edit(f"{name}.toml", "[policy]", "[policy]\nmax_epsilom = 3")
    refused = project.blindfit("party", f"{name}.toml")
    assert refused.returncode == 2
    assert error_line(refused) == (
        f"error: {name}.toml: policy.max_epsilom is not an option; did you mean max_epsilon?"
    )


def test_what_is_kept_is_guarded(project):
    project.start("shop", "meter")
    assert submit(project).returncode == 0
    for party in ("shop", "meter"):
        for path in project.path(f"state/{party}").rglob("*"):
            if path.is_file():
                assert path.stat().st_mode & 0o077 == 0, path
