"""A dp-lr job: noisy gradient descent on rows that one party holds, and its start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.fixed_point import MAX_ROWS
from blindfit.algorithms.privacy.noisy_iterations import MOST_ITERATIONS, Neighbours, RunPrivacy, Spending
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_NORMS
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.job.tables import EPSILON_MEANS
from blindfit.parties.tables import Settings, as_value_errors
from blindfit.parties.training.feature_bounds import ALL_OTHERS, Bounds, in_order, read_bounds

LEARNING_RATES = (1e-20, 1e20)  # the least and the largest
MOST_SHRINKAGE = 1e20


class DPLRSettings(Settings):
    """Noisy descent, and its start."""

    clip_norm: float = Field(1.0, ge=CLIP_NORMS[0], le=CLIP_NORMS[1])
    """Largest norm of a row's gradient, with the part of the intercept. Lower it if noise costs more than clipping."""
    iterations: int = Field(50, ge=1, le=MOST_ITERATIONS)
    """Number of iterations of descent. More iterations let descent settle, and each of them has more noise."""
    learning_rate: float | Literal["auto"] = "auto"
    """Step size of descent. "auto" follows the noise."""
    batch_fraction: float = Field(1.0, gt=0, le=1)
    """Fraction of the rows that is drawn in secret for each iteration. Lower it for many iterations on many rows."""
    neighbours: Neighbours = "replace-one"
    """Difference that privacy hides: one row is replaced ("replace-one"), or one row is added or removed
    ("add-or-remove"), which keeps the number of rows private."""
    public_rows: int | None = Field(None, ge=1, le=MAX_ROWS)
    """Approximate number of rows, known without the data. "add-or-remove" needs it, because it keeps the number of rows
    private."""
    budget: Spending = "run"
    """Scope of [privacy]: the whole "run", or each "iteration"."""
    init: str | None = Field(None, min_length=1, max_length=256)
    """Start of descent: a pretrained.json of the party."""
    public_dataset: str | None = Field(None, min_length=1, max_length=64)
    """Dataset of the party whose rows are public. Descent starts at a fit to it."""
    shrinkage: float = Field(0.0, ge=0, le=MOST_SHRINKAGE)
    """Strength of an l2 penalty around the start. Raise it if the start is good and rows are few."""
    feature_bounds: tuple[str, ...] = ()
    """Public bounds of features, each as name:low:high, such as "age:0:110"; "*:-1:1" bounds all others. Choose them
    without a look at the rows."""
    loss_share: float = Field(0.0, ge=0, lt=1)
    """Fraction of the budget that pays for the training loss of each iteration. 0 releases no loss."""

    def run_privacy(self, epsilon: float, delta: float) -> RunPrivacy:
        """Return the privacy of the run. Raise ConfigError if a number is out of its range."""
        return RunPrivacy(epsilon, delta, self.iterations, self.batch_fraction, self.neighbours, self.budget)

    def bounds(self) -> dict[str, Bounds]:
        """Return bounds by feature; `ALL_OTHERS` stands for the features without bounds of their own."""
        return read_bounds(self.feature_bounds)

    def bounds_of(self, names: Sequence[str]) -> list[Bounds] | None:
        """Return bounds in the order of the features; None if the job has no bounds.

        Raises:
            ConfigError: a bounded feature does not exist, or a feature has no bounds.
        """
        found = self.bounds()
        if not found:
            return None
        strangers = sorted(found.keys() - {*names, ALL_OTHERS})
        if strangers:
            raise ConfigError(f"dp_lr.feature_bounds: the dataset has no feature {strangers[0]}")
        return in_order(found, names, "dp_lr.feature_bounds")

    @model_validator(mode="after")
    def _numbers_fit(self) -> DPLRSettings:
        least, largest = LEARNING_RATES
        if self.learning_rate != "auto" and not least <= self.learning_rate <= largest:
            raise ValueError(f'learning_rate must be "auto" or a number from {least:g} to {largest:g}')
        with as_value_errors():
            self.bounds()
        return self

    @model_validator(mode="after")
    def _number_of_rows(self) -> DPLRSettings:
        if self.neighbours == "add-or-remove" and self.public_rows is None:
            raise ValueError(
                'public_rows is missing: with neighbours = "add-or-remove" the number of rows is private, so name an '
                "approximate number that is known without the data"
            )
        if self.neighbours == "replace-one" and self.public_rows is not None:
            raise ValueError(
                'public_rows does nothing with neighbours = "replace-one", whose number of rows is public, remove it'
            )
        return self

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> DPLRSettings:
        if self.init is not None and self.public_dataset is not None:
            raise ValueError("init and public_dataset both name the start of descent: remove one of them")
        if self.loss_share and self.public_dataset is not None:
            raise ValueError(
                "loss_share pays for a loss that the rows of public_dataset give for free: remove one of them"
            )
        return self


class DPLRJob(TrainingParameters):
    protocol: Literal["dp-lr"] = "dp-lr"
    """System that computes the job."""
    dp_lr: DPLRSettings = DPLRSettings()

    no_selection: ClassVar[str] = (
        "each fit of a dp-lr job is a release that its budget pays for, and so would each fold be: remove [select], "
        "and give privacy.epsilon to the options that you would choose"
    )

    def also_reads(self, role: str) -> tuple[str, ...]:
        return (self.dp_lr.public_dataset,) if role == "active" and self.dp_lr.public_dataset else ()

    @property
    def epsilon(self) -> float:
        return self.run_privacy.spent()

    @property
    def rows_are_public(self) -> bool:
        return self.dp_lr.public_rows is None

    def expected_rows(self, trained: int) -> float:
        """Return the number by which sums over the training rows are divided: their own number if it is public."""
        public = self.dp_lr.public_rows
        return trained if public is None else public * (1 - self.split.test_fraction)

    @property
    def run_privacy(self) -> RunPrivacy:
        return self.dp_lr.run_privacy(self.required_privacy.epsilon, self.required_privacy.delta)

    @model_validator(mode="after")
    def _is_private(self) -> DPLRJob:
        privacy = self.privacy
        if privacy is None:
            raise ValueError(
                f"privacy.epsilon is missing: a dp-lr job is a release under differential privacy. {EPSILON_MEANS}"
            )
        if privacy.mechanism != "analytic":
            raise ValueError("privacy.mechanism does nothing in a dp-lr job, remove it: its noise is always analytic")
        if privacy.max_rows_per_person is not None:
            raise ValueError("privacy.max_rows_per_person does nothing in a dp-lr job, which protects rows: remove it")
        if self.seed is not None and not self.split.test_fraction:
            raise ValueError("seed does nothing with split.test_fraction = 0: it only draws the split; remove it")
        with as_value_errors():
            self.dp_lr.run_privacy(privacy.epsilon, privacy.delta)
        return self
