"""A real PostgreSQL server for the tests, in a temporary directory, on a port that nobody else gets."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.ports import held_address

USER = "tester"
PASSWORD = "s3cret-pa55"
START_TIMEOUT_S = 30


@dataclass(frozen=True)
class PostgresServer:
    port: int
    binaries: Path
    data: Path

    def url(self, table: str = "", *, user: str = USER, password: str = PASSWORD) -> str:
        query = f"?table={table}" if table else ""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/postgres{query}"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url(), autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Skip the test without PostgreSQL on this machine; fail it under CI, where there must be one."""
    binaries = find_binaries()
    if binaries is None:
        unavailable = "no PostgreSQL server on this machine (initdb and postgres): apt-get install postgresql"
        pytest.fail(unavailable) if os.environ.get("CI") else pytest.skip(unavailable)
    directory = Path(tempfile.mkdtemp(prefix="blindfit-pg-"))  # not tmp_path, which other users cannot enter
    try:
        with _started(binaries, directory) as server:
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def find_binaries() -> Path | None:
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    candidates = [*newest, *([Path(on_path).resolve().parent] if on_path else [])]
    return next((path for path in candidates if (path / "initdb").exists() and (path / "postgres").exists()), None)


@contextmanager
def _started(binaries: Path, directory: Path) -> Iterator[PostgresServer]:
    as_user = _unprivileged(directory)
    password_file = directory / "password"
    password_file.write_text(PASSWORD)
    password_file.chmod(0o644)
    data = directory / "data"
    initdb = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        USER,
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
        "-A",
        "scram-sha-256",
    ]
    command = [*initdb, f"--pwfile={password_file}"]
    subprocess.run(command, check=True, capture_output=True, cwd=directory, **as_user)
    server = PostgresServer(int(held_address().rpartition(":")[2]), binaries, data)
    options = {
        "listen_addresses": "127.0.0.1",
        "port": server.port,
        "unix_socket_directories": directory,
        "fsync": "off",
    }
    arguments = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *arguments], stdout=log, stderr=log, cwd=directory, **as_user
        )
    try:
        _wait_until_ready(server, process, directory / "log")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _unprivileged(directory: Path) -> dict[str, Any]:
    """Return another user to run as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    account = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(directory, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _wait_until_ready(server: PostgresServer, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return server.connect().close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
