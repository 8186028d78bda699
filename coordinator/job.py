"""The job file: TOML, validated, every default visible through `blindfit show job.toml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import tomli_w
from pydantic import Field, field_validator, model_validator

from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.settings import PARTY_NAME, IdentitySettings, Role, Settings, load_settings

# For each protocol: how many of each role, at least and at most.
ROLES_OF_PROTOCOL: dict[str, dict[str, tuple[int, int]]] = {
    "walr": {"active": (1, 1), "measurement": (1, 1)},
    "label-dp": {"active": (1, 1), "measurement": (1, 1)},
    "dp-lr": {"active": (1, 1)},
    "taylor": {"active": (1, 1), "passive": (1, 15), "key-node": (1, 1)},
    "predict": {"active": (1, 1), "passive": (1, 15), "key-node": (1, 1)},
}


class JobParty(Settings):
    role: Role
    dataset: str = ""  # a key node has none
    config: Path | None = None  # its party.toml, for `blindfit run` on this machine
    address: str | None = None  # where it is up, for `blindfit submit`


class Job(JobParameters):
    name: str = Field("job", pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    parties: dict[str, JobParty]
    coordinator: IdentitySettings | None = None  # who proposes, for `blindfit submit`; `run` makes its own

    @field_validator("parties")
    @classmethod
    def _names_are_names(cls, parties: dict[str, JobParty]) -> dict[str, JobParty]:
        for name in parties:
            if not re.fullmatch(PARTY_NAME, name):
                raise ValueError(f"{name!r} is not a party's name (letters, digits and -, as in its certificate)")
        return parties

    @model_validator(mode="after")
    def _has_its_roles(self) -> Job:
        wanted = ROLES_OF_PROTOCOL[self.protocol]
        roles: list[str] = [party.role for party in self.parties.values()]
        strangers = sorted(set(roles) - set(wanted))
        if strangers or any(not low <= roles.count(role) <= high for role, (low, high) in wanted.items()):
            raise ValueError(f"parties: {self.protocol} needs {_in_words(wanted)}")
        for name, party in self.parties.items():
            if (party.role == "key-node") == bool(party.dataset):
                raise ValueError(f"parties.{name}.dataset: every party but a key node has one")
        return self

    def parameters(self) -> JobParameters:
        """The part that every party is told."""
        return JobParameters(**{name: getattr(self, name) for name in JobParameters.model_fields})


def _in_words(roles: dict[str, tuple[int, int]]) -> str:
    """{"active": (1, 1), "passive": (1, 15)} -> exactly one active, and 1 to 15 passive"""
    parts = [f"exactly one {r}" if low == high == 1 else f"{low} to {high} {r}" for r, (low, high) in roles.items()]
    return " and ".join(parts)


def load_job(path: Path, overrides: Sequence[str] = ()) -> Job:
    """Raises:
    ConfigError: one line that names the file and the field.
    """
    return load_settings(path, overrides, Job)


def shown(job: Job) -> str:
    """The whole job as TOML, defaults included; what has no value stands as a comment."""
    values = job.model_dump(mode="json", exclude_none=True)
    unset = sorted(_unset("", job))
    comment = "".join(f"# {name} is not set\n" for name in unset)
    return tomli_w.dumps(values) + ("\n" + comment if comment else "")


def _unset(prefix: str, settings: Settings) -> list[str]:
    names: list[str] = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if value is None:
            names.append(prefix + name)
        elif isinstance(value, Settings):
            names += _unset(f"{prefix}{name}.", value)
    return names
