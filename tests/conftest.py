"""Keys that every test of encryption shares; they are the same in every run."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: there is a worker for every core,
os.environ.setdefault("OMP_NUM_THREADS", "1")  # and threads that wait for work take its time

import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key, insecure_private_key
from tests import fork_server, quick_points
from tests.postgres import PostgresServer, running_postgres

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when gRPC is imported, which is later
hypothesis.settings.register_profile("blindfit", deadline=None)  # a busy machine is not a fault
hypothesis.settings.load_profile("blindfit")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: parties would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).parents[1]
IN_MEMORY, ROOM = "/dev/shm", 4 << 30
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
    tempfile.tempdir = os.environ.setdefault("TMPDIR", IN_MEMORY)  # tests kill processes, not the machine
gc.disable()  # until all is imported and collected, of which nothing is garbage

OBJECTS_BETWEEN_LOOKS = 20_000  # threshold of the collector's youngest generation


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Start the fork server for workers of the whole suite."""
    if node.config.args == ["tests"]:
        node.workerinput["fork_server"] = fork_server.start()


def pytest_configure(config: pytest.Config) -> None:
    address = getattr(config, "workerinput", {}).get("fork_server")
    if address is not None:
        fork_server.use(address)


def pytest_collection(session: pytest.Session) -> None:
    """Compile another part of the tests first in each worker of a fresh clone, which then finds the rest compiled."""
    place = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not place or session.config.args != ["tests"]:
        return
    paths = sorted(Path(__file__).parent.rglob("test_*.py"))
    start = int(place) * len(paths) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for path in paths[start:] + paths[:start]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # pytest reports it when it collects the page
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Collect garbage less often: looking through a million objects that stay took a tenth of all processor time."""
    quick_points.take_the_place()
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_LOOKS)


@pytest.fixture(scope="session", autouse=True)
def _a_users_state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files of a user's state are those of this process and its children: no test touches those of this
    machine's user.
    """
    state: Path = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(state)


@pytest.fixture
def full_size_keys() -> Iterator[None]:
    """Forked parties use keys of full size."""
    with fork_server.full_size_keys():
        yield


@pytest.fixture(scope="session")
def insecure_test_key() -> PrivateKey:
    """A key of 512 bits, so that a broad test is quick; it is refused unless `min_bits` is lowered."""
    return insecure_private_key(512, uniform=random.Random(512).randrange)


@pytest.fixture(scope="session")
def real_key() -> PrivateKey:
    """A key of 2048 bits."""
    return generate_private_key(uniform=random.Random(2048).randrange)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server
