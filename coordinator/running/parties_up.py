"""Which of a job's parties somebody runs already, where its files say that they are."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running.launcher import party_settings

LOOK_S = 0.5  # for all of them at once: a run waits for it


def parties_up(job: Job[Any]) -> dict[str, str]:
    """Name and address of those that something listens for; who cannot be asked in time counts as away."""
    known = addresses_in_files(job)
    found: dict[str, str] = {}
    # Daemons: to resolve a name may take longer than anybody wants to wait, and cannot be cut short.
    asked = [threading.Thread(target=_look, args=(found, *pair), daemon=True) for pair in known]
    give_up = time.monotonic() + LOOK_S
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join(max(0.0, give_up - time.monotonic()))
    return dict(sorted(dict(found).items()))


def addresses_in_files(job: Job[Any]) -> set[tuple[str, str]]:
    """Name and addresses, as the job says, and each party of its peers."""
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
    """Return a line for whoever starts parties here all the same."""
    where = ", ".join(f"{name} at {address}" for name, address in up.items())
    verb, its = ("seems", "its") if len(up) == 1 else ("seem", "their")
    return (
        f"{where} {verb} to be up; this run starts processes of its own on this machine, with {its} files here: "
        "`blindfit submit` takes the job to the parties that are up"
    )
