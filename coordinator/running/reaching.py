"""The addresses of running parties, and the identity that the coordinator shows them."""

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
                f"parties.{name}.address is missing: `blindfit submit` needs the address of every party",
                hint=f'set it, such as parties.{name}.address = "party.example.org:7100"',
            )
        addresses[name] = party.address
    return addresses


def coordinator_identity(job: Job[Any]) -> Identity:
    if job.coordinator is None:
        raise ConfigError(
            "[coordinator] is missing: running parties need the identity of the coordinator",
            hint="set coordinator.certificate, coordinator.key and coordinator.authority; `blindfit certs issue DIR "
            "coordinator` makes them",
        )
    return open_identity(job.coordinator, job.folder)
