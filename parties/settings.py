"""The settings in a party's own file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from blindfit.algorithms.errors import TooFewRows
from blindfit.algorithms.fixed_point import MAX_ROWS
from blindfit.parties.compute import ComputeSettings
from blindfit.parties.data.settings import IfExists, PartyDatasetSettings
from blindfit.parties.store.excess import Excess
from blindfit.parties.tables import Settings, option_of
from blindfit.parties.wire.addresses import Address

PARTY_NAME = r"^[a-z][a-z0-9-]{0,62}$"
SESSION = r"^\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*$"  # also the name of a file: neither a path nor only dots
Role = Literal["active", "passive", "measurement", "key-node", "coordinator"]


class IdentitySettings(Settings):
    """Identity of the party for others: certificate and key."""

    certificate: Path
    """Certificate of this party or coordinator, a PEM file. The name in it is the party's name."""
    key: Path
    """Private key of the certificate, a PEM file. Only the user who runs the process may be able to read it."""
    authority: Path
    """Certificate of the authority, a PEM file. Peers must show certificates that this authority signed."""
    revoked: Path | None = None
    """Revocation list of the authority, a PEM file. By default crl.pem next to the certificate, as soon as that file
    exists."""
    passphrase_file: Path | None = None
    """File with the passphrase of the key. Set it if the key is encrypted."""


class SecretsSettings(Settings):
    """Lock of the keys and checkpoints that the party keeps."""

    passphrase_file: Path | None = None
    """File with the passphrase that locks the keys and checkpoints of this party. By default
    `identity.passphrase_file`; with neither file they are not locked."""


class PeerSettings(Settings):
    """A party that this party knows."""

    role: Role
    """Role in which this party accepts the peer."""
    address: Address | None = None
    """Address of the peer, host:port. By default the address that the job gives."""


class SystemPolicy(Settings):
    """A table of [policy] that concerns the jobs of one system; `System.policy` names its class."""

    def in_vain_at(self, party: PartySettings) -> str:  # noqa: ARG002 - most tables fit any party of the right role
        """Return why this table does nothing at a party with these settings; "" if it does something."""
        return ""


P = TypeVar("P", bound=SystemPolicy)


