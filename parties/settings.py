"""A party's own file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.label_mechanism_options import NAMES
from blindfit.parties.data.settings import DatasetSettings, IfExists
from blindfit.parties.tables import Settings
from blindfit.parties.wire.addresses import HOST, Address, is_host

PARTY_NAME = r"^[a-z][a-z0-9-]{0,62}$"
SESSION = r"^\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*$"  # a file's name too: neither a path nor dots alone
Role = Literal["active", "passive", "measurement", "key-node", "coordinator"]


class IdentitySettings(Settings):
    """Who this is to others: certificate and key."""

    certificate: Path  # of this party, PEM; its name is the party's
    key: Path  # of the certificate, PEM, for this user alone to read
    authority: Path  # whose certificates are believed, PEM
    # the authority's revocation list, PEM; default: crl.pem next to the certificate, as soon as it is there
    revoked: Path | None = None
    passphrase_file: Path | None = None  # has the passphrase of the key


class SecretsSettings(Settings):
    """What locks the keys and checkpoints that the party keeps."""

    passphrase_file: Path | None = None  # default: that of [identity]


class PeerSettings(Settings):
    """Whom this party knows."""

    role: Role  # what it may do here
    address: Address | None = None  # where it is; without it, where the job says


class PolicySettings(Settings):
    """What this party takes part in, and what it refuses."""

    # that it takes part in: "walr", "label-dp", "dp-lr", "taylor", "falcon", "predict", "evaluate"
    systems: list[str] = ["walr"]
    # of an aggregate; a sum over few rows is of few people: raise it where rows are rare
    min_rows: int = Field(100, ge=1)
    # of a job's align.min_common, by ids: whether fewer rows are common tells of single people
    min_common: int = Field(20, ge=1)
    min_linked: int = Field(100, ge=1)  # the same by linkage, where nobody learns which rows are common
    # whose scores of a row may be given; never more than (columns - 1) / 2; raise it to train again, on coarser scores
    models_per_row: int = Field(1, ge=1)
    min_epochs: int = Field(2, ge=1)  # of a training in shares: fewer are nearly a gradient
    max_epsilon: float = Field(1.0, gt=0)  # largest privacy.epsilon of one job; a larger one is refused
    max_delta: float = Field(1e-5, ge=0, lt=0.5)  # largest privacy.delta of one job; a larger one is refused
    unsafe: list[str] = []  # flags that a job may carry which nobody is asked about
    approve: Literal["auto", "ask"] = "auto"  # "ask": a job waits until the operator has said yes (blindfit approve)
    accept_seed: bool = False  # a job's choice of split and batches: for parties on one machine
    mechanisms: list[str] | None = Field(None, min_length=1)  # of label releases; default: all
    max_failed_uploads: int = Field(20, ge=1)  # of ids, without an answer: of each consumer in 24 hours
    max_failed_uploads_in_all: int = Field(1000, ge=1)  # of all consumers, ever

    @field_validator("mechanisms")
    @classmethod
    def _mechanisms_exist(cls, mechanisms: list[str] | None) -> list[str] | None:
        unknown = sorted(set(mechanisms or ()) - set(NAMES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(NAMES)}")
        return mechanisms

    @model_validator(mode="after")
    def _an_operator_sees_every_flag(self) -> PolicySettings:
        if self.unsafe and self.approve == "ask":
            raise ValueError(
                'unsafe does nothing with approve = "ask", which shows every flag to the operator: remove it'
            )
        return self

    def refusals(self, epsilon: float, delta: float, unsafe: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        """The field and the reason of what this policy does not allow. A flag that it does not list is let pass only
        where an operator sees it before he says yes.
        """
        if epsilon > self.max_epsilon:
            yield "privacy.epsilon", f"{epsilon:g} is more than its max_epsilon = {self.max_epsilon:g}"
        if delta > self.max_delta:
            yield "privacy.delta", f"{delta:g} is more than its max_delta = {self.max_delta:g}"
        if self.approve == "auto":
            for flag in unsafe:
                if flag not in self.unsafe:
                    yield "unsafe", f"its policy.unsafe does not list {flag}, and its operator is not asked"


SCHEDULER = re.compile(rf"(?P<scheme>tls|tcp)://(?P<host>{HOST}):(?P<port>[0-9]{{1,5}})")
COMPUTE_TLS = {"certificate", "key", "authority"}
COMPUTE_OPTIONS = {
    "serial": set[str](),
    "loky": {"workers", "task_timeout_s"},
    "dask": {"address", "task_timeout_s"} | COMPUTE_TLS,
}


class ComputeSettings(Settings):
    """Who does this party's work on vectors of ciphertexts: this process, this machine's cores, or a Dask cluster,
    which also reads the rows of a WALR training and builds a measurement server's label index."""

    # "serial": this process; "loky": this machine's cores; "dask": a cluster
    backend: Literal["serial", "loky", "dask"] = "loky"
    workers: int | None = Field(None, ge=1, le=4096)  # processes; default: as many as this machine has cores
    address: str | None = None  # of the Dask scheduler
    certificate: Path | None = None  # for the cluster, PEM
    key: Path | None = None  # of that certificate
    authority: Path | None = None  # of the cluster alone; not that of [identity], which peers have too
    task_timeout_s: float = Field(600.0, gt=0, le=7 * 86400)  # the longest wait for the next result

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> ComputeSettings:
        in_vain = self.model_fields_set - COMPUTE_OPTIONS[self.backend] - {"backend"}
        if in_vain:
            raise ValueError(f'{min(in_vain)} does nothing with backend = "{self.backend}", remove it')
        if self.workers == 1:
            raise ValueError('workers = 1 is only this process: set backend = "serial" and remove workers')
        return self

    @model_validator(mode="after")
    def _dask_is_whole(self) -> ComputeSettings:
        if self.backend != "dask":
            return self
        if self.address is None:
            raise ValueError('address is missing: backend = "dask" needs its scheduler, such as tls://scheduler:8786')
        scheme, host = _scheduler(self.address)
        given = {name for name in COMPUTE_TLS if getattr(self, name) is not None}
        if scheme == "tcp" and not _is_this_machine(host):
            raise ValueError("address: tcp:// is for a scheduler on this machine; to any other it is tls://")
        if scheme == "tcp" and given:
            raise ValueError(f"{min(given)} does nothing with a tcp:// address, remove it")
        if scheme == "tls" and given != COMPUTE_TLS:
            raise ValueError(f"{min(COMPUTE_TLS - given)} is missing: tls:// needs certificate, key and authority")
        return self


