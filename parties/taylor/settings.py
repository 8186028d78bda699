"""A taylor job: vertical training under encryption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.paillier.engines import EngineName
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_JITTER
from blindfit.algorithms.statistics.vertical.grid import MOST_BATCH_ROWS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import BATCH_SIZES, LARGE_BATCH_SIZES
from blindfit.parties.job.parameters import AlignedParameters, TrainingParameters
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import Settings

DEFAULT_HOLD_OUT = 0.15


# Each of these opens an attack that the defaults close; docs/gradients.md says which.
UnsafeFlag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out", "class-weights"]


# What a linear model takes where no other optimiser is named: as near to least squares as all defences allow, on few
# rows and on many. Its hold-out loss swings, and where it stopped the training it would do so far too early.
LINEAR: dict[str, int | float | str] = {
    "epochs": 40,
    "optimiser": "momentum",
    "learning_rate": 0.05,
    "l2": 0.001,
    "patience": 0,
}


class TaylorSettings(Settings):
    """Training under encryption, and its defences."""

    model: Literal["logistic", "linear"] = "logistic"  # "linear" for labels that are numbers
    intercept: bool = True  # whether the active party adds a constant
    # at most; linear: 40; more where the hold-out loss still falls in the end
    epochs: int = Field(20, ge=1, le=10_000)
    # "auto": 512, 256 or 128, by the rows; linear: 2048 too
    batch_rows: Annotated[int, Field(ge=2, le=MOST_BATCH_ROWS)] | Literal["auto"] = "auto"
    # linear, with momentum: .05; lower it where a log says that training has not settled
    learning_rate: float = Field(0.15, ge=1e-6, le=1e3)
    # of the learning rate: "inverse" is rate / (1 + decay epoch)
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    decay: float = Field(0.1, ge=0)  # see schedule; raise it where the loss swings
    optimiser: Literal["sgd", "momentum", "sag"] = "sgd"  # "momentum" where columns resemble each other; linear: that
    momentum: float = Field(0.9, ge=0, lt=1)  # of that optimiser: the part of the last move that is kept
    # strength of the ridge penalty; linear: .001; raise it where columns are many and rows few
    l2: float = Field(0.01, ge=0, le=1e3)
    l1: float = Field(0.0, ge=0, le=1e3)  # strength of the lasso penalty; leaves few columns
    # "balanced": both classes count alike, where one is rare and must be found
    class_weights: Literal["none", "balanced"] = "none"
    # of the hold-out loss; None: .15, or 0 with label DP
    validation_fraction: float | None = Field(None, ge=0, lt=1)
    # epochs without a better hold-out loss; 0, and linear: every epoch runs; raise it where the loss swings
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
    jitter: float = Field(0.25, ge=0, le=MOST_JITTER)
    # standard deviation of the key node's fresh noise, in units of features; more hides better, and costs accuracy
    gradient_noise: float = Field(1.0, ge=0)
    # with label DP, of a row: for each root of its columns; lower it where noise costs more than shortened rows
    norm_bound: float = Field(1.25, gt=0, le=8)
    # the session of a training that stopped, to go on from its last epoch
    resume: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    unsafe: list[UnsafeFlag] = []  # what the pre-flight would refuse and you want all the same

    @model_validator(mode="before")
    @classmethod
    def _linear_has_its_own_defaults(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("model") != "linear":
            return given
        if given.get("optimiser", LINEAR["optimiser"]) != LINEAR["optimiser"]:
            return given  # what goes with another one is its own
        in_vain = {"patience"} if given.get("validation_fraction") == 0 else set()
        return {**{name: value for name, value in LINEAR.items() if name not in in_vain}, **given}

    @property
    def batch_sizes(self) -> Sequence[int]:
        """Of which "auto" takes one. Of large batches there are few steps, which are enough with momentum."""
        return LARGE_BATCH_SIZES if self.model == "linear" and self.optimiser == "momentum" else BATCH_SIZES

    def is_set(self, name: str) -> bool:
        """To something that no default is."""
        default = type(self).model_fields[name].default
        of_linear = LINEAR.get(name, default) if self.model == "linear" else default
        return getattr(self, name) not in (default, of_linear)

    def optimiser_settings(self) -> OptimiserSettings:
        return OptimiserSettings(
            self.learning_rate, self.schedule, self.decay, self.optimiser, self.momentum, self.l2, self.l1
        )

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> TaylorSettings:
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
            if in_vain and self.is_set(name):
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
    def max_epochs(self) -> int:
        return self.taylor.epochs

    @property
    def resumes(self) -> str:
        return self.taylor.resume

    @property
    def test_fraction(self) -> float:
        """After linkage nobody is told which rows match, so no row can be evaluated."""
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
        taylor, privacy = self.taylor, self.privacy
        if privacy is None:
            if taylor.is_set("norm_bound"):
                raise ValueError("taylor.norm_bound does nothing without privacy.epsilon, remove it")
            return self
        if option := privacy.set_besides("epsilon", "delta"):
            raise ValueError(f"privacy.{option} does nothing in a taylor job, remove it")
        if taylor.class_weights != "none":
            raise ValueError(
                "taylor.class_weights: with label DP the change of one label would grow with the scores, remove it"
            )
        if taylor.validation_fraction:
            raise ValueError(
                "taylor.validation_fraction: with label DP whether to stop would reveal something about labels, "
                "remove it"
            )
        for name in ("jitter", "patience", "tolerance", "calibrate"):
            if taylor.is_set(name):
                raise ValueError(f"taylor.{name} does nothing with privacy.epsilon, remove it")
        if in_vain := set(taylor.unsafe) & {"no-jitter", "label-bits", "small-hold-out"}:
            flag = min(in_vain)
            raise ValueError(f"taylor.unsafe: {flag} does nothing with privacy.epsilon, remove it")
        return self
