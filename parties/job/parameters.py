"""What a job asks of its parties: validated, public, the same for everyone; compared again in the handshake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from blindfit.algorithms import fixed_point
from blindfit.algorithms.alignment.clk import DEFAULT_HASHES, Encoding
from blindfit.algorithms.alignment.clk import Field as LinkageField
from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.engines import EngineName
from blindfit.algorithms.privacy.label_mechanisms.base import check_label_epsilon
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.statistics.solvers import SolverName, SolverSettings
from blindfit.algorithms.statistics.taylor import OptimiserSettings
from blindfit.parties.dp_lr.settings import DPLRSettings
from blindfit.parties.label_dp.settings import LabelDPSettings
from blindfit.parties.settings import SESSION, Settings, validate

DEFAULT_NORM_QUANTILE = 0.99


class PrivacySettings(Settings):
    epsilon: float = Field(gt=0, le=50)
    delta: float = Field(1e-5, gt=0, lt=0.5)
    mechanism: Literal["analytic", "classic"] = "analytic"
    max_rows_per_person: int | None = Field(None, ge=1, le=2**16)  # None: what the dataset declares
    release: str = Field("", max_length=64)  # another name asks for another draw, charged again

    @model_validator(mode="after")
    def _classic_is_proved_below_1(self) -> PrivacySettings:
        if self.mechanism == "classic" and self.epsilon >= 1:
            raise ValueError('mechanism = "classic" is proved for epsilon < 1 alone: take "analytic"')
        return self


class SplitSettings(Settings):
    test_fraction: float = Field(0.2, ge=0, lt=1)  # rows that are not sent and not trained on


class WalrSettings(Settings):
    intercept: bool = True
    constant_columns: Literal["error", "drop"] = "error"
    norm_bound: float | Literal["auto"] = "auto"  # of a standardised row, the constant included
    norm_quantile: float = Field(DEFAULT_NORM_QUANTILE, gt=0, le=1)  # what "auto" takes of the row norms
    frac_bits: int = Field(16, ge=fixed_point.MIN_FRAC_BITS, le=fixed_point.MAX_FRAC_BITS)
    l2: float | Literal["auto"] = "auto"  # "auto": from the noise
    mu: Literal["clip", "as-released", "project"] = "clip"
    init: str | None = Field(None, min_length=1, max_length=256)  # pretrained.json of the active party
    solver: SolverName = "auto"
    tolerance: float | None = None
    max_iterations: int | None = None
    warm_start_rows: int | None = None
    memory: int | None = None
    rate: float | None = None
    decay: float | None = None
    batch_rows: int | None = None
    averaging: bool | None = None
    centred: bool | None = None

    def solver_settings(self, l2: float) -> SolverSettings:
        return SolverSettings(
            l2=l2,
            solver=self.solver,
            unpenalised=-1 if self.intercept else None,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            warm_start_rows=self.warm_start_rows,
            memory=self.memory,
            rate=self.rate,
            decay=self.decay,
            batch_rows=self.batch_rows,
            averaging=self.averaging,
            centred=self.centred,
        )

    @model_validator(mode="after")
    def _numbers_fit(self) -> WalrSettings:
        for name in ("norm_bound", "l2"):
            value = getattr(self, name)
            if value != "auto" and not 0 <= value < float("inf"):
                raise ValueError(f'{name} must be "auto" or a number that is not negative')
        if self.norm_bound == 0:
            raise ValueError("norm_bound must be above 0")
        if self.norm_bound != "auto" and self.norm_quantile != DEFAULT_NORM_QUANTILE:
            raise ValueError('norm_quantile does nothing beside a norm_bound of your own: take norm_bound = "auto"')
        if self.init is not None and self.l2 == 0:
            raise ValueError("init does nothing with l2 = 0, remove one: l2 shrinks towards the pre-trained weights")
        try:
            self.solver_settings(0.0)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


DEFAULT_HOLD_OUT = 0.15


def _field(text: str) -> LinkageField:
    name, _, rest = text.partition(":")
    kind, _, hashes = rest.partition(":")
    if hashes and not hashes.isdigit():
        raise ConfigError(f"align.fields: {text!r} is not of the form name:kind:hashes")
    return LinkageField(name, kind or "text", int(hashes or DEFAULT_HASHES))  # type: ignore[arg-type]


class AlignSettings(Settings):
    method: Literal["psi", "linkage"] = "psi"
    least_common: int = Field(100, ge=1)  # fewer common rows end the job
    # Of linkage:
    fields: tuple[str, ...] = ()  # "last_name", "birth_date:date", "postcode:text:20" (name, kind, hashes)
    threshold: float = Field(0.8, ge=0.5, le=1)  # the least similarity of a match
    fold: bool = True  # filters of half the size, harder to attack
    match_rate: float = Field(0.5, gt=0, le=1)  # what share of the slots match, at least: for the leverage rule

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> AlignSettings:
        defaults = AlignSettings.model_fields
        for name in ("fields", "threshold", "fold", "match_rate"):
            if self.method == "psi" and getattr(self, name) != defaults[name].default:
                raise ValueError(f'{name} does nothing with method = "psi", remove it')
        if self.method == "linkage":
            if not self.fields:
                raise ValueError('fields is missing: linkage compares some, such as ["last_name", "birth_date:date"]')
            try:
                self.encoding()
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return self

    def encoding(self) -> Encoding:
        """How records become filters.

        Raises:
            ConfigError: a field is not name, kind and hashes.
        """
        return Encoding(tuple(map(_field, self.fields)), fold=self.fold)


# Each of these opens an attack that the defaults close; docs/gradients.md says which.
UnsafeFlag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out"]


class TaylorSettings(Settings):
    model: Literal["logistic", "linear"] = "logistic"
    intercept: bool = True
    constant_columns: Literal["error", "drop"] = "error"
    epochs: int = Field(20, ge=1, le=10_000)
    batch_rows: int = Field(128, ge=2, le=2**20)
    learning_rate: float = Field(0.15, gt=0)
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    decay: float = Field(0.1, ge=0)
    optimiser: Literal["sgd", "momentum", "sag"] = "sgd"
    momentum: float = Field(0.9, ge=0, lt=1)
    l2: float = Field(0.01, ge=0)
    l1: float = Field(0.0, ge=0)
    class_weights: Literal["none", "balanced"] = "none"
    validation_fraction: float | None = Field(None, ge=0, lt=1)  # of the hold-out loss; None: .15, or 0 with label DP
    patience: int = Field(3, ge=0)  # epochs without a better hold-out loss; 0: every epoch runs
    tolerance: float = Field(1e-4, ge=0)
    threshold: float = Field(0.5, gt=0, lt=1)  # of the confusion matrix
    key_bits: Literal[2048, 3072] = 2048
    jitter: float = Field(0.25, ge=0, le=2)  # standard deviation of what is added to each label's term, once
    gradient_noise: float = Field(1.0, ge=0)  # standard deviation of the key node's noise, in units of the features
    norm_bound: float | Literal["auto"] = "auto"  # of a row of all parties, with label DP
    leverage: Literal["shrink", "refuse"] = "shrink"  # rows that stand out in their batch
    resume: str = Field("", pattern=f"^$|{SESSION}", max_length=64)  # the session of a training that stopped
    unsafe: list[UnsafeFlag] = []  # what the pre-flight would refuse and you want all the same

    def optimiser_settings(self) -> OptimiserSettings:
        return OptimiserSettings(
            self.learning_rate, self.schedule, self.decay, self.optimiser, self.momentum, self.l2, self.l1
        )

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> TaylorSettings:
        default = TaylorSettings.model_fields
        vain = {
            "decay": self.schedule == "constant",
            "momentum": self.optimiser != "momentum",
            "class_weights": self.model == "linear",
            "threshold": self.model == "linear",
            "patience": self.validation_fraction == 0,
            "tolerance": self.validation_fraction == 0 or self.patience == 0,
        }
        for name, in_vain in vain.items():
            if in_vain and getattr(self, name) != default[name].default:
                raise ValueError(f"{name} does nothing beside the other options, remove it")
        return self


class PaillierSettings(Settings):
    engine: EngineName = "blindfit"  # "phe": python-paillier does all arithmetic, a slow reference to check against


class PredictSettings(Settings):
    session: str = Field("", pattern=f"^$|{SESSION}", max_length=64)  # the training whose model scores new rows


class TimeoutSettings(Settings):
    step_s: float = Field(120.0, gt=0, le=86400)  # the longest a peer may take for one step
    reconnect_s: float = Field(30.0, gt=0, le=86400)  # the longest a cut may last
    session_s: float = Field(3600.0, gt=0, le=30 * 86400)  # the longest a party may prepare or compute
    approval_s: float = Field(3600.0, gt=0, le=30 * 86400)  # the longest an operator may take to approve


TRAINING = {"seed", "split", "privacy"}
SECTIONS = {
    "walr": {*TRAINING, "walr"},
    "label-dp": {*TRAINING, "label_dp"},
    "dp-lr": {*TRAINING, "dp_lr"},
    "taylor": {*TRAINING, "align", "taylor", "paillier"},
    "predict": {"align", "predict"},
}
COMMON = {"protocol", "timeouts"}


class JobParameters(Settings):
    protocol: Literal["walr", "label-dp", "dp-lr", "taylor", "predict"]
    seed: int = Field(0, ge=0, lt=2**63)  # public randomness alone: the split, the batches
    privacy: PrivacySettings | None = None
    split: SplitSettings = SplitSettings()
    align: AlignSettings = AlignSettings()
    walr: WalrSettings = WalrSettings()
    label_dp: LabelDPSettings = LabelDPSettings()
    dp_lr: DPLRSettings = DPLRSettings()
    taylor: TaylorSettings = TaylorSettings()
    paillier: PaillierSettings = PaillierSettings()
    predict: PredictSettings = PredictSettings()
    timeouts: TimeoutSettings = TimeoutSettings()

    @property
    def epsilon(self) -> float:
        """What the job asks of a budget; 0 without differential privacy."""
        if self.protocol == "dp-lr":
            return self.run_privacy.spent()
        return self.privacy.epsilon if self.privacy else 0.0

    @property
    def run_privacy(self) -> RunPrivacy:
        """Of all iterations of a dp-lr job."""
        return self.dp_lr.run_privacy(self.required_privacy.epsilon, self.required_privacy.delta)

    @property
    def test_fraction(self) -> float:
        """Rows to evaluate on. After linkage nobody knows which rows match, so no row can be evaluated."""
        return 0.0 if self.align.method == "linkage" else self.split.test_fraction

    @property
    def hold_out_fraction(self) -> float:
        """Rows of the hold-out loss. With label DP there is none: whether to stop would depend on labels."""
        given = self.taylor.validation_fraction
        return given if given is not None else 0.0 if self.privacy else DEFAULT_HOLD_OUT

    @property
    def required_privacy(self) -> PrivacySettings:
        """Of a job that is a release under differential privacy.

        Raises:
            ConfigError: it is none.
        """
        if self.privacy is None:
            raise ConfigError("[privacy] is missing: this job releases nothing under differential privacy")
        return self.privacy

    @model_validator(mode="after")
    def _sections_go_with_the_protocol(self) -> JobParameters:
        for name, field in JobParameters.model_fields.items():
            used = name in COMMON | SECTIONS[self.protocol]
            if not used and getattr(self, name) != field.get_default(call_default_factory=True):
                option = name if name == "seed" else f"[{name}]"
                raise ValueError(f"{option} does nothing in a {self.protocol} job, remove it")
        if self.protocol == "walr" and self.privacy is None:
            raise ValueError("privacy.epsilon is missing: WALR is a release under differential privacy")
        if self.protocol == "label-dp":
            self._check_release_of_labels()
        if self.protocol == "dp-lr":
            self._check_dp_lr()
        if self.protocol == "taylor":
            self._check_label_dp()
        if self.protocol == "predict":
            self._check_predict()
        return self

    def _check_release_of_labels(self) -> None:
        privacy, label_dp = self.privacy, self.label_dp
        if privacy is None:
            raise ValueError("privacy.epsilon is missing: labels are released under differential privacy alone")
        try:
            check_label_epsilon(privacy.epsilon)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if privacy.mechanism != "analytic":
            raise ValueError("privacy.mechanism does nothing in a label-dp job, remove it: see label_dp.mechanism")
        if label_dp.mechanism != "gaussian" and privacy.delta != PrivacySettings.model_fields["delta"].default:
            raise ValueError(f"privacy.delta does nothing with {label_dp.mechanism}, whose delta is 0: remove it")
        if label_dp.epsilon_prior is not None and label_dp.epsilon_prior >= privacy.epsilon:
            raise ValueError("label_dp.epsilon_prior is a part of privacy.epsilon, and must be below it")

    def _check_dp_lr(self) -> None:
        privacy = self.privacy
        if privacy is None:
            raise ValueError("privacy.epsilon is missing: a dp-lr job is a release under differential privacy")
        if privacy.mechanism != "analytic":
            raise ValueError("privacy.mechanism does nothing in a dp-lr job, remove it: its noise is always analytic")
        if privacy.max_rows_per_person is not None:
            raise ValueError("privacy.max_rows_per_person does nothing in a dp-lr job, which protects rows: remove it")
        if self.seed and not self.split.test_fraction:
            raise ValueError("seed does nothing with split.test_fraction = 0: it draws the split alone; remove it")
        try:
            self.dp_lr.run_privacy(privacy.epsilon, privacy.delta)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    def _check_predict(self) -> None:
        if not self.predict.session:
            raise ValueError(
                "predict.session is missing: the session of the training whose model is used (`blindfit predict "
                "--model DIR` takes it from that training's report.json)"
            )
        if self.align.method != "psi":
            raise ValueError("align.method: after linkage nobody knows which rows match, so none can be scored")

    def _check_label_dp(self) -> None:
        """With label DP one kept noise takes the place of jitter, of fresh noise and of the stop decision."""
        taylor, privacy = self.taylor, self.privacy
        if privacy is None:
            if taylor.norm_bound != "auto":
                raise ValueError("taylor.norm_bound does nothing without privacy.epsilon, remove it")
            return
        if privacy.max_rows_per_person is not None or privacy.release or privacy.mechanism != "analytic":
            raise ValueError("of [privacy], a taylor job takes epsilon and delta alone")
        if taylor.model == "linear":
            raise ValueError('taylor.model = "linear": its labels are scaled by their own mean, which label DP forbids')
        if taylor.class_weights != "none":
            raise ValueError("taylor.class_weights: with label DP the change of one label would grow with the scores")
        if taylor.validation_fraction:
            raise ValueError(
                "taylor.validation_fraction: with label DP whether to stop would tell of labels; remove it"
            )
        defaults = TaylorSettings()
        for name in ("jitter", "gradient_noise", "patience", "tolerance"):
            if getattr(taylor, name) != getattr(defaults, name):
                raise ValueError(f"taylor.{name} does nothing with privacy.epsilon, remove it")

    def to_parameters(self) -> dict[str, ParameterValue]:
        """Only what the protocol uses: two jobs that mean the same are the same."""
        return dict(_flat("", self.model_dump(exclude_none=True, include=COMMON | SECTIONS[self.protocol])))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, ParameterValue]) -> JobParameters:
        nested: dict[str, Any] = {}
        for name, value in parameters.items():
            *path, last = name.split(".")
            table = nested
            for part in path:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise ConfigError(f"the proposed job: {name} is both a value and a table")
            table[last] = value
        return validate(nested, cls, source="the proposed job")


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, ParameterValue]]:
    flat: list[tuple[str, ParameterValue]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            flat += _flat(f"{prefix}{name}.", value)
        else:
            flat.append((prefix + name, value))
    return flat
