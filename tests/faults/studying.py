"""Commands with faults, after which nothing may be left: no process, no port and no temporary folder."""

from __future__ import annotations

import json
import socket
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from blindfit.coordinator.running import scratch
from blindfit.coordinator.running.launcher import log_of
from blindfit.parties.files.lock_file import LockFile
from tests.command import Done
from tests.world import World


@dataclass
class Studied:
    """A command with faults that has ended."""

    done: Done
    out: Path

    @property
    def faults(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "faults.json").read_text())
        return found

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return found

    def lines(self, kind: str, party: str = "") -> list[str]:
        """Return the texts of one kind on the timeline, of one party or of all."""
        return [e["text"] for e in self.faults["timeline"] if e["kind"] == kind and party in ("", e["party"])]

    @property
    def ended(self) -> str:
        """Return the last line of the job."""
        return [e["text"] for e in self.faults["timeline"] if e["kind"] == "job"][-1]


def study(
    world: World, *faults: str, command: str = "run", job: str = "job.toml", more: tuple[str, ...] = ()
) -> Studied:
    """Type a command with faults."""
    words = [word for fault in faults for word in ("--fault", fault)]
    temporary = world.path("temporary")
    temporary.mkdir(exist_ok=True)
    here = SimpleNamespace(
        gettempdir=lambda: str(temporary), TemporaryDirectory=partial(tempfile.TemporaryDirectory, dir=temporary)
    )
    with mock.patch.object(scratch, "tempfile", here):
        done = world.blindfit(command, job, "--out", "out", *words, *more)
    assert "bug" not in done.stderr, done.stderr
    check_nothing_left(world)
    return Studied(done, world.path("out"))


def check_nothing_left(world: World) -> None:
    assert not list(world.path("temporary").iterdir())
    for log in world.path("out").glob("*/party.log"):
        rehearsed = world.path("out", "rehearsal", log.parent.name)
        state = rehearsed if rehearsed.exists() else world.path("state", log.parent.name)
        lock = LockFile(state / "party.lock")
        assert lock.take("a test") is None, f"{log.parent.name} is still there"
        lock.release()
        for port in [record["port"] for record in log_of(world.path("out"), log.parent.name) if "port" in record]:
            with socket.socket() as tried:
                assert tried.connect_ex(("127.0.0.1", port)), f"somebody listens on port {port}"
