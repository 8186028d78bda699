"""The simulated network in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.job.job import Job

NETWORK = "network"


def describe_network(job: Job[Any]) -> dict[str, str]:
    """Return the report's entry about the network, if a network was simulated."""
    if job.network is None:
        return {}
    nobody = "" if len(job.parties) > 1 else "; the job has one party, so nothing crossed the network"
    return {NETWORK: f"simulated: {job.network.in_words()}{nobody}"}


def network_lines(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the terminal's line about the network, if the report has one."""
    if NETWORK in content:
        yield NETWORK, content[NETWORK]
