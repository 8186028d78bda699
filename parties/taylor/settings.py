"""A taylor job: vertical training under encryption."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.paillier.engines import EngineName
from blindfit.algorithms.statistics.taylor import OptimiserSettings
from blindfit.parties.job.parameters import AlignedParameters, TrainingParameters
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import Settings

DEFAULT_HOLD_OUT = 0.15


# Each of these opens an attack that the defaults close; docs/gradients.md says which.
UnsafeFlag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out"]


class TaylorSettings(Settings):
    """Training under encryption, and its defences."""

    model: Literal["logistic", "linear"] = "logistic"  # "linear" for labels that are numbers
    intercept: bool = True  # whether the active party adds a constant
    epochs: int = Field(20, ge=1, le=10_000)  # at most; more where the hold-out loss still falls in the end
    # "auto": 512, 256 or 128, by the rows; set 2048 where there are many thousands
    batch_rows: Annotated[int, Field(ge=2, le=2**20)] | Literal["auto"] = "auto"
    learning_rate: float = Field(0.15, gt=0)  # lower it where training diverges
    # of the learning rate: "inverse" is rate / (1 + decay epoch); "constant" goes with momentum
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    decay: float = Field(0.1, ge=0)  # see schedule; raise it where the loss swings
    optimiser: Literal["sgd", "momentum", "sag"] = "sgd"  # "momentum" where columns resemble each other
    momentum: float = Field(0.9, ge=0, lt=1)  # of that optimiser: the part of the last move that is kept
    l2: float = Field(0.01, ge=0)  # strength of the ridge penalty; raise it where columns are many and rows few
    l1: float = Field(0.0, ge=0)  # strength of the lasso penalty; leaves few columns
    # "balanced": both classes count alike, where one is rare and must be found
    class_weights: Literal["none", "balanced"] = "none"
    # of the hold-out loss; None: .15, or 0 with label DP
    validation_fraction: float | None = Field(None, ge=0, lt=1)
    # epochs without a better hold-out loss; 0: every epoch runs; raise it where the loss swings
    patience: int = Field(3, ge=0)
    # by how much the hold-out loss must fall to count as better; lower it where training ends too early
    tolerance: float = Field(1e-4, ge=0)
    # of the confusion matrix; lower it where a missed positive costs more than a false alarm
    threshold: float = Field(0.5, gt=0, lt=1)
    # fit slope and offset of the log odds to test rows, which were not trained on; after linkage, to hold-out rows
    calibrate: bool = True
    # of the key node's key; 3072 for secrets that must last decades, at half the speed
    key_bits: Literal[2048, 3072] = 2048
    # standard deviation of what is added to each label's term, once; more hides labels better, and costs accuracy
    jitter: float = Field(0.25, ge=0, le=2)
    # standard deviation of the key node's fresh noise, in units of features; more hides better, and costs accuracy
    gradient_noise: float = Field(1.0, ge=0)
    # with label DP, of a row: for each root of its columns; lower it where noise costs more than shortened rows
    norm_bound: float = Field(1.25, gt=0, le=8)
    # the session of a training that stopped, to go on from its last epoch
    resume: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
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
            "calibrate": self.model == "linear",
            "patience": self.validation_fraction == 0,
            "tolerance": self.validation_fraction == 0 or self.patience == 0,
        }
        for name, in_vain in vain.items():
            if in_vain and getattr(self, name) != default[name].default:
                raise ValueError(f"{name} does nothing beside the other options, remove it")
        return self


class PaillierSettings(Settings):
    """Who does arithmetic on ciphertexts."""

    engine: EngineName = "blindfit"  # "phe": python-paillier does all arithmetic, a slow reference to check against


class TaylorJob(AlignedParameters, TrainingParameters):
    protocol: Literal["taylor"] = "taylor"  # which system computes
    taylor: TaylorSettings = TaylorSettings()
    paillier: PaillierSettings = PaillierSettings()

    resume_option: ClassVar[str] = "taylor.resume"

    @property
    def unsafe(self) -> tuple[str, ...]:
        return tuple(self.taylor.unsafe)

    @property
    def most_epochs(self) -> int:
        return self.taylor.epochs

    @property
    def resumes(self) -> str:
        return self.taylor.resume

    @property
    def test_fraction(self) -> float:
        """After linkage nobody knows which rows match, so no row can be evaluated."""
        return 0.0 if self.align.method == "linkage" else super().test_fraction

    @property
    def hold_out_fraction(self) -> float:
        """Rows of the hold-out loss. With label DP there is none: whether to stop would depend on labels."""
        given = self.taylor.validation_fraction
        return given if given is not None else 0.0 if self.privacy else DEFAULT_HOLD_OUT

    @property
    def calibrates(self) -> bool:
        """With label DP it would tell of labels what no budget pays for."""
        return self.taylor.calibrate and self.taylor.model == "logistic" and self.privacy is None

    @property
    def calibrates_by_sums(self) -> bool:
        """After linkage, where no row is scored: from sums under the mask over the hold-out rows."""
        return self.calibrates and self.align.method == "linkage" and self.hold_out_fraction > 0

    @model_validator(mode="after")
    def _goes_with_label_dp(self) -> TaylorJob:
        """With label DP one kept noise replaces jitter and the stop decision; what protects features stays."""
        taylor, privacy, defaults = self.taylor, self.privacy, TaylorSettings()
        if privacy is None:
            if taylor.norm_bound != defaults.norm_bound:
                raise ValueError("taylor.norm_bound does nothing without privacy.epsilon, remove it")
            return self
        if privacy.max_rows_per_person is not None or privacy.release or privacy.mechanism != "analytic":
            raise ValueError("of [privacy], a taylor job takes epsilon and delta alone")
        if taylor.class_weights != "none":
            raise ValueError("taylor.class_weights: with label DP the change of one label would grow with the scores")
        if taylor.validation_fraction:
            raise ValueError(
                "taylor.validation_fraction: with label DP whether to stop would tell of labels; remove it"
            )
        for name in ("jitter", "patience", "tolerance", "calibrate"):
            if getattr(taylor, name) != getattr(defaults, name):
                raise ValueError(f"taylor.{name} does nothing with privacy.epsilon, remove it")
        if in_vain := set(taylor.unsafe) & {"no-jitter", "label-bits", "small-hold-out"}:
            flag = min(in_vain)
            raise ValueError(f"taylor.unsafe: {flag} does nothing with privacy.epsilon, which takes the rule's place")
        return self
