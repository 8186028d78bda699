"""Tasks on a real Dask cluster of two worker processes, over loopback TCP and over mutual TLS."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dask import config as dask_config
from distributed import Client, LocalCluster
from distributed.security import Security

from blindfit.algorithms.errors import BudgetExhausted, ComputeFailed, ConfigError
from blindfit.algorithms.workers import THIS_PROCESS, Workers
from blindfit.parties.identity import authority
from blindfit.parties.identity.authority import PartyFiles
from blindfit.parties.work import compute
from blindfit.parties.work.compute import ComputeSettings, open_workers, workers_of
from tests.certificates import demo_authority
from tests.command import blindfit
from tests.hints.following import refused
from tests.ports import held_address
from tests.work import tasks
from tests.work.clusters import cluster, dask, process_ids, wait_for_both, wait_until
from tests.work.parties import party


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalCluster]:
    """A cluster of which no test kills anything."""
    with cluster() as running:
        yield running


@pytest.fixture(scope="module")
def mortal() -> Iterator[LocalCluster]:
    """A cluster that tests kill workers of, one test after the other. A task that lost its worker is tried once more,
    not three times, as a worker's start takes a second."""
    with dask_config.set({"distributed.scheduler.allowed-failures": 1}), cluster() as running:
        yield running


@contextmanager
def workers_that_come_back(running: LocalCluster, **options: Any) -> Iterator[Workers]:
    """Yield workers: two when they are opened, and two in the end."""
    with open_workers(dask(running.scheduler_address, **options)) as workers:
        assert workers.count == 2
        yield workers
    wait_for_both(running)


def test_products_are_those_of_one_process_bit_for_bit(shared: LocalCluster, tmp_path: Path) -> None:
    given_out = tasks.product_tasks(9)
    with open_workers(dask(shared.scheduler_address)) as workers:
        assert workers.count == 2
        assert workers.map(tasks.products, given_out) == THIS_PROCESS.map(tasks.products, given_out)
        assert set(workers.map(tasks.meet, [(tmp_path, 2)] * 8)) == set(process_ids(shared))
        assert workers.map(tasks.process, []) == []


def test_two_parties_share_a_cluster(shared: LocalCluster) -> None:
    settings = dask(shared.scheduler_address)
    with open_workers(settings) as one, open_workers(settings) as other:
        assert one.map(tasks.slow_sum, tasks.slow_tasks(4, 0.05)) == tasks.slow_sums(4)
        assert other.map(tasks.slow_sum, tasks.slow_tasks(5, 0.05)) == tasks.slow_sums(5)


def test_errors_of_a_task_pass_as_they_are(shared: LocalCluster) -> None:
    with open_workers(dask(shared.scheduler_address)) as workers:
        with pytest.raises(KeyError):
            workers.map(tasks.fail_with_key_error, [(0,), (1,)])
        with pytest.raises(BudgetExhausted) as exhausted:
            workers.map(tasks.exhaust, [(0,)])
        assert exhausted.value.population == "people"


# --- workers that die ---------------------------------------------------------------------------------


def test_a_killed_worker_is_survived(mortal: LocalCluster, tmp_path: Path) -> None:
    with workers_that_come_back(mortal) as workers, ThreadPoolExecutor(1) as killer:
        victim = process_ids(mortal)[0]

        def kill() -> None:
            wait_until(lambda: len(list(tmp_path.iterdir())) >= 4)
            os.kill(victim, signal.SIGKILL)

        killed = killer.submit(kill)
        assert workers.map(tasks.leave_a_mark, [(tmp_path, i) for i in range(12)]) == list(range(12))
        killed.result()
        wait_until(lambda: victim not in process_ids(mortal))


def test_a_cluster_of_one_thread_does_the_work_itself() -> None:
    with cluster(1) as running, open_workers(dask(running.scheduler_address)) as workers:
        assert workers.count == 1
        assert workers.map(tasks.process, [()] * 3) == process_ids(running) * 3


