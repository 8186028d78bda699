"""Parameters of a job: validated, public, the same for every party; the handshake compares them again.

Each system's own job adds its tables to these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import ConfigError
from blindfit.parties.job.tables import AlignSettings, PrivacySettings, SplitSettings, TimeoutSettings
from blindfit.parties.tables import Settings

if TYPE_CHECKING:
    from blindfit.algorithms.messages import ParameterValue
    from blindfit.algorithms.privacy.events import ReleaseEvent
    from blindfit.algorithms.randomness import PublicRandomness
    from blindfit.parties.settings import PolicySettings

PROPOSED = "the proposed job"
MOST_PARTS = 4  # parts of a parameter's name
_TRUST = {"two-servers": "split-labels", "encrypted-rows": "paillier", "shared-rows": "shares"}
JOB_DIGEST = DigestFormat(
    renamed={"align.min_common": "align.least_common"}, values={"walr.trust": _TRUST, "evaluate.trust": _TRUST}
)
"""Form of options in every digest of a job: question, approval, linkage, batch layout, fit, norm bound."""


class JobParameters(Settings):
    """Parameters of every job.

    Attributes:
        resume_option: option that names the session of the training that a job resumes; empty if it cannot resume.
        trust_option: option for the job's trust in its measurement servers; empty if the job has none.
        charges_all_data_parties: True if the release is about the rows of all data parties; otherwise only the party
            with the labels is charged.
    """

    protocol: str
    timeouts: TimeoutSettings = TimeoutSettings()

    resume_option: ClassVar[str] = ""
    trust_option: ClassVar[str] = ""
    charges_all_data_parties: ClassVar[bool] = False
    no_selection: ClassVar[str] = "this job trains nothing: remove [select]"
    """Reason why a job of this system has no [select], and advice."""

    @property
    def max_epochs(self) -> int:
        """Largest number of epochs of its training; 0 for a job without training."""
        return 0

    @property
    def epsilon(self) -> float:
        """Epsilon that the job charges to a budget; 0 without differential privacy."""
        return 0.0

    @property
    def delta(self) -> float:
        """Delta that goes with `epsilon`."""
        return 0.0

    @property
    def unsafe(self) -> tuple[str, ...]:
        """Flags of the defences that the job omits."""
        return ()

    def event_at_server(self, neighbours: str) -> ReleaseEvent | None:  # noqa: ARG002 - most jobs ask no server
        """Return the charge to the budget of a measurement server; None if the job uses no server.

        Args:
            neighbours: unit that the server's dataset protects.
        """
        return None

    def unsafe_at(self, role: str) -> tuple[str, ...]:  # noqa: ARG002 - in some systems it depends on the role
        """Return the flags in `unsafe` that a party of this role must allow."""
        return self.unsafe

    def refusals(self, policy: PolicySettings, role: str) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of each part of the job that the policy of a party of this role does not
        allow.
        """
        yield from policy.refusals(self.epsilon, self.delta, self.unsafe_at(role))

    # True if a model scores rows: then columns that the model does not need may hold anything.
    scores_rows: ClassVar[bool] = False

    def also_reads(self, role: str) -> tuple[str, ...]:  # noqa: ARG002 - most jobs name one dataset of each party
        """Return the datasets that a party of this role reads in addition to the one that the job names for it."""
        return ()

    @property
    def required_privacy(self) -> PrivacySettings:
        """The job's [privacy], for a release under differential privacy.

        Raises:
            ConfigError: the job is not such a release.
        """
        raise ConfigError("[privacy] is missing: this job releases nothing under differential privacy")

    def wrong_parties(self, roles: Sequence[str]) -> str:  # noqa: ARG002 - jobs of some systems use it
        """Return the error in the number of parties of each role; empty if it is right. A job may demand more than its
        system.
        """
        return ""

    @property
    def promise(self) -> str:
        """Description of the promise, for the operator who approves the job."""
        return "no differential privacy"

    @property
    def holds_against(self) -> str:
        """Parties against which the job's promises hold, and advice about others; "" if its pages state all of it."""
        return ""

    @property
    def resumes(self) -> str:
        """Session that the job resumes; empty if it begins."""
        return ""

    @property
    def takes_models_of(self) -> tuple[str, ...]:
        """Sessions whose models or scores the job uses, the newest first."""
        return ()

    @property
    def can_resume(self) -> bool:
        """True if a training that stops can be resumed from its last epoch."""
        return bool(self.resume_option)

    def is_aside(self, name: str) -> bool:
        """Return True if a parameter has no effect on the result: deadlines, and the session that the job resumes."""
        return name.startswith("timeouts.") or name == self.resume_option

    def to_parameters(self) -> dict[str, ParameterValue]:
        """Return only the parameters that the protocol uses: two jobs with the same meaning have the same
        parameters.
        """
        return dict(_flat("", self.to_tables()))

    def digest_fields(self, *, asides: bool = True) -> dict[str, ParameterValue]:
        """Return the options under the names of digests, so that a renamed or a new option changes no digest.

        Args:
            asides: True to include the options that have no effect on the result.
        """
        return in_digest({n: v for n, v in self.to_parameters().items() if asides or not self.is_aside(n)})

    def to_tables(self, **how: Any) -> dict[str, Any]:
        """Return the tables of a job file, with every default. `how` has arguments of pydantic's `model_dump`."""
        given = self.model_dump(exclude_none=True, **how)
        timeouts = given.pop("timeouts")  # last, as in every job file
        values = {name: value for name, value in given.items() if not isinstance(value, dict)}
        return {**values, **given, "timeouts": timeouts}


