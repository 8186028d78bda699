"""A taylor job: vertical training under encryption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.fixed_point import MAX_ROWS
from blindfit.algorithms.paillier.engines import EngineName
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_JITTER
from blindfit.algorithms.statistics.vertical.grid import MOST_BATCH_ROWS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import BATCH_SIZES, LARGE_BATCH_SIZES
from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.job.select import SelectingParameters
from blindfit.parties.settings import SESSION, PolicySettings, SystemPolicy
from blindfit.parties.tables import HeldOutFraction, Settings

DEFAULT_HOLD_OUT = 0.15


# Each flag opens an attack that the defaults close; docs/explanation/gradient_leaks.md describes them.
UnsafeFlag = Literal["no-jitter", "no-gradient-noise", "leverage", "label-bits", "small-hold-out", "class-weights"]


# Options of a linear model without a named optimiser: as near to least squares as all defences allow, on few rows and
# on many. Its hold-out loss swings, so this loss would stop the training far too early.
LINEAR: dict[str, int | float | str] = {
    "epochs": 40,
    "optimiser": "momentum",
    "learning_rate": 0.05,
    "l2": 0.001,
    "patience": 0,
}


class TaylorSettings(Settings):
    """Training under encryption, and its defences."""

    model: Literal["logistic", "linear"] = "logistic"
    """Kind of the model: "logistic" for labels 0 and 1, "linear" for labels that are numbers."""
    intercept: bool = True
    """Constant that the active party adds to the model."""
    epochs: int = Field(20, ge=1, le=10_000)
    """Largest number of epochs; a linear model has 40 by default. Raise it if the hold-out loss still falls at the
    end."""
    batch_rows: Annotated[int, Field(ge=2, le=MOST_BATCH_ROWS)] | Literal["auto"] = "auto"
    """Rows of a batch. "auto" takes 512, 256 or 128, by the number of rows, and 2048 too for a linear model."""
    learning_rate: float = Field(0.15, ge=1e-6, le=1e3)
    """Learning rate of the first epoch; a linear model with momentum has 0.05 by default. Lower it if a log reports
    that training has not settled.
    """
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    """Course of the learning rate: "constant", "inverse" for rate / (1 + decay epoch), "exponential" for rate e^(-decay
    epoch)."""
    decay: float = Field(0.1, ge=0)
    """Decay of the learning rate; see `schedule`. Raise it if the loss swings."""
    optimiser: Literal["sgd", "momentum", "sag"] = "sgd"
    """Optimiser of the steps. "momentum" suits columns that resemble each other; a linear model has it by default."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """Fraction of the last step that the momentum optimiser keeps."""
    l2: float = Field(0.01, ge=0, le=1e3)
    """Strength of the ridge penalty; a linear model has 0.001 by default. Raise it for many columns and few rows."""
    l1: float = Field(0.0, ge=0, le=1e3)
    """Strength of the lasso penalty. A larger penalty leaves fewer columns."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of the classes. "balanced" gives both classes the same total weight: take it for a rare class that must
    be found."""
    validation_fraction: HeldOutFraction | None = None
    """Fraction of rows for the hold-out loss: 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3 or 0.5. By default 0.15, or 0 with
    label DP."""
    patience: int = Field(3, ge=0, le=10_000)
    """Epochs without a better hold-out loss before training stops; 0 runs every epoch, as a linear model does by
    default. Raise it if the loss swings."""
    tolerance: float = Field(1e-4, ge=0)
    """Decrease of the hold-out loss that counts as better. Lower it if training ends too early."""
    threshold: float = Field(0.5, gt=0, lt=1)
    """Probability from which the confusion matrix counts a row as positive. Lower it if a missed positive costs more
    than a false alarm."""
    calibrate: bool = True
    """Calibration of the log odds by a slope and an offset. They are fitted to test rows, which were not trained on, or
    after linkage to hold-out rows."""
    key_bits: Literal[2048, 3072] = 2048
    """Bits of the key node's key. 3072 is for secrets that must last decades, at half the speed."""
    jitter: float = Field(0.25, ge=0, le=MOST_JITTER)
    """Standard deviation of the noise that is added once to each label. The unit is 1 for yes/no labels; for numbers it
    is half of `label_range`, or without a range their standard deviation when it was first needed. More noise hides
    labels better and costs accuracy."""
    gradient_noise: float = Field(1.0, ge=0)
    """Standard deviation of the key node's fresh noise, in units of features. More noise hides gradients better and
    costs accuracy."""
    norm_bound: float = Field(1.25, gt=0, le=8)
    """Largest norm of a row with label DP, as a multiple of the square root of its number of columns. Lower it if noise
    costs more than shortened rows."""
    resume: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    """Session of a training that stopped. The job goes on from its last epoch."""
    unsafe: list[UnsafeFlag] = []
    """Flags that switch off a defence. Set one only if `blindfit check` names it and you accept what it gives up."""

    @model_validator(mode="before")
    @classmethod
    def _linear_has_its_own_defaults(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("model") != "linear":
            return given
        if given.get("optimiser", LINEAR["optimiser"]) != LINEAR["optimiser"]:
            return given  # the defaults of another optimiser are its own
        in_vain = {"patience"} if given.get("validation_fraction") == 0 else set()
        return {**{name: value for name, value in LINEAR.items() if name not in in_vain}, **given}

    @property
    def batch_sizes(self) -> Sequence[int]:
        """Sizes from which "auto" takes one. Large batches give few steps, which are enough with momentum."""
        return LARGE_BATCH_SIZES if self.model == "linear" and self.optimiser == "momentum" else BATCH_SIZES

    def is_set(self, name: str) -> bool:
        """Return True if an option differs from every default."""
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
                raise ValueError(f"{name} does nothing with the other options, remove it")
        return self


class PaillierSettings(Settings):
    """Engine of the arithmetic on ciphertexts."""

    engine: EngineName = "blindfit"
    """Engine for arithmetic on ciphertexts. "phe" is python-paillier, a slow reference to check results against."""


class TaylorPolicy(SystemPolicy):
    """Policy of a party for taylor jobs."""

    min_linked: int = Field(100, ge=1, le=MAX_ROWS)
    """Smallest `align.min_common` that this party accepts of a job that links rows by similar fields. A low value
    lets a partner test if one person is in your data, although nobody learns which rows match."""


class TaylorJob(AlignedParameters, SelectingParameters):
    protocol: Literal["taylor"] = "taylor"
    """System that computes the job."""
    taylor: TaylorSettings = TaylorSettings()
    paillier: PaillierSettings = PaillierSettings()

    resume_option: ClassVar[str] = "taylor.resume"

    @property
    def unsafe(self) -> tuple[str, ...]:
        return tuple(self.taylor.unsafe)

    def min_common_of(self, policy: PolicySettings) -> tuple[str, int]:
        if self.align.method != "linkage":
            return super().min_common_of(policy)
        return "policy.taylor.min_linked", policy.of(TaylorPolicy).min_linked

    @property
    def holds_against(self) -> str:
        counted, reads = "The bits that are counted for labels hold", "reads nearly every label of the training rows"
        instead = "counts what any passive party can learn"
        if self.taylor.model == "logistic":
            instead += '; with falcon.weights = "shared" it opens no weight'
        if self.privacy is not None:
            counted, reads = "Epsilon holds", f"cancels the kept noise and {reads}"
            instead = "and privacy.epsilon needs only that rows keep to their bound"
        said = (
            f"{counted} against passive parties that follow the protocol. A passive party that sends other columns in "
            f"each epoch or session {reads}, and no party notices. If you do not trust a passive party: "
            f'protocol = "falcon" with MACs {instead}.'
        )
        if self.align.method != "linkage":
            return said
        return (
            f"{said} The count of linkages holds against a data party that follows the protocol too: one that links "
            "other records under the same snapshot learns one more bit each time, and no entry counts it."
        )

    @property
    def trained(self) -> TaylorSettings:
        return self.taylor

    @property
    def trained_table(self) -> str:
        return "taylor"

    @property
    def max_epochs(self) -> int:
        return self.most_epochs

    @property
    def resumes(self) -> str:
        return self.taylor.resume

    @property
    def test_fraction(self) -> float:
        """Fraction of rows for the test. After a linkage no party learns which rows match, so no row can be
        evaluated.
        """
        return 0.0 if self.align.method == "linkage" else super().test_fraction

    @property
    def hold_out_fraction(self) -> float:
        """Fraction of rows for the hold-out loss. With label DP it is 0: the decision to stop would depend on
        labels.
        """
        given = self.taylor.validation_fraction
        return given if given is not None else 0.0 if self.privacy else DEFAULT_HOLD_OUT

    @property
    def calibrates(self) -> bool:
        """True if scores are calibrated. With label DP this would reveal something about labels that no budget pays
        for.
        """
        return self.taylor.calibrate and self.taylor.model == "logistic" and self.privacy is None

    @property
    def calibrates_by_sums(self) -> bool:
        """True after a linkage, where no row is scored: sums under the mask over the hold-out rows give the
        calibration.
        """
        return self.calibrates and self.align.method == "linkage" and self.hold_out_fraction > 0

    @model_validator(mode="after")
    def _selects_by_a_loss(self) -> TaylorJob:
        if self.select is None:
            return self
        if self.by not in ("log_loss", "mse"):
            raise ValueError(f"select.by: a taylor job compares losses: remove it, as {self.by} takes scores of rows")
        if self.taylor.resume:
            raise ValueError(
                "select: a job that chooses options is not resumed: remove taylor.resume, and run it again"
            )
        if self.align.method == "linkage":
            raise ValueError(
                "select: after a linkage nobody knows how many rows of a fold match: remove [select], or set "
                'align.method = "psi" and remove other options of [align]'
            )
        if self.privacy is not None:
            raise ValueError(
                "select: with privacy.epsilon the losses of folds would reveal something about labels that no budget "
                "pays for: remove [select], or remove [privacy]"
            )
        return self

    @model_validator(mode="after")
    def _goes_with_label_dp(self) -> TaylorJob:
        """Check options of label DP: one kept noise replaces jitter and the decision to stop; defences of features
        stay.
        """
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