def test_a_task_that_always_kills_its_worker_fails_before_the_deadline(mortal: LocalCluster) -> None:
    with workers_that_come_back(mortal, task_timeout_s=600) as workers:
        with pytest.raises(ComputeFailed) as failed:
            workers.map(tasks.die, [("canary",)])
        assert failed.value.message == (
            f"[compute] dask at {mortal.scheduler_address}: 1 of 1 tasks were not done: "
            "one of them kills every worker that takes it"
        )
        assert workers.map(tasks.process, [()])


def test_a_task_that_takes_too_long_fails(shared: LocalCluster, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    with open_workers(dask(shared.scheduler_address, task_timeout_s=5)) as workers:
        with pytest.raises(ComputeFailed) as failed:
            workers.map(tasks.meet, [(tmp_path / "a", 1), (tmp_path / "b", 2)])  # to the second nobody comes
        (tmp_path / "b" / "enough").touch()
        assert f"dask at {shared.scheduler_address}: 1 of 2 tasks were not done: waited 5 s" in str(failed.value)


def test_a_lost_scheduler_ends_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "CONNECT_TIMEOUT_S", 60)  # it may take a while to start
    address = f"tcp://{held_address().replace('localhost', '127.0.0.1')}"
    scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2])
    worker = start("dask_worker", address, "--nthreads", "2", "--no-nanny")
    try:
        with open_workers(dask(address)) as workers:  # it waits for the scheduler and a first worker
            threading.Timer(0.5, scheduler.kill).start()
            for _ in range(2):
                with pytest.raises(ComputeFailed, match="3 of 3 tasks were not done: the scheduler was lost"):
                    workers.map(tasks.process, [(3.0,)] * 3)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# --- clusters that are not what they should be --------------------------------------------------------


def test_no_scheduler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "CONNECT_TIMEOUT_S", 0.5)
    address = f"tcp://{held_address().replace('localhost', '127.0.0.1')}"
    with pytest.raises(ComputeFailed) as failed, open_workers(dask(address)):
        pass
    assert failed.value.message == f"[compute] dask at {address}: no connection"


def test_a_scheduler_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "FIRST_WORKER_TIMEOUT_S", 0.5)
    with cluster(0) as running, pytest.raises(ComputeFailed, match="it has no workers"):
        with open_workers(dask(running.scheduler_address)):
            pass


def test_another_version_is_refused(shared: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "version", tasks.version_of)
    with open_workers(dask(shared.scheduler_address)):
        pass
    monkeypatch.setenv("VERSION_OF_THE_TEST", "1.1")
    with pytest.raises(ComputeFailed, match=r"worker tcp:\S+ has Blindfit 1.0, and this party Blindfit 1.1( \(|$)"):
        with open_workers(dask(shared.scheduler_address)):
            pass


def test_dask_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match="needs Dask, which is not installed"), open_workers(dask("tcp://[::1]:9")):
        pass


# --- mutual TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> PartyFiles:
    return authority.issue(demo_authority(tmp_path_factory.mktemp("cluster")), "node", ["127.0.0.1"], days=1)


@pytest.fixture(scope="module")
def tls_cluster(files: PartyFiles) -> Iterator[LocalCluster]:
    names = {f"tls_{role}_{kind}": str(path) for role in ("scheduler", "worker", "client")
             for kind, path in (("cert", files.certificate), ("key", files.key))}  # fmt: skip
    security = Security(tls_ca_file=str(files.authority), require_encryption=True, **names)
    with cluster(security=security, protocol="tls://") as running:
        yield running


def tls(running: LocalCluster, files: PartyFiles, **options: Any) -> dict[str, Any]:
    assert running.scheduler_address.startswith("tls://")
    paths = {"certificate": str(files.certificate), "key": str(files.key), "authority": str(files.authority)}
    return {"backend": "dask", "address": running.scheduler_address, **paths, **options}