def _scheduler(address: str) -> tuple[str, str]:
    """tls://host:port -> scheme and host."""
    match = SCHEDULER.fullmatch(address)
    if match is None or not 0 < int(match["port"]) < 2**16 or not is_host(match["host"]):
        raise ValueError(f"address: {address!r} is not of the form tls://host:port")
    return match["scheme"], match["host"].strip("[]")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class FitSettings(Settings):
    """What a measurement server gives the fit of one label mechanism, in a process of its own."""

    time_limit_s: float = Field(300.0, gt=0, le=86400)  # after which the fit is stopped, and the job refused
    memory_limit_mib: int = Field(2048, ge=1, le=2**20)  # beside what the process has when it starts


class PopulationSettings(Settings):
    """One budget for all datasets about the same people."""

    epsilon: float = Field(gt=0, le=100)  # that all releases about these people together may spend
    delta: float = Field(gt=0, lt=0.5)  # at which that epsilon holds


class PartyDatasetSettings(DatasetSettings):
    # whose budget pays: a table of [populations]; datasets about the same people name the same one
    population: str | None = None
    # hours; None: when the operator says. Label bits, models of a row, linkages count from 0 each time, changed or not
    snapshot_every_h: float | None = Field(None, gt=0, le=24 * 366)
    row_is: str | None = Field(None, max_length=60)  # in words, for the privacy statement: "a person-year"
    # ids that the table does not have: "refuse" the request, or count them as label 0
    unknown_rows: Literal["refuse", "zero"] = "refuse"
    rows_are_public: bool = False  # who is in the table, and how many rows it has
    max_rows_per_person: int = Field(1, ge=1, le=2**16)  # that count, of a dataset with a person column
    active_parties: list[str] = []  # active parties that may ask
    passive_parties: list[
        str
    ] = []  # passive parties whose columns may be summed with a consumer's: each is told its weights
    label_range: tuple[float, float] | None = None  # public; labels outside are clipped
    scores_may_be_solved_for: bool = False  # its features, by whoever gets the scores: without count or rounding

    @property
    def may_take_unknown_rows_as_zero(self) -> bool:
        """Whether unknown_rows = "zero" goes with the other options."""
        return self.label_kind == "binary" and self.person is None

    @field_validator("label_range")
    @classmethod
    def _is_a_range(cls, label_range: tuple[float, float] | None) -> tuple[float, float] | None:
        if label_range is not None:
            from blindfit.algorithms.privacy.label_mechanisms import LabelGrid

            try:
                LabelGrid(*label_range)
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return label_range


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
SERVER_POLICY = {"max_failed_uploads", "max_failed_uploads_in_all"}
ALIGNMENT_POLICY = {"min_common", "min_linked"}
OPTIONS_OF_SOME_SYSTEMS = {"models_per_row", "min_epochs"} | ALIGNMENT_POLICY
CONSUMER_OPTIONS = {"features", "missing", "categories", "dates"}


