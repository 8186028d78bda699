"""The parent of all forked parties: one for all of pytest's workers, which imports while they collect.

Where a worker has none of the others' it starts one of its own, when first it needs it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from typing import Any
from unittest import mock

PRELOADED = [
    "tests.no_collector",
    "blindfit.parties.measurement.fitting",
    "blindfit.coordinator.cli.main",
    "blindfit.parties.node",
    *(f"blindfit.parties.{seat}" for seat in ("walr.consumer", "label_dp.consumer", "dp_lr.trainer")),
    *(f"blindfit.parties.{seat}" for seat in ("taylor.data_party", "taylor.key_node", "measurement.seat")),
    *(f"blindfit.parties.{seat}" for seat in ("falcon.data_party", "falcon.key_node")),
    *(f"blindfit.parties.predict.{seat}" for seat in ("prediction", "key_node")),
    *(f"blindfit.parties.{seat}" for seat in ("evaluate.consumer", "walr.server", "walr.passive")),
    "blindfit.parties.work.plain_arrow",
    "blindfit.parties.data.database",
    *(f"scipy.{part}" for part in ("linalg", "optimize", "sparse", "special", "stats")),
    *(f"sklearn.{part}" for part in ("ensemble", "linear_model", "metrics", "neural_network")),
    *("scipy.signal", "sqlalchemy.dialects.sqlite", "cryptography.hazmat.backends.openssl"),
    *("encodings.idna", "encodings.utf_8_sig", "xml.dom.minidom"),
    *("joblib", "pydantic.type_adapter", "typer._adapters"),
    *("pandas", "pyarrow.pandas_compat", "pyarrow.vendored.version"),  # which pyarrow looks for
    "tests.command",  # where a child begins
    "tests.preloaded",
]
FULL_SIZE_KEYS = {"KEYS_OF_FORKED_PARTIES": "full size"}  # in the environment of those that do not have quick ones
ADDRESS = ("_forkserver_address", "_forkserver_authkey")  # of a server: Python 3.14 has a key beside it

forks = multiprocessing.get_context("forkserver")


def start() -> dict[str, Any]:
    """Returns:
    How others of this machine reach the server, which ends with this process.
    """
    forks.set_forkserver_preload(PRELOADED)
    with _unheard():
        forkserver.ensure_running()
    return {name: value for name, value in vars(forkserver._forkserver).items() if name in ADDRESS}


@contextlib.contextmanager
def full_size_keys() -> Iterator[None]:
    """Those that are forked meanwhile have them."""
    with mock.patch.dict(os.environ, FULL_SIZE_KEYS):
        yield


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """What is started here, and all that it forks, says nothing between pytest's lines: tests read files and pipes."""
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)


def use(address: dict[str, Any]) -> None:
    """Of another process."""
    vars(forkserver._forkserver).update(address, _forkserver_alive_fd=os.open(os.devnull, os.O_WRONLY))
    start_none()


def start_none() -> None:
    """What this process forks, it forks from the server that it knows."""
    vars(forkserver._forkserver).update(ensure_running=resource_tracker.ensure_running)