class PrivateParameters(JobParameters):
    """Parameters of a job that may be a release under differential privacy."""

    privacy: PrivacySettings | None = None

    @property
    def epsilon(self) -> float:
        return self.privacy.epsilon if self.privacy else 0.0

    @property
    def delta(self) -> float:
        return self.privacy.delta if self.privacy else 0.0

    @property
    def required_privacy(self) -> PrivacySettings:
        return self.privacy or super().required_privacy

    @property
    def promise(self) -> str:
        if self.privacy is None:
            return super().promise
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"


class TrainingParameters(PrivateParameters):
    """Parameters of a job that fits a model."""

    seed: int | None = Field(None, ge=0, lt=2**63)
    """Seed of the split and the batches, for parties on one machine. By default the parties draw both together. Set it
    to repeat a run."""
    split: SplitSettings = SplitSettings()

    @property
    def trial_randomness(self) -> PublicRandomness:
        """Randomness for forecasts: a split as good as the one that the parties will draw."""
        from blindfit.algorithms.randomness import PublicRandomness

        return PublicRandomness.from_seed(self.seed or 0)

    @property
    def test_fraction(self) -> float:
        return self.split.test_fraction


class AlignedParameters(JobParameters):
    """Parameters of a job whose parties first bring their rows into one order."""

    align: AlignSettings = AlignSettings()

    def refusals(self, policy: PolicySettings, role: str) -> Iterator[tuple[str, str]]:
        yield from super().refusals(policy, role)
        option, least = self.min_common_of(policy)
        asked = self.align.min_common
        if role != "key-node" and asked < least:
            reason = f"{asked} is less than its {option} = {least}: set align.min_common = {least}, or more"
            yield "align.min_common", reason

    def min_common_of(self, policy: PolicySettings) -> tuple[str, int]:
        """Return the option of a policy that limits `align.min_common`, and its value."""
        return "policy.min_common", policy.min_common


def in_digest(parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Return a job's parameters under the names and with the values of digests."""
    return JOB_DIGEST.fields(parameters)


def nest(parameters: Mapping[str, ParameterValue]) -> dict[str, Any]:
    """Return nested tables: {"walr.l2": 1.0} -> {"walr": {"l2": 1.0}}.

    Raises:
        ConfigError: a name is both a value and a table, or has too many parts.
    """
    tables: dict[str, Any] = {}
    for name, value in parameters.items():
        *path, last = name.split(".")
        if len(path) >= MOST_PARTS:
            raise ConfigError(f"{PROPOSED}: a name has more than {MOST_PARTS} parts")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{PROPOSED}: {name} is both a value and a table")
        table[last] = value
    return tables


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, ParameterValue]]:
    flat: list[tuple[str, ParameterValue]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            flat += _flat(f"{prefix}{name}.", value)
        elif isinstance(value, tuple):
            flat.append((prefix + name, tuple(map(str, value))))
        else:
            flat.append((prefix + name, value))
    return flat
