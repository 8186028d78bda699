"""Calls that request more than a server gives."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator

from blindfit.protos import payload_pb2


def swollen(**parameters: object) -> payload_pb2.Parameters:
    """Return parameters without our own codec, which would refuse to send them."""
    items = [payload_pb2.Parameter(name=name, **value) for name, value in parameters.items()]
    return payload_pb2.Parameters(items=items)


IDLERS = """
import socket, sys
held = []
for _ in range(int(sys.argv[2])):
    try:
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5))
    except OSError:
        pass
print(len(held), flush=True)
sys.stdin.read()
"""


@contextlib.asynccontextmanager
async def idlers(port: int, count: int) -> AsyncIterator[None]:
    """Connect from another process, and send nothing."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", IDLERS, str(port), str(count)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        try:
            await asyncio.to_thread(process.stdout.readline)
            yield
        finally:
            process.stdin.close()
