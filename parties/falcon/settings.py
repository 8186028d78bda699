"""A falcon job: vertical training in secret shares."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.statistics.vertical.grid import MOST_BATCH_ROWS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.job.select import SelectingParameters
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import HeldOutFraction, Settings, as_value_errors
from blindfit.parties.training.feature_bounds import Bounds, read_bounds

# docs/explanation/falcon.md lists what it opens.
UnsafeFlag = Literal["weight-bits"]
LEAST_RATE = 1e-6  # least rate of the last epoch, as a fraction of the first epoch's


class FalconSettings(Settings):
    """Training in secret shares, and the values that it opens."""

    backend: Literal["shares", "threshold"] = "shares"
    """Way to compute: "shares" computes on secret shares of rows and weights; "threshold" leaves rows with their party,
    encrypts weights and shares residuals."""
    key_bits: Literal[2048, 3072] = 2048
    """Bits of the threshold key. 3072 is for secrets that must last decades, and is slower."""
    model: Literal["logistic", "linear"] = "logistic"
    """Kind of the model: "logistic" for labels 0 and 1, "linear" for labels that are numbers."""
    security: Literal["malicious", "semi-honest", "auto"] = "auto"
    """Protection against parties that cheat: "malicious" adds MACs to the shares, "semi-honest" does not. "auto" adds
    them unless the backend is "threshold"."""
    intercept: bool = True
    """Constant that the active party adds to the model."""
    epochs: int = Field(20, ge=1, le=10_000)
    """Largest number of epochs. Raise it if the loss still falls at the end."""
    batch_rows: Annotated[int, Field(ge=2, le=MOST_BATCH_ROWS)] | Literal["auto"] = "auto"
    """Rows of a batch. "auto" takes 512, 256 or 128, by the number of rows."""
    sampling: Literal["epochs", "replacement"] = "epochs"
    """Draw of the batches: "epochs" takes each training row once in an epoch, "replacement" draws each batch from all
    training rows."""
    learning_rate: float = Field(0.5, ge=1e-6, le=1e3)
    """Learning rate of the first epoch. Lower it if training diverges."""
    schedule: Literal["constant", "inverse", "exponential"] = "inverse"
    """Course of the learning rate: "constant", which suits momentum, "inverse" for rate / (1 + decay epoch),
    "exponential" for rate e^(-decay epoch)."""
    decay: float = Field(0.1, ge=0, le=100)
    """Decay of the learning rate; see `schedule`. Raise it if the loss swings."""
    optimiser: Literal["sgd", "momentum"] = "sgd"
    """Optimiser of the steps. "momentum" suits columns that resemble each other."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """Fraction of the last step that the momentum optimiser keeps."""
    l2: float = Field(0.01, ge=0, le=1e3)
    """Strength of the ridge penalty. Raise it for many columns and few rows."""
    l1: float = Field(0.0, ge=0, le=1e3)
    """Strength of the lasso penalty. A larger penalty leaves fewer columns."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of the classes. "balanced" gives both classes the same total weight: take it for a rare class that must
    be found."""
    waves: Literal["narrow", "medium", "wide"] = "wide"
    """Range of scores whose probability is right: up to 12 ("narrow"), 28 ("medium") or 56 ("wide"). A wider range
    costs more; a score outside it ends the job."""
    validation_fraction: HeldOutFraction = 0.1
    """Fraction of rows whose loss, computed in shares, decides when training stops: 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3
    or 0.5. 0 runs every epoch."""
    patience: int = Field(3, ge=0, le=10_000)
    """Epochs without a better validation loss before training stops; 0 runs every epoch. Raise it if the loss
    swings."""
    tolerance: float = Field(1e-4, ge=0, le=10)
    """Decrease of the validation loss that counts as better. Lower it if training ends too early."""
    threshold: float = Field(0.5, ge=0.001, le=0.999)
    """Probability from which the confusion matrix counts a row as positive. Lower it if a missed positive costs more
    than a false alarm."""
    weights: Literal["open", "shared"] = "open"
    """Weights of the finished model: "open" gives each party its own; "shared" leaves all in shares, and predictions
    are made in shares too."""
    norm_bound: float = Field(1.0, ge=0.01, le=8)
    """Largest norm of a row with `privacy.epsilon`, as a multiple of the square root of its number of columns. Lower it
    if noise costs more than clipping."""
    feature_bounds: tuple[str, ...] = ()
    """Public bounds of features with `privacy.epsilon`, each as name:low:high, such as "age:0:110"; "*:-1:1" bounds all
    others. Choose them without a look at the rows."""
    resume: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    """Session of a training that stopped. The job goes on from its last epoch."""
    unsafe: list[UnsafeFlag] = []
    """Flags that switch off a defence. Set one only if `blindfit check` names it and you accept what it gives up."""

    def optimiser_settings(self) -> OptimiserSettings:
        return OptimiserSettings(
            self.learning_rate, self.schedule, self.decay, self.optimiser, self.momentum, self.l2, self.l1
        )

    def bounds(self) -> dict[str, Bounds]:
        return read_bounds(self.feature_bounds)

    @property
    def macs(self) -> bool:
        return self.security != "semi-honest" and not self.is_encrypted

    @property
    def is_encrypted(self) -> bool:
        return self.backend == "threshold"

    @property
    def stays_shared(self) -> bool:
        """True if no party ever holds the model as a whole."""
        return self.weights == "shared"

    @model_validator(mode="after")
    def _check_shared_weights(self) -> FalconSettings:
        if self.stays_shared and "weight-bits" in self.unsafe:
            raise ValueError('unsafe: weight-bits does nothing with weights = "shared", remove it')
        if self.stays_shared and self.model == "linear":
            raise ValueError('weights: a linear model does not stay shared, take weights = "open"')
        return self

    @model_validator(mode="after")
    def _goes_with_encrypted_weights(self) -> FalconSettings:
        if not self.is_encrypted:
            return self
        if self.security == "malicious":
            raise ValueError(
                'security: with backend = "threshold" nothing checks the work on ciphertexts, so MACs on shares would '
                'promise a protection that they cannot give: set it to "semi-honest", or backend to "shares"'
            )
        lacks = {
            "model": self.model == "linear",
            "optimiser": self.optimiser == "momentum",
            "l1": self.l1 > 0,
            "class_weights": self.class_weights != "none",
        }
        for name, is_set in lacks.items():
            if is_set:
                raise ValueError(f'{name}: "{getattr(self, name)}" takes backend = "shares"')
        return self

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> FalconSettings:
        default = FalconSettings.model_fields
        vain = {
            "key_bits": not self.is_encrypted,
            "decay": self.schedule == "constant",
            "momentum": self.optimiser != "momentum",
            "class_weights": self.model == "linear",
            "threshold": self.model == "linear",
            "waves": self.model == "linear",
            "patience": self.validation_fraction == 0 and self.patience != 0,
            "tolerance": self.validation_fraction == 0 or self.patience == 0,
        }
        for name, in_vain in vain.items():
            if in_vain and getattr(self, name) != default[name].default:
                raise ValueError(f"{name} does nothing with the other options, remove it")
        last = self.optimiser_settings().rate(self.epochs - 1) / self.learning_rate
        if last < LEAST_RATE:
            raise ValueError(f"decay: the last epoch's rate is {last:.2g} of the first one's: lower decay, or epochs")
        if self.patience == 0 and self.validation_fraction:
            raise ValueError("validation_fraction: with patience = 0 nothing is decided by these rows: set it to 0")
        return self


class FalconJob(AlignedParameters, SelectingParameters):
    protocol: Literal["falcon"] = "falcon"
    """System that computes the job."""
    falcon: FalconSettings = FalconSettings()

    resume_option: ClassVar[str] = "falcon.resume"
    charges_all_data_parties: ClassVar[bool] = True

    @property
    def unsafe(self) -> tuple[str, ...]:
        return tuple(self.falcon.unsafe)

    @property
    def trained(self) -> FalconSettings:
        return self.falcon

    @property
    def trained_table(self) -> str:
        return "falcon"

    @property
    def max_epochs(self) -> int:
        return self.most_epochs

    @property
    def resumes(self) -> str:
        return self.falcon.resume

    @model_validator(mode="after")
    def _does_not_promise_what_it_cannot(self) -> FalconJob:
        if self.align.method != "psi":
            raise ValueError(
                'align.method: a falcon job aligns by ids: set align.method = "psi" and remove other options of '
                '[align], or set protocol = "taylor"'
            )
        return self

    @model_validator(mode="after")
    def _selects_in_shares(self) -> FalconJob:
        if self.select is None:
            return self
        if self.falcon.is_encrypted:
            raise ValueError('select: folds are tested in shares: set falcon.backend = "shares", or remove [select]')
        if self.falcon.resume:
            raise ValueError(
                "select: a job that chooses options is not resumed: remove falcon.resume, and run it again"
            )
        if self.privacy is not None:
            raise ValueError(
                "select: with privacy.epsilon each fold's training would be a release that epsilon pays for, and no "
                "figure is opened: remove [select], or remove [privacy]"
            )
        return self

    @model_validator(mode="after")
    def _goes_with_privacy(self) -> FalconJob:
        """Check options under differential privacy: only the weights are opened, and no row changes another."""
        falcon, privacy, defaults = self.falcon, self.privacy, FalconSettings()
        if privacy is None:
            if falcon.threshold != defaults.threshold and not self.split.test_fraction:
                raise ValueError("falcon.threshold does nothing without test rows (split.test_fraction), remove it")
            for name in ("norm_bound", "feature_bounds"):
                if getattr(falcon, name) != getattr(defaults, name):
                    raise ValueError(f"falcon.{name} does nothing without privacy.epsilon, remove it")
            return self
        if option := privacy.set_besides("epsilon", "delta", "release"):
            raise ValueError(f"privacy.{option} does nothing in a falcon job, remove it")
        if falcon.validation_fraction:
            raise ValueError("falcon.validation_fraction: with privacy.epsilon no loss is opened, set it to 0")
        if self.split.test_fraction:
            raise ValueError("split.test_fraction: with privacy.epsilon no figure of test rows is opened, set it to 0")
        for name in ("backend", "model", "l1", "class_weights", "sampling", "weights"):
            if getattr(falcon, name) != getattr(defaults, name):
                raise ValueError(f"falcon.{name} does not go with privacy.epsilon yet, remove it")
        if falcon.threshold != defaults.threshold:
            raise ValueError("falcon.threshold does nothing with privacy.epsilon, remove it")
        if falcon.unsafe:
            raise ValueError(f"falcon.unsafe: {falcon.unsafe[0]} does nothing with privacy.epsilon, remove it")
        if not falcon.feature_bounds:
            raise ValueError(
                "falcon.feature_bounds is missing: with privacy.epsilon columns are scaled by public bounds, such as "
                'falcon.feature_bounds = ["*:-3:3"]'
            )
        with as_value_errors("falcon."):
            falcon.bounds()
        return self
