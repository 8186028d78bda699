"""Small dask clusters on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any

from dask import config as dask_config
from distributed import LocalCluster

from blindfit.parties.work.compute import ComputeSettings
from tests import command

# Otherwise a worker that is between two lives 15 s after a loss, by that test or an earlier one, is not started again.
WORKERS_STAY = {"distributed.deploy.lost-worker-timeout": "1 hour"}


@contextmanager
def cluster(n_workers: int = 2, **options: Any) -> Iterator[LocalCluster]:
    """Start a cluster of processes, each with one thread; forked from one that has imported all, as other tests'
    parties.
    """
    assert command.PRELOADED
    forkserver.ensure_running()  # Dask would have it import something else
    with (
        dask_config.set({"distributed.worker.multiprocessing-method": "forkserver", **WORKERS_STAY}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=60,
            **options,
        ) as running,
    ):
        yield running


def dask(address: str, **options: Any) -> ComputeSettings:
    return ComputeSettings(backend="dask", address=address, **{"task_timeout_s": 60, **options})


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def wait_for_both(running: LocalCluster) -> None:
    """Wait until the scheduler knows two workers, and each is the last one that its nanny has started."""

    def both() -> bool:
        started = {nanny.worker_address for nanny in running.workers.values()}
        return len(started) == 2 and set(running.scheduler.workers) == started

    wait_until(both)


def process_ids(running: LocalCluster) -> list[int]:
    return [nanny.pid for nanny in running.workers.values()]
