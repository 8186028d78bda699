"""What a job asks of its parties: validated, public, the same for everyone; compared again in the handshake.

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
MOST_PARTS = 4  # of a parameter's name
_TRUST = {"two-servers": "split-labels", "encrypted-rows": "paillier", "shared-rows": "shares"}
JOB_DIGEST = DigestFormat(
    renamed={"align.min_common": "align.least_common"}, values={"walr.trust": _TRUST, "evaluate.trust": _TRUST}
)
"""How options are written in every digest of a job: question, approval, linkage, batch layout, fit, norm bound."""


class JobParameters(Settings):
    """Of every job.

    Attributes:
        resume_option: where a job names the session of the training that it goes on from; empty where it cannot.
        trust_option: where a job says how far it trusts its measurement servers; empty where it does not.
        charges_all_data_parties: what it releases is of the rows of all; else it is charged where the labels are.
    """

    protocol: str
    timeouts: TimeoutSettings = TimeoutSettings()

    resume_option: ClassVar[str] = ""
    trust_option: ClassVar[str] = ""
    charges_all_data_parties: ClassVar[bool] = False
    no_selection: ClassVar[str] = "this job trains nothing: remove [select]"
    """Why a job of this system has no [select], and what to do."""

    @property
    def max_epochs(self) -> int:
        """That its training may have; 0: it has none."""
        return 0

    @property
    def epsilon(self) -> float:
        """What the job asks of a budget; 0 without differential privacy."""
        return 0.0

    @property
    def delta(self) -> float:
        """At which it asks for `epsilon`."""
        return 0.0

    @property
    def unsafe(self) -> tuple[str, ...]:
        """The defences that it does without."""
        return ()

    def event_at_server(self, neighbours: str) -> ReleaseEvent | None:  # noqa: ARG002 - most jobs ask no server
        """Return what the budget of a measurement server is charged; None where the job asks none.

        Args:
            neighbours: what the server's dataset protects.
        """
        return None

    def unsafe_at(self, role: str) -> tuple[str, ...]:  # noqa: ARG002 - a job of a system may concern one role alone
        """Those of `unsafe` that a party of this role must allow."""
        return self.unsafe

    def refusals(self, policy: PolicySettings, role: str) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what the policy of a party of this role does not allow of it."""
        yield from policy.refusals(self.epsilon, self.delta, self.unsafe_at(role))

    #: Whether rows are scored by a model: then the columns that the model does not need may hold anything.
    scores_rows: ClassVar[bool] = False

    def also_reads(self, role: str) -> tuple[str, ...]:  # noqa: ARG002 - most jobs name one dataset of each party
        """Return the datasets that a party of this role reads in addition to the one that the job names for it."""
        return ()

    @property
    def required_privacy(self) -> PrivacySettings:
        """Of a job that is a release under differential privacy.

        Raises:
            ConfigError: it is none.
        """
        raise ConfigError("[privacy] is missing: this job releases nothing under differential privacy")

    def wrong_parties(self, roles: Sequence[str]) -> str:  # noqa: ARG002 - a job of a system may have a say
        """What is wrong with how many parties have which role, where this job asks for less than its system allows;
        empty: nothing."""
        return ""

    @property
    def promise(self) -> str:
        """In words, for whoever approves it."""
        return "no differential privacy"

    @property
    def holds_against(self) -> str:
        """Return against whom the job's promises hold, and what to do about others; "" where its pages say all."""
        return ""

    @property
    def resumes(self) -> str:
        """The session that it goes on from; empty where it begins."""
        return ""

    @property
    def takes_models_of(self) -> tuple[str, ...]:
        """Return the sessions whose models or scores it takes, the newest first."""
        return ()

    @property
    def can_resume(self) -> bool:
        """Return whether its training, if it stops, goes on from its last epoch."""
        return bool(self.resume_option)

    def is_aside(self, name: str) -> bool:
        """Whether a parameter has no bearing on what comes out: deadlines, and what a job goes on from."""
        return name.startswith("timeouts.") or name == self.resume_option

    def to_parameters(self) -> dict[str, ParameterValue]:
        """Only what the protocol uses: two jobs that mean the same are the same."""
        return dict(_flat("", self.to_tables()))

    def digest_fields(self, *, asides: bool = True) -> dict[str, ParameterValue]:
        """Return the options as digests name them, so that a renamed or a new option changes no digest.

        Args:
            asides: whether to include the options that have no bearing on what comes out.
        """
        return in_digest({n: v for n, v in self.to_parameters().items() if asides or not self.is_aside(n)})

    def to_tables(self, **how: Any) -> dict[str, Any]:
        """As in a job file, with every default. `how`: as pydantic's `model_dump` takes it."""
        given = self.model_dump(exclude_none=True, **how)
        timeouts = given.pop("timeouts")  # last, as in every job file
        values = {name: value for name, value in given.items() if not isinstance(value, dict)}
        return {**values, **given, "timeouts": timeouts}


class PrivateParameters(JobParameters):
    """Of a job that may be a release under differential privacy."""

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
    """Of a job that fits a model."""

    seed: int | None = Field(None, ge=0, lt=2**63)
    """Seed of the split and the batches, for parties on one machine. By default the parties draw both together. Set it
    to repeat a run."""
    split: SplitSettings = SplitSettings()

    @property
    def trial_randomness(self) -> PublicRandomness:
        """For forecasts: a split as good as the one that the parties will draw."""
        from blindfit.algorithms.randomness import PublicRandomness

        return PublicRandomness.from_seed(self.seed or 0)

    @property
    def test_fraction(self) -> float:
        return self.split.test_fraction


class AlignedParameters(JobParameters):
    """Of a job whose parties bring their rows into one order first."""

    align: AlignSettings = AlignSettings()

    def refusals(self, policy: PolicySettings, role: str) -> Iterator[tuple[str, str]]:
        yield from super().refusals(policy, role)
        option, least = self.min_common_of(policy)
        asked = self.align.min_common
        if role != "key-node" and asked < least:
            reason = f"{asked} is less than its {option} = {least}: set align.min_common = {least}, or more"
            yield "align.min_common", reason

    def min_common_of(self, policy: PolicySettings) -> tuple[str, int]:
        """Return the option of a policy that `align.min_common` is held against, and its value."""
        return "policy.min_common", policy.min_common


def in_digest(parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Return a job's parameters under the names and with the values that digests have."""
    return JOB_DIGEST.fields(parameters)


def nest(parameters: Mapping[str, ParameterValue]) -> dict[str, Any]:
    """{"walr.l2": 1.0} -> {"walr": {"l2": 1.0}}

    Raises:
        ConfigError: a name is both a value and a table, or of too many parts.
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
