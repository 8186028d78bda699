"""CPython reads what tests/fork_server.py and tests/preloaded_first.py set in it."""

from __future__ import annotations

import inspect
import os
import socket
from multiprocessing import forkserver

from tests.fork_server import ADDRESS, PRELOADED


def test_cpython_reads_the_names_that_a_shared_server_sets() -> None:
    code = inspect.getsource(forkserver.ForkServer.connect_to_new_process)
    for name in (ADDRESS[0], "_forkserver_alive_fd", "ensure_running"):
        assert f"self.{name}" in code


def test_the_server_outlives_a_client_that_is_killed_before_it_asks() -> None:
    server = forkserver.ForkServer()
    server.set_forkserver_preload(PRELOADED[:1])
    server.ensure_running()
    try:
        for sent in (b"", b"not a request"):
            with socket.socket(socket.AF_UNIX) as killed:
                killed.connect(vars(server)[ADDRESS[0]])
                killed.sendall(sent)
        status, request = server.connect_to_new_process([])
        assert forkserver.read_signed(status) > 0, "the server forked a child"
        os.close(status)
        os.close(request)
    finally:
        server._stop()
