"""The names of CPython that tests/fork_server.py sets are the names that CPython reads."""

from __future__ import annotations

import inspect
from multiprocessing import forkserver

from tests.fork_server import ADDRESS


def test_cpython_reads_the_names_that_a_shared_server_sets() -> None:
    code = inspect.getsource(forkserver.ForkServer.connect_to_new_process)
    for name in (ADDRESS[0], "_forkserver_alive_fd", "ensure_running"):
        assert f"self.{name}" in code
