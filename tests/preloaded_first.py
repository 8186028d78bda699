"""The parent of all forked parties imports this module before everything else.

Nothing that it imports is garbage, and it outlives a client that is killed between its connection and its request.
CPython before 3.14 ends the server then, and no test after it can fork; tests kill commands at any moment.
"""

import errno
import gc
import socket
from multiprocessing import reduction

_receive = reduction.recvfds


def _receive_or_ignore(connected: socket.socket, most: int) -> list[int]:
    try:
        return _receive(connected, most)
    except (EOFError, RuntimeError) as killed:  # the server's loop ignores a connection that its client aborted
        raise ConnectionAbortedError(errno.ECONNABORTED, "the client was killed") from killed


gc.disable()
reduction.recvfds = _receive_or_ignore
