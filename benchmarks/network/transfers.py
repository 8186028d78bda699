"""Transfers over plain TCP: a network without a job. One process answers (`serve`), one asks (`print_seconds`)."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from dataclasses import dataclass

HEADER_BYTES = 16
SILENCE_S = 2.0


@dataclass(frozen=True)
class Transfer:
    """Questions and answers over one connection, each once the one before is answered.

    Attributes:
        silence_s: before the last question.
    """

    name: str
    question_bytes: int
    answer_bytes: int
    times: int = 1
    silence_s: float = 0.0


TRANSFERS = (
    Transfer("connect, 1 byte", 1, 1),
    Transfer("10 x 1 kB", 1_000, 1_000, 10),
    Transfer("100 kB", 100_000, 1),
    Transfer("1 MB", 1_000_000, 1),
    Transfer("10 MB", 10_000_000, 1),
    Transfer("10 MB back", 1, 10_000_000),
    Transfer("1 MB, 2 s, 1 MB", 1_000_000, 1, 2, SILENCE_S),
    Transfer("20 x 200 kB, both ways", 200_000, 200_000, 20),
)


def serve(host: str, port: int) -> None:
    """Print the port, and answer until this process is stopped."""
    with socket.create_server((host, port)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := _receive(connection, HEADER_BYTES):
            _receive(connection, int.from_bytes(header[:8], "big"))
            connection.sendall(bytes(int.from_bytes(header[8:], "big")))


def _receive(connection: socket.socket, count: int) -> bytes:
    """Return `count` bytes; fewer if the other side ends."""
    found = bytearray()
    while len(found) < count and (data := connection.recv(min(2**20, count - len(found)))):
        found += data
    return bytes(found)


def print_seconds(host: str, port: int, count: int) -> None:
    """Ask for the first transfers, and print the seconds of each as JSON, without its silence."""
    print(json.dumps({transfer.name: _ask(transfer, host, port) for transfer in TRANSFERS[:count]}))


def words(call: str) -> list[str]:
    """Return the command line of a call of this module."""
    return [sys.executable, "-c", f"from benchmarks.network import transfers; transfers.{call}"]


def _ask(transfer: Transfer, host: str, port: int) -> float:
    began = time.perf_counter()
    with socket.create_connection((host, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        header = transfer.question_bytes.to_bytes(8, "big") + transfer.answer_bytes.to_bytes(8, "big")
        for number in range(transfer.times):
            if number == transfer.times - 1:
                time.sleep(transfer.silence_s)
            connection.sendall(header + bytes(transfer.question_bytes))
            _receive(connection, transfer.answer_bytes)
        return time.perf_counter() - began - transfer.silence_s