def test_products_over_tls_are_the_same(tls_cluster: LocalCluster, files: PartyFiles) -> None:
    given_out = tasks.product_tasks(5)
    settings = party(**tls(tls_cluster, files))
    other = authority.issue(demo_authority(files.certificate.parents[2] / "peers"), "shop", days=1)
    settings = settings.model_copy(
        update={"identity": settings.identity.model_copy(update={"authority": other.authority})}
    )
    with workers_of(settings, Path("/")) as workers:
        assert workers.map(tasks.products, given_out) == THIS_PROCESS.map(tasks.products, given_out)
        assert set(workers.map(tasks.process, [(0.1,)] * 4)) == set(process_ids(tls_cluster))


def test_a_foreign_certificate_is_not_let_in(tls_cluster: LocalCluster, files: PartyFiles, tmp_path: Path) -> None:
    foreign = authority.issue(demo_authority(tmp_path), "node", days=1)
    trusting = PartyFiles(foreign.certificate, foreign.key, files.authority)
    with pytest.raises(ComputeFailed, match=r"no TLS connection \(CERTIFICATE_VERIFY_FAILED\)"):
        with open_workers(ComputeSettings(**tls(tls_cluster, foreign))):
            pass
    with pytest.raises(ComputeFailed, match=r"no (TLS )?connection"):  # the scheduler ends it, in one way or another
        with open_workers(ComputeSettings(**tls(tls_cluster, trusting))):
            pass


def test_plain_tcp_and_tls_do_not_meet(shared: LocalCluster, tls_cluster: LocalCluster, files: PartyFiles) -> None:
    plain = dask(tls_cluster.scheduler_address.replace("tls", "tcp"))
    encrypted = ComputeSettings(
        **{**tls(tls_cluster, files), "address": shared.scheduler_address.replace("tcp", "tls")}
    )
    gc.disable()
    try:
        for settings in (plain, encrypted):
            with refused(
                "start `dask scheduler` there; if the address is tls://, with a certificate of compute.authority"
            ) as told:
                with open_workers(settings):
                    pass
            assert "no connection" in told.text or "no TLS connection" in told.text
        # One that is still open closes where the collector finds it: where Dask's lock is held, never.
        assert {left.status for left in gc.get_objects() if isinstance(left, Client)} <= {"closed"}
    finally:
        gc.enable()


def test_the_peers_authority_is_not_the_clusters_under_any_name(files: PartyFiles, tmp_path: Path) -> None:
    """Anyone who has a certificate of it could run code on the cluster."""
    copy = tmp_path / "copy.pem"
    copy.write_bytes(files.authority.read_bytes())
    settings = party(
        backend="dask", address="tls://a:8786", certificate=str(files.certificate), key=str(files.key),
        authority=str(copy),
    )  # fmt: skip
    settings = settings.model_copy(
        update={"identity": settings.identity.model_copy(update={"authority": files.authority})}
    )
    with refused(
        "make one only for the cluster: `blindfit certs authority DIR`, and name it in compute.authority"
    ) as told:
        workers_of(settings, Path("/"))
    assert "copy.pem is the authority of [identity] too" in told.text
    assert blindfit(tmp_path, *(word.replace("DIR", "cluster") for word in told.commands[0])).returncode == 0
    own = settings.compute.model_copy(update={"authority": str(tmp_path / "cluster/authority.pem")})
    workers_of(settings.model_copy(update={"compute": own}), Path("/"))


def test_a_key_that_others_can_read_is_refused(tls_cluster: LocalCluster, tmp_path: Path) -> None:
    files = authority.issue(demo_authority(tmp_path), "node", days=1)
    files.key.chmod(0o644)
    with pytest.raises(ConfigError, match="others can use this secret"):
        with open_workers(ComputeSettings(**tls(tls_cluster, files))):
            pass
