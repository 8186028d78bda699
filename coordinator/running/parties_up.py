"""Parties of a job that already run at the addresses in its files."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running.launcher import party_settings

LOOK_S = 0.5  # for all parties together: a run waits for it


def parties_up(job: Job[Any]) -> dict[str, str]:
    """Return name and address of each party whose address answers; a party that cannot be asked in time is left out."""
    known = addresses_in_files(job)
    found: dict[str, str] = {}
    # Daemons: resolving a name may take long, and cannot be stopped.
    asked = [threading.Thread(target=_look, args=(found, *pair), daemon=True) for pair in known]
    give_up = time.monotonic() + LOOK_S
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join(max(0.0, give_up - time.monotonic()))
    return dict(sorted(dict(found).items()))


def addresses_in_files(job: Job[Any]) -> set[tuple[str, str]]:
    """Return names and addresses, as the job has them, and each party has them of its peers."""
    of_peers = {
        (peer, said.address)
        for name in job.parties
        for peer, said in party_settings(job, name)[1].peers.items()
        if said.address is not None and peer in job.parties
    }
    return of_peers | {(name, party.address) for name, party in job.parties.items() if party.address is not None}


def _look(found: dict[str, str], name: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), LOOK_S):
        found[name] = address


def in_words(up: Mapping[str, str]) -> str:
    """Return a line for a user who starts parties here although some already run."""
    where = ", ".join(f"{name} at {address}" for name, address in up.items())
    verb, its = ("seems", "its") if len(up) == 1 else ("seem", "their")
    return (
        f"{where} {verb} to be running. This run starts separate processes on this machine, with {its} files here: "
        "`blindfit submit` takes the job to the parties that already run"
    )
