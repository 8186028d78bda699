"""The simulated network in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.job.job import Job

NETWORK = "network"


def describe_network(job: Job[Any]) -> dict[str, str]:
    """Return what a report says of the network, if one was simulated."""
    if job.network is None:
        return {}
    nobody = "" if len(job.parties) > 1 else "; the job has one party, so nothing crossed it"
    return {NETWORK: f"simulated: {job.network.in_words()}{nobody}"}


def network_lines(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the line of the terminal, if the report says something of a network."""
    if NETWORK in content:
        yield NETWORK, content[NETWORK]
