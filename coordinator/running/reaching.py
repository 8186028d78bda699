"""The addresses of parties that are up, and the identity that the coordinator shows them."""

from __future__ import annotations

from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job
from blindfit.parties.identity.identity import Identity, open_identity


def addresses_of(job: Job[Any]) -> dict[str, str]:
    addresses = {}
    for name, party in job.parties.items():
        if party.address is None:
            raise ConfigError(
                f"parties.{name}.address is missing: `blindfit submit` needs to know where every party is up",
                hint=f'such as parties.{name}.address = "party.example.org:7100"',
            )
        addresses[name] = party.address
    return addresses


def coordinator_identity(job: Job[Any]) -> Identity:
    if job.coordinator is None:
        raise ConfigError(
            "[coordinator] is missing: parties that are up ask who proposes the job",
            hint="set coordinator.certificate, coordinator.key and coordinator.authority; `blindfit certs issue DIR "
            "coordinator` makes them",
        )
    return open_identity(job.coordinator, job.folder)