class PolicySettings(Settings):
    """Jobs that this party accepts, and jobs that it refuses. A party file's class also has a table for each system."""

    systems: list[str] = ["walr"]
    """Systems in which this party takes part: walr, label-dp, dp-lr, taylor, falcon, predict, evaluate. The party
    refuses a job of any other system."""
    min_rows: int = Field(100, ge=1, le=MAX_ROWS)
    """Smallest number of rows in an aggregate, a label release or a dp-lr training. Raise it for sensitive data: a
    result over few rows reveals more about each person."""
    min_common: int = Field(20, ge=1, le=MAX_ROWS)
    """Smallest `align.min_common` that this party accepts of a job that aligns rows by ids. A low value lets a
    partner test if one person is in your data."""
    account_shares: dict[str, Annotated[float, Field(gt=0, le=1)]] = {}
    """Share of the limits of labels, columns and uploads that each peer may use, such as { shop = 0.5 }. By default the
    first peer that asks may use all of them; a peer without a share gets what one job reveals.
    """
    account_period_days: float | None = Field(None, ge=1)
    """Days after which an entry of the disclosure account no longer counts. By default an entry counts for ever. Set it
    only if what was revealed about people is worth little after that time."""
    max_epsilon: float = Field(1.0, gt=0)
    """Largest `privacy.epsilon` of one job. A larger value accepts jobs that reveal more."""
    max_delta: float = Field(1e-5, ge=0, lt=0.5)
    """Largest `privacy.delta` of one job. Keep it well below 1 / the number of people; 0 accepts only pure differential
    privacy."""
    unsafe: list[str] = []
    """Flags of jobs that this party accepts without a question. Each of them switches off a defence: list only flags
    whose consequences you accept."""
    approve: Literal["auto", "ask"] = "auto"
    """Start of a job that the policy accepts: "auto" starts it at once, "ask" waits until the operator approves it with
    `blindfit approve`."""
    accept_seed: bool = False
    """Permission for jobs that set `seed`, which fixes the split and the batches. Set it only if one person runs all
    parties."""
    max_failed_uploads: int = Field(20, ge=1, le=2**31)
    """Largest number of uploads of ids that end without an answer, for each active party in 24 hours. A larger
    number lets a party learn more about who is in the table: raise it only if honest requests often fail."""
    max_kept_mib: int = Field(4096, ge=1, le=2**30)
    """Largest space in MiB that answers to one active party may take on this server's disk. A label release is kept for
    ever and takes 24 bytes for each row of the dataset. Raise it if an active party needs more releases and the disk
    has space.
    """

    def of(self, kind: type[P]) -> P:
        """Return the table of one system; its defaults if the party file does not have the table."""
        return next((table for table in self.tables().values() if isinstance(table, kind)), kind())

    def tables(self) -> dict[str, SystemPolicy]:
        """Return the tables of systems, by their names in a party file."""
        fields = {option_of(type(self), field): getattr(self, field) for field in type(self).model_fields}
        return {name: value for name, value in fields.items() if isinstance(value, SystemPolicy)}

    def options_set(self) -> frozenset[str]:
        """Return the paths of the options that a party file sets, with those of systems' tables."""
        tables = self.tables()
        own = {option_of(type(self), field) for field in self.model_fields_set}
        inner = {f"{name}.{option}" for name, table in tables.items() for option in table.model_fields_set}
        return frozenset(f"policy.{option}" for option in inner | (own - set(tables)))

    def check_rows(self, n_rows: int) -> None:
        """Raise TooFewRows if there are fewer rows than `min_rows`."""
        if n_rows < self.min_rows:
            raise TooFewRows(rows=n_rows, least=self.min_rows)

    @model_validator(mode="after")
    def _an_operator_sees_every_flag(self) -> PolicySettings:
        if self.unsafe and self.approve == "ask":
            raise ValueError(
                'unsafe does nothing with approve = "ask", which shows every flag to the operator: remove it'
            )
        return self

    def refusals(self, epsilon: float, delta: float, unsafe: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of everything that this policy does not allow.

        A flag that the policy does not list passes only if an operator sees it before the approval.
        """
        if epsilon > self.max_epsilon:
            yield "privacy.epsilon", f"{epsilon:g} is more than its max_epsilon = {self.max_epsilon:g}"
        if delta > self.max_delta:
            yield "privacy.delta", f"{delta:g} is more than its max_delta = {self.max_delta:g}"
        if self.approve == "auto":
            for flag in unsafe:
                if flag not in self.unsafe:
                    yield "unsafe", f"its policy.unsafe does not list {flag}, and its operator is not asked"


class FitSettings(Settings):
    """Limits of a measurement server for the fit of one label mechanism, in a process of its own."""

    time_limit_s: float = Field(300.0, gt=0, le=86400)
    """Longest time for the fit of one label mechanism, in seconds. A fit that takes longer is stopped and its job is
    refused: raise it if that happens to jobs that you want."""
    memory_limit_mib: int = Field(2048, ge=1, le=2**20)
    """Memory for the fit of one label mechanism, in MiB, in addition to what the process has at its start. Raise it if
    a fit runs out of memory."""


class PopulationSettings(Settings):
    """One budget for all datasets about the same people."""

    epsilon: float = Field(gt=0, le=100)
    """Budget of these people: the largest epsilon that all releases about them may spend together. A larger budget
    allows more releases and protects each person less."""
    delta: float = Field(gt=0, lt=0.5)
    """Delta at which that epsilon holds. Keep it well below 1 / the number of people."""


# Options that each role uses in each system; `System.options` names the other options of [policy].
ACCOUNT_OPTIONS = frozenset({"policy.account_shares", "policy.account_period_days"})
POLICY_OF_ALL = ACCOUNT_OPTIONS | frozenset(
    f"policy.{option}" for option in ("systems", "max_epsilon", "max_delta", "approve", "accept_seed")
)
SERVER_OPTIONS = {
    "population",
    "unknown_rows",
    "rows_are_public",
    "max_rows_per_person",
    "active_parties",
    "passive_parties",
    "row_is",
    "label_range",
}
SEVERAL_PARTIES = {"walr", "taylor", "falcon", "predict"}  # systems in which several parties may have columns
CONSUMER_OPTIONS = {"features", "missing", "categories", "reference_levels", "dates", "derive"}


class ScoresSettings(Settings):
    """Place for the scores of new rows at the active party."""

    url: str | None = Field(None, min_length=1, repr=False)
    """Destination of the scores of new rows, a file or a database table. By default scores.csv next to the party's
    report."""
    if_exists: IfExists = "refuse"
    """Treatment of a file or table that exists: "refuse" ends the job before it begins, "append" adds rows, "replace"
    deletes the old rows."""

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> ScoresSettings:
        if self.url is None and "if_exists" in self.model_fields_set:
            raise ValueError("if_exists does nothing without url: scores.csv is replaced with its report, remove it")
        return self


def _can_be_listened_on(listen: str) -> str:
    """Return an address that can be listened on. A UNIX socket is left to gRPC."""
    host, _, port = listen.rpartition(":")
    if listen.startswith("unix:") or (host and port.isascii() and port.isdecimal() and int(port) < 2**16):
        return listen
    raise ValueError(f"{listen!r} is not host:port with a port from 0 to 65535")


Listen = Annotated[str, AfterValidator(_can_be_listened_on)]


class PartySettings(Settings):
    """A party file."""

    name: str = Field(pattern=PARTY_NAME)
    """Name of this party, as in its certificate: lower-case letters, digits and -."""
    role: Literal["active", "passive", "measurement", "key-node"]
    """Role of this party in jobs."""
    listen: Listen = "127.0.0.1:0"
    """Address and port on which this party listens, host:port. Port 0 takes any free port."""
    data_dir: Path = Path("state")
    """Folder of this party's database, keys, snapshots and checkpoints. Each party needs its own folder."""
    output_dir: Path | None = None
    """Folder of models and reports. By default `models` in `data_dir`."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of the messages in the log."""
    log_format: Literal["text", "json"] = "text"
    """Format of the log: "text" for people, "json" for programs."""
    identity: IdentitySettings
    secrets: SecretsSettings = SecretsSettings()
    peers: dict[str, PeerSettings]
    policy: PolicySettings = PolicySettings()
    datasets: dict[str, PartyDatasetSettings] = {}
    populations: dict[str, PopulationSettings] = {}
    compute: ComputeSettings = ComputeSettings()
    scores: ScoresSettings = ScoresSettings()
    fit: FitSettings = FitSettings()

    # Not an option: only the command that starts a party makes it rehearse.
    _excess: Excess | None = PrivateAttr(None)

    def in_rehearsal(self, excess: Excess) -> Self:
        """Return the settings of a party that rehearses: its scores go next to its report, and nowhere else."""
        changed = self.model_copy(update={"scores": ScoresSettings()})
        changed._excess = excess
        return changed

    @property
    def rehearses(self) -> bool:
        return self._excess is not None

    @property
    def excess(self) -> Excess:
        """Treatment of a job that exceeds a limit of a budget or an account."""
        return self._excess or Excess()

    @property
    def releases_labels(self) -> bool:
        """True if this measurement server has labels that it releases row by row."""
        return self.role == "measurement" and any(d.label_kind == "number" for d in self.datasets.values())

    @property
    def passphrase_file(self) -> Path | None:
        """File with the passphrase of the party's secrets on its disk; None leaves them plain."""
        return self.secrets.passphrase_file or self.identity.passphrase_file

    @field_validator("peers")
    @classmethod
    def _has_a_coordinator(cls, peers: dict[str, PeerSettings]) -> dict[str, PeerSettings]:
        if not any(peer.role == "coordinator" for peer in peers.values()):
            raise ValueError('names no peer with role = "coordinator": nobody could propose a job')
        return peers

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> PartySettings:
        """Refuse an option of another role, which would be read and do nothing."""
        is_server = self.role == "measurement"
        if "fit" in self.model_fields_set and not self.releases_labels:
            raise ValueError('[fit] is for a measurement server\'s datasets of label_kind = "number", remove it')
        for name, table in self.policy.tables().items():
            if table.model_fields_set and (why := table.in_vain_at(self)):
                raise ValueError(f"[policy.{name}] {why}, remove it")
        if self.populations and not any(dataset.population for dataset in self.datasets.values()):
            raise ValueError("populations: no dataset names one, so their budgets do nothing, remove them")
        for name, dataset in self.datasets.items():
            in_vain = dataset.model_fields_set & (CONSUMER_OPTIONS if is_server else SERVER_OPTIONS)
            joins_others = self.role == "active" and not SEVERAL_PARTIES.isdisjoint(self.policy.systems)
            if self.role != "passive" and not joins_others:
                in_vain |= dataset.model_fields_set & {"models_per_row"}
            if self.role != "active":
                in_vain |= dataset.model_fields_set & {"public"}
            if self.role != "active" or dataset.label is None:  # only there trainings on its labels are counted
                in_vain |= dataset.model_fields_set & {"label_rate"}
            if self.role == "active" and dataset.label is not None:  # label DP uses these
                in_vain -= {"population", "row_is", "label_range"}
            if self.role == "passive":  # training in shares with differential privacy of whole rows uses these
                in_vain -= {"population", "row_is"}
            if is_server and dataset.person is None:
                in_vain |= dataset.model_fields_set & {"max_rows_per_person"}
            if dataset.person is not None:
                in_vain |= dataset.model_fields_set & {"row_is"}
            if in_vain:
                raise ValueError(f"datasets.{name}.{min(in_vain)}: does nothing here, remove it")
        return self

    def options_of_some_systems(self) -> frozenset[str]:
        """Return the options in this file that only some roles of some systems use."""
        scores = {"[scores]"} if "scores" in self.model_fields_set else set[str]()
        flags = set[str]() if self.policy.unsafe else {"policy.unsafe"}
        return (self.policy.options_set() | scores) - POLICY_OF_ALL - flags

    @model_validator(mode="after")
    def _an_account_is_of_people_and_peers(self) -> PartySettings:
        in_vain = ACCOUNT_OPTIONS & self.policy.options_set()
        if in_vain and not self.datasets:
            raise ValueError(f"{min(in_vain)} does nothing without [datasets], remove it")
        strangers = [name for name in self.policy.account_shares if name not in self.peers]
        if strangers:
            raise ValueError(
                f"policy.account_shares: {strangers[0]} is not one of [peers] ({', '.join(self.peers)}): name one of "
                "these"
            )
        return self

    @model_validator(mode="after")
    def _the_cluster_is_not_for_peers(self) -> PartySettings:
        """Refuse the peers' authority for the cluster: anyone with a certificate of the cluster's authority can run
        code on it.
        """
        if self.compute.authority == self.identity.authority:
            raise ValueError(
                "compute.authority is that of [identity], of which other organisations have certificates: "
                "the cluster needs an authority of its own"
            )
        return self

    @model_validator(mode="after")
    def _datasets_are_whole(self) -> PartySettings:
        for name, dataset in self.datasets.items():
            if dataset.public and dataset.population is not None:
                raise ValueError(
                    f"datasets.{name}: public = true cannot go with a population, remove one of them: a population's "
                    "budget protects rows that are not public"
                )
            if dataset.label_kind != "number" and dataset.label_range is not None:
                raise ValueError(f"datasets.{name}.label_range: does nothing with binary labels, remove it")
            if dataset.label_kind == "share" and self.role != "measurement":
                raise ValueError(
                    f'datasets.{name}.label_kind = "share" is only for measurement servers, remove it and '
                    f"datasets.{name}.split"
                )
            if self.role == "measurement":
                self._check_label_dataset(name, dataset)
            elif dataset.population is not None:
                self._check_population(name, dataset)
        self._check_units()
        return self

    def _check_label_dataset(self, name: str, dataset: PartyDatasetSettings) -> None:
        if dataset.label is None:
            raise ValueError(f"datasets.{name}.label: a measurement server's dataset needs a label column")
        self._check_label_kind(name, dataset)
        self._check_population(name, dataset)
        if dataset.person and dataset.unknown_rows == "zero":
            raise ValueError(
                f'datasets.{name}.unknown_rows = "zero" cannot go with a person column, remove one of them: rows that '
                "the table does not have belong to no person, so which rows of a person are kept could depend on labels"
            )
        strangers = [c for c in dataset.active_parties if self.peers.get(c) is None or self.peers[c].role != "active"]
        if not dataset.active_parties:
            raise ValueError(f"datasets.{name}.active_parties is empty: name the active parties that may ask")
        if strangers:
            raise ValueError(
                f"datasets.{name}.active_parties: {strangers[0]} is not an active party of [peers]: correct it, or add "
                f'[peers.{strangers[0]}] with role = "active"'
            )
        others = [h for h in dataset.passive_parties if self.peers.get(h) is None or self.peers[h].role != "passive"]
        if others:
            raise ValueError(
                f"datasets.{name}.passive_parties: {others[0]} is not a passive party of [peers]: correct it, or add "
                f'[peers.{others[0]}] with role = "passive"'
            )
        if dataset.passive_parties and dataset.label_kind != "binary":
            raise ValueError(f"datasets.{name}.passive_parties: does nothing without binary labels, remove it")

    def _check_label_kind(self, name: str, dataset: PartyDatasetSettings) -> None:
        is_number = dataset.label_kind == "number"
        if is_number and dataset.label_range is None:
            raise ValueError(
                f"datasets.{name}.label_range is missing: labels that are numbers are released with noise as wide as "
                "their public range, such as [0.0, 100.0]; an aggregate needs binary labels"
            )
        if is_number and dataset.unknown_rows == "zero":
            raise ValueError(
                f'datasets.{name}.unknown_rows = "zero" cannot go with label_kind = "number", remove it: a label is '
                "randomised once and stored, and an id that the table does not have has no label"
            )

    def _check_population(self, name: str, dataset: PartyDatasetSettings) -> None:
        if dataset.population not in self.populations:
            raise ValueError(
                f"datasets.{name}.population: {dataset.population!r} is not one of [populations] "
                f"({', '.join(self.populations) or 'none'}); a population has the budget"
            )

    def _check_units(self) -> None:
        units: dict[str, set[str]] = {}
        for dataset in (d for d in self.datasets.values() if d.population is not None):
            units.setdefault(str(dataset.population), set()).add("person" if dataset.person else "row")
        for population, kinds in units.items():
            if len(kinds) > 1:
                raise ValueError(
                    f"populations.{population}: some of its datasets have a person column and some do not; "
                    "one budget cannot count persons and rows"
                )
