"""The job file: TOML, validated, every default visible through `blindfit show job.toml`."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import tomli_w
from pydantic import Field, field_validator, model_validator

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.file_kinds import refuse_party_file
from blindfit.coordinator.job.network import NetworkSettings
from blindfit.coordinator.job.stage import Stage
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.settings import PARTY_NAME, IdentitySettings, Role
from blindfit.parties.systems import job_class, system
from blindfit.parties.tables import Settings, mistakes, read_values, toml_of
from blindfit.parties.wire.addresses import Address

J = TypeVar("J", bound=JobParameters)


class JobParty(Settings):
    """A party of the job: its role, its dataset and its address."""

    role: Role
    """Role of the party in the job, the same as in its own file."""
    dataset: str = ""
    """Dataset that the party brings. A key node has none."""
    config: Path | None = None
    """Path of the party's own file, for `blindfit run` on this machine."""
    address: Address | None = None
    """Address at which the party is running, host:port, for `blindfit submit`."""


class JobFile(Settings):
    """The options of a job file in addition to its parameters."""

    name: str = Field("job", pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    """Beginning of the names of the job's sessions."""
    parties: dict[str, JobParty]
    coordinator: IdentitySettings | None = None  # proposes the job in `blindfit submit`; `run` makes its own
    network: NetworkSettings | None = None

    @field_validator("parties")
    @classmethod
    def _names_are_names(cls, parties: dict[str, JobParty]) -> dict[str, JobParty]:
        for name in parties:
            if not re.fullmatch(PARTY_NAME, name):
                raise ValueError(
                    f"{name!r} is not a party's name (lower-case letters, digits and -, as in its certificate)"
                )
        return parties

    @model_validator(mode="after")
    def _links_parties_of_the_job(self) -> Self:
        unknown = () if self.network is None else self.network.find_unknown(self.parties)
        if unknown:
            raise ValueError(f"network.pairs: the job has no party {unknown[0]}; it has {', '.join(self.parties)}")
        return self


class Job(Generic[J]):
    """A job: its parties, and what they compute together.

    Args:
        source: path of a job file, its tables as a mapping, or another job. Without one, `tables` has everything.
        folder: folder at which relative paths start; by default the file's own folder, or the working directory.
        called: name of the job in errors; by default the file's path, or "the job".
        tables: tables and values that replace those of `source`, one by one, such as `privacy={"epsilon": 2}`.

    Attributes:
        file: the parties, the coordinator and the network.
        parameters: all other tables, with defaults. The coordinator sends them to every party.
        folder: folder at which relative paths start.
        stage: state of a rehearsal; None for a real job.

    Raises:
        ConfigError: the job has mistakes; one line names all of them.

    Example:
        >>> job = blindfit.Job("job.toml", privacy={"epsilon": 0.5})
        >>> job, job.parameters.privacy.epsilon
        (<walr job test of shop, meter>, 0.5)
        >>> result = blindfit.run(job, progress=False)
    """

    file: JobFile
    parameters: J
    folder: Path
    stage: Stage | None = None

    def __init__(
        self,
        source: str | Path | Mapping[str, Any] | Job[J] | None = None,
        /,
        *,
        folder: str | Path | None = None,
        called: str = "",
        **tables: Any,
    ) -> None:
        where, values = Path(), {}
        if isinstance(source, Job):
            where, values = source.folder, source._explicit_tables()
        elif isinstance(source, Mapping):
            values = dict(source)
        elif source is not None:
            path = Path(source)
            where, values, called = path.parent, read_tables(path), called or str(path)
        self.folder = where if folder is None else Path(folder)
        self.file, self.parameters = _read(merge(values, tables), called or "the job")

    def __repr__(self) -> str:
        return f"<{self.protocol} job {self.name} of {', '.join(self.parties)}>"

    @property
    def name(self) -> str:
        """Beginning of the names of the job's sessions."""
        return self.file.name

    @property
    def parties(self) -> Mapping[str, JobParty]:
        """Parties of the job by name, each with `role`, `dataset`, `config` and `address`."""
        return self.file.parties

    @property
    def coordinator(self) -> IdentitySettings | None:
        """Certificate of the coordinator for `submit`; None if the job names none."""
        return self.file.coordinator

    @property
    def network(self) -> NetworkSettings | None:
        """Simulated network between the parties for `run`; None for this machine's own."""
        return self.file.network

    @property
    def protocol(self) -> str:
        """System that the job chooses, such as "walr", or "predict" or "evaluate"."""
        return self.parameters.protocol

    def with_role(self, role: str) -> list[str]:
        """Return the names of the parties with this role.

        Args:
            role: "active", "passive", "measurement" or "key-node".
        """
        return [name for name, party in self.parties.items() if party.role == role]

    def with_parameters(self, parameters: J) -> Job[J]:
        """Return the same job with other parameters.

        Args:
            parameters: the parameters; they are not checked.
        """
        changed = copy.copy(self)
        changed.parameters = parameters
        return changed

    def on_stage(self, stage: Stage) -> Job[J]:
        """Return the same job as a rehearsal.

        Args:
            stage: state of the rehearsal.
        """
        changed = copy.copy(self)
        changed.stage = stage
        return changed

    def to_dict(self) -> dict[str, Any]:
        """Return the tables of the job, as in its file, with every default."""
        return {**self.parameters.to_tables(mode="json"), **self.file.model_dump(mode="json", exclude_none=True)}

    def _explicit_tables(self) -> dict[str, Any]:
        """Return the tables that were given, without defaults."""
        asked = self.parameters.model_dump(exclude_unset=True)
        return {**asked, **self.file.model_dump(exclude_unset=True)}


def load_job(path: Path, overrides: Sequence[str] = ()) -> Job[Any]:
    """Return the job of a job file, with the options that a command line sets.

    Args:
        overrides: options of the command line, such as "privacy.epsilon=2".

    Raises:
        ConfigError: the job has mistakes; one line names the file and the fields.
    """
    return read_job(read_tables(path, overrides), str(path), path.parent)


def read_tables(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the tables of a job file, with the options that a command line sets; they are not checked.

    Raises:
        ConfigError: the file is a party's file, is not TOML, or does not exist.
    """
    refuse_party_file(path)
    return read_values(path, overrides)


def with_session(path: Path, overrides: Sequence[str], session: str | None) -> list[str]:
    """Return the override that names the training whose model a job takes.

    Raises:
        ConfigError: a job of this system takes no model.
    """
    if session is None:
        return []
    kind = job_class(read_values(path, overrides), str(path))
    tables = {name: field.annotation for name, field in kind.model_fields.items()}
    taking = [n for n, t in tables.items() if isinstance(t, type) and "session" in getattr(t, "model_fields", {})]
    if not taking:
        raise ConfigError(
            f"{path}: this kind of job takes no model from another session",
            hint="remove --session: only predict and evaluate jobs take it",
        )
    return [f"{taking[0]}.session={toml_of(session)}"]


def read_job(values: Mapping[str, Any], source: str = "the job", folder: Path = Path()) -> Job[Any]:
    """Return the job of these tables.

    Raises:
        ConfigError: the job has mistakes; one line begins with the name of the source and names all of them.
    """
    return Job(values, folder=folder, called=source)


def merge(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables, with the values of `more` in place of those of the same name."""
    both = dict(values)
    for name, value in more.items():
        old = both.get(name)
        both[name] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def _read(values: Mapping[str, Any], source: str) -> tuple[JobFile, Any]:
    about_file = {name: value for name, value in values.items() if name in JobFile.model_fields}
    asked = {name: value for name, value in values.items() if name not in about_file}
    chosen = job_class(asked, source)
    wrong = [*mistakes(asked, chosen, JobFile), *mistakes(about_file, JobFile)]
    if wrong:
        raise ConfigError(f"{source}: {'; '.join(wrong)}")
    file, parameters = JobFile.model_validate(about_file), chosen.model_validate(asked)
    _check_roles(file, parameters, source)
    return file, parameters


def _check_roles(file: JobFile, parameters: JobParameters, source: str) -> None:
    roles: list[str] = [party.role for party in file.parties.values()]
    if needs := system(parameters.protocol).wrong_roles(roles):
        raise ConfigError(f"{source}: parties: {parameters.protocol} needs {needs}")
    if reason := parameters.wrong_parties(roles):
        raise ConfigError(f"{source}: parties: {reason}")
    for name, party in file.parties.items():
        if (party.role == "key-node") == bool(party.dataset):
            raise ConfigError(f"{source}: parties.{name}.dataset: every party but a key node has one")


def to_toml(job: Job[Any]) -> str:
    """Return the whole job as TOML, with defaults. Comments name options without a value and explain tables."""
    unset = sorted([*_unset("", job.parameters), *_unset("", job.file)])
    comment = "".join(f"# {name} is not set\n" for name in unset)
    lines = tomli_w.dumps(job.to_dict()).split("\n")[:-1]
    said = [_with_a_word(_escape(line), job) for line in lines]
    return "\n".join(said) + "\n" + ("\n" + comment if comment else "")


def _escape(line: str) -> str:
    """Escape, as TOML does, the characters that TOML allows in a text and that would control a terminal."""
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in line)


def _with_a_word(line: str, job: Job[Any]) -> str:
    """Return a line of a job file; the head of a table gets a comment with its purpose."""
    name = line.strip("[]") if line.startswith("[") else ""
    table = {**dict(job.parameters), "coordinator": job.coordinator, "network": job.network}.get(name)
    if name.startswith("parties."):
        table = job.parties[name.removeprefix("parties.")]
    about = (type(table).__doc__ or "").split("\n")[0].removesuffix(".") if isinstance(table, Settings) else ""
    return f"{line}  # {about[:1].lower()}{about[1:]}" if about else line


def _unset(prefix: str, settings: Settings) -> list[str]:
    names: list[str] = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if value is None:
            names.append(prefix + name)
        elif isinstance(value, Settings):
            names += _unset(f"{prefix}{name}.", value)
    return names