class ScoresSettings(Settings):
    """Where the active party keeps the scores of new rows."""

    url: str | None = Field(None, min_length=1, repr=False)  # None: scores.csv beside the party's report
    if_exists: IfExists = "refuse"  # what happens to a file or table that is there

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> ScoresSettings:
        if self.url is None and "if_exists" in self.model_fields_set:
            raise ValueError("if_exists does nothing without url: scores.csv is replaced with its report, remove it")
        return self


def _can_be_listened_on(listen: str) -> str:
    """A UNIX socket is left to gRPC."""
    host, _, port = listen.rpartition(":")
    if listen.startswith("unix:") or (host and port.isascii() and port.isdecimal() and int(port) < 2**16):
        return listen
    raise ValueError(f"{listen!r} is not host:port with a port from 0 to 65535")


Listen = Annotated[str, AfterValidator(_can_be_listened_on)]


class PartySettings(Settings):
    """A party file."""

    name: str = Field(pattern=PARTY_NAME)  # as in its certificate
    role: Literal["active", "passive", "measurement", "key-node"]  # what this party does in jobs
    listen: Listen = "127.0.0.1:0"  # address and port; port 0: any that is free
    data_dir: Path = Path("state")  # its database, keys, snapshots, checkpoints; one party each
    output_dir: Path | None = None  # models and reports; default: data_dir/models
    log_level: Literal["debug", "info", "warning", "error"] = "info"  # how much it writes into its log
    log_format: Literal["text", "json"] = "text"  # "json" for programs that read it
    identity: IdentitySettings
    secrets: SecretsSettings = SecretsSettings()
    peers: dict[str, PeerSettings]
    policy: PolicySettings = PolicySettings()
    datasets: dict[str, PartyDatasetSettings] = {}
    populations: dict[str, PopulationSettings] = {}
    compute: ComputeSettings = ComputeSettings()
    scores: ScoresSettings = ScoresSettings()
    fit: FitSettings = FitSettings()

    @property
    def passphrase_file(self) -> Path | None:
        """Of what the party keeps secret on its disk; None: it stays plain."""
        return self.secrets.passphrase_file or self.identity.passphrase_file

    @field_validator("peers")
    @classmethod
    def _has_a_coordinator(cls, peers: dict[str, PeerSettings]) -> dict[str, PeerSettings]:
        if not any(peer.role == "coordinator" for peer in peers.values()):
            raise ValueError('names no peer with role = "coordinator": nobody could propose a job')
        return peers

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> PartySettings:
        """An option of another role would be read and do nothing."""
        is_server = self.role == "measurement"
        if self.role != "active" and "scores" in self.model_fields_set:
            raise ValueError("scores: the active party alone gets any, remove it")
        releases_labels = is_server and any(dataset.label_kind == "number" for dataset in self.datasets.values())
        for option in ("policy.mechanisms", "fit"):
            table, _, name = option.rpartition(".")
            is_set = name in (getattr(self, table) if table else self).model_fields_set
            if is_set and not releases_labels:
                raise ValueError(
                    f'{option} is for a measurement server\'s datasets of label_kind = "number", remove it'
                )
        if not is_server and (in_vain := self.policy.model_fields_set & SERVER_POLICY):
            raise ValueError(f"policy.{min(in_vain)}: ids are uploaded to a measurement server alone, remove it")
        if self.role not in ("active", "passive") and (in_vain := self.policy.model_fields_set & ALIGNMENT_POLICY):
            raise ValueError(f"policy.{min(in_vain)}: data parties alone have rows to align, remove it")
        if self.role != "passive" and "models_per_row" in self.policy.model_fields_set:
            raise ValueError("policy.models_per_row: scores tell of a passive party's rows alone, remove it")
        if self.populations and not any(dataset.population for dataset in self.datasets.values()):
            raise ValueError("populations: no dataset names one, so their budgets do nothing, remove them")
        for name, dataset in self.datasets.items():
            in_vain = dataset.model_fields_set & (CONSUMER_OPTIONS if is_server else SERVER_OPTIONS)
            if self.role != "passive":
                in_vain |= dataset.model_fields_set & {"scores_may_be_solved_for"}
            if self.role == "active" and dataset.label is not None:  # trained on under label DP
                in_vain -= {"population", "row_is", "label_range"}
            if self.role == "passive":  # trained on in shares, whole rows under differential privacy
                in_vain -= {"population", "row_is"}
            if is_server and dataset.person is None:
                in_vain |= dataset.model_fields_set & {"max_rows_per_person"}
            if dataset.person is not None:
                in_vain |= dataset.model_fields_set & {"row_is"}
            if in_vain:
                raise ValueError(f"datasets.{name}.{min(in_vain)}: does nothing here, remove it")
        return self

    def options_of_some_systems(self) -> frozenset[str]:
        """What this file says that a party of its role makes use of for some systems alone."""
        said = {"scores"} if "scores" in self.model_fields_set else set()
        if self.role != "measurement" and "min_rows" in self.policy.model_fields_set:
            said.add("policy.min_rows")
        if self.policy.unsafe:
            said.add("policy.unsafe")
        said |= {f"policy.{option}" for option in self.policy.model_fields_set & OPTIONS_OF_SOME_SYSTEMS}
        return frozenset(said)

    def in_vain_in_words(self, option: str) -> str:
        """Of `options_of_some_systems`."""
        if option == "policy.min_rows":
            return "policy.min_rows is an option of a measurement server"
        return f"{option if '.' in option else f'[{option}]'} does nothing"

    @model_validator(mode="after")
    def _the_cluster_is_not_for_peers(self) -> PartySettings:
        """Whoever has a certificate of the cluster's authority can run code on it."""
        if self.compute.authority == self.identity.authority:
            raise ValueError(
                "compute.authority is that of [identity], which other organisations have certificates of: "
                "the cluster needs an authority of its own"
            )
        return self

    @model_validator(mode="after")
    def _datasets_are_whole(self) -> PartySettings:
        for name, dataset in self.datasets.items():
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
                "randomised once and remembered, and an id that the table does not have has no label"
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
