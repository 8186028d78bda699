"""The job file: TOML, validated, every default visible through `blindfit show job.toml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import tomli_w
from pydantic import Field, field_validator, model_validator

from parties.jobs import JobParameters
from parties.settings import PARTY_NAME, IdentitySettings, Role, Settings, load_settings

ROLES_OF_PROTOCOL: dict[str, tuple[str, ...]] = {"walr": ("active", "measurement")}


class JobParty(Settings):
    role: Role
    dataset: str
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
        wanted = sorted(ROLES_OF_PROTOCOL[self.protocol])
        if sorted(party.role for party in self.parties.values()) != wanted:
            raise ValueError(f"parties: {self.protocol} needs exactly one {' and one '.join(wanted)}")
        return self

    def parameters(self) -> JobParameters:
        """The part that every party is told."""
        return JobParameters(**{name: getattr(self, name) for name in JobParameters.model_fields})


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
