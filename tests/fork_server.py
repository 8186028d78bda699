"""The parent process of all forked parties: pytest's workers share one, which imports Blindfit while they collect.

A process that is not given the address of a shared server starts a server of its own when it first forks.

This is the one module that sets private names of CPython (`_know_server`). The public functions of
`multiprocessing.forkserver` start one server for each process. They cannot use a server that another process started.
Four workers would import Blindfit four times: 2 s and 300 MB each. CPython keeps these names from 3.11 to 3.14, and
tests/test_fork_server.py fails in the version that renames one.
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
    "tests.preloaded_first",
    "blindfit.parties.measurement.fitting",
    "blindfit.coordinator.cli.main",
    "blindfit.parties.node",
    *(f"blindfit.parties.{seat}" for seat in ("walr.consumer", "label_dp.consumer", "dp_lr.trainer")),
    *(f"blindfit.parties.{seat}" for seat in ("taylor.data_party", "taylor.key_node", "measurement.seat")),
    *(f"blindfit.parties.{seat}" for seat in ("falcon.data_party", "falcon.key_node")),
    *(f"blindfit.parties.predict.{seat}" for seat in ("prediction", "key_node")),
    *(f"blindfit.parties.{seat}" for seat in ("evaluate.consumer", "walr.server", "walr.passive")),
    "blindfit.parties.work.late_arrow",
    "blindfit.parties.data.database",
    *(f"scipy.{part}" for part in ("linalg", "optimize", "sparse", "special", "stats")),
    *(f"sklearn.{part}" for part in ("ensemble", "linear_model", "metrics", "neural_network")),
    *("scipy.signal", "sqlalchemy.dialects.sqlite", "cryptography.hazmat.backends.openssl"),
    *("encodings.idna", "encodings.utf_8_sig", "xml.dom.minidom"),
    *("joblib", "pydantic.type_adapter", "typer._adapters"),
    *("pandas", "pyarrow.pandas_compat", "pyarrow.vendored.version"),  # pyarrow looks for them
    "tests.command",  # a child begins there
    "tests.preloaded",
]
FULL_SIZE_KEYS = {"KEYS_OF_FORKED_PARTIES": "full size"}  # a forked party with this environment has no quick keys
ADDRESS = ("_forkserver_address", "_forkserver_authkey")  # Python 3.14 adds the key

forks = multiprocessing.get_context("forkserver")


def start() -> dict[str, Any]:
    """Start a server that ends with this process; return the address by which other processes reach it."""
    forks.set_forkserver_preload(PRELOADED)
    with _unheard():
        forkserver.ensure_running()
    return {name: value for name, value in vars(forkserver._forkserver).items() if name in ADDRESS}


def use(address: dict[str, Any]) -> None:
    """Fork from the server that another process started."""
    _know_server(**address, _forkserver_alive_fd=os.open(os.devnull, os.O_WRONLY))
    start_none()


def start_none() -> None:
    """Let this process fork only from the server that it already knows."""
    _know_server(ensure_running=resource_tracker.ensure_running)


def _know_server(**names: Any) -> None:
    """Set names of CPython's object for the server: the module's docstring gives the reason."""
    vars(forkserver._forkserver).update(names)


@contextlib.contextmanager
def full_size_keys() -> Iterator[None]:
    """Give keys of full size to the parties that are forked inside the block."""
    with mock.patch.dict(os.environ, FULL_SIZE_KEYS):
        yield


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Discard the output of all that the block starts or forks: tests read the files and pipes of these processes."""
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
