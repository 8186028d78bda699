"""A label-dp job: the row-by-row release of labels, and the fit to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.label_mechanism_options import OPTIONS
from blindfit.algorithms.privacy.label_mechanisms.base import check_label_epsilon
from blindfit.algorithms.statistics.label_dp.cost import regression_cost
from blindfit.algorithms.statistics.label_dp.options import RegressorName
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.job.tables import EPSILON_MEANS, PrivacySettings
from blindfit.parties.measurement.policy import LabelDPPolicy
from blindfit.parties.tables import Settings, as_value_errors

if TYPE_CHECKING:
    from blindfit.algorithms.privacy.events import ReleaseEvent
    from blindfit.parties.settings import PolicySettings

MechanismName = Literal["laplace", "gaussian", "staircase", "rr-on-bins", "unbiased", "rp-with-prior", "rp-banded"]
# Options that this table has; delta is in [privacy], and a job cannot contain a prior from elsewhere.
MECHANISM_OPTIONS = tuple(sorted(frozenset().union(*OPTIONS.values()) - {"delta", "prior"}))
CANNOT_DEBIAS = ("rr-on-bins", "rp-banded")
HAVE_A_BIAS = (*CANNOT_DEBIAS, "rp-with-prior")


class LabelDPSettings(Settings):
    """Release of labels, and fit to them."""

    mechanism: MechanismName = "rp-with-prior"
    """Mechanism that randomises labels. docs/explanation/label_dp.md compares the mechanisms."""
    epsilon_prior: float | None = Field(None, gt=0)
    """Part of `privacy.epsilon` that estimates the prior. By default a third."""
    prior_mechanism: Literal["laplace", "staircase", "histogram"] | None = None
    """Mechanism that estimates the prior, for mechanisms that use one. The default depends on `mechanism`."""
    cell_width: float | None = Field(None, gt=0)
    """Width of a cell of the prior's histogram, in units of the label."""
    half_width: float | Literal["auto"] | None = None
    """Half the width of the favoured neighbourhood, in units of the label. By default "auto", for mechanisms that allow
    it."""
    optimal_for: Literal["squared", "absolute"] | None = None
    """Error that the staircase mechanism makes as small as possible."""
    rounding: float | None = Field(None, gt=0)
    """Step of rounding, in units of the label. Labels are first rounded down to a multiple of it."""
    output_cells: int | None = Field(None, ge=4, le=1000)
    """Number of values that the unbiased mechanism may release."""
    output_reach: float | None = Field(None, gt=0)
    """Distance by which values of the unbiased mechanism may lie outside the label range, in units of the label."""
    regressor: RegressorName = "ridge"
    """Regressor that is fitted to the noisy labels. Linear regressors tolerate noise best."""
    options: dict[str, bool | int | float | str] = {}
    """Options of the regressor, under scikit-learn's names."""
    debias: bool = True
    """Removal of what the mechanism adds to the mean of a label."""
    evaluate_on: str = Field("", max_length=64)
    """Dataset of the active party with true labels, to evaluate the model on."""

    @model_validator(mode="after")
    def _options_go_with_the_mechanism(self) -> LabelDPSettings:
        for name in MECHANISM_OPTIONS:
            if getattr(self, name) is not None and name not in OPTIONS[self.mechanism]:
                raise ValueError(f'{name} does nothing with mechanism = "{self.mechanism}", remove it')
        if isinstance(self.half_width, float) and self.half_width <= 0:
            raise ValueError('half_width must be "auto" or a number above 0')
        if self.mechanism == "rp-banded" and not isinstance(self.half_width, float):
            raise ValueError("half_width is missing: rp-banded needs a number, in units of the label")
        return self

    @model_validator(mode="after")
    def _bias_is_treated_knowingly(self) -> LabelDPSettings:
        if self.debias and self.mechanism in CANNOT_DEBIAS:
            raise ValueError(
                f'debias: {self.mechanism} cannot be debiased; set debias = false, or take "rp-with-prior", '
                '"unbiased" or an additive mechanism'
            )
        if not self.debias and self.mechanism not in HAVE_A_BIAS:
            raise ValueError(
                f"debias = false does nothing with mechanism = {self.mechanism!r}, which has no bias, remove it"
            )
        return self

    @model_validator(mode="after")
    def _options_go_with_the_regressor(self) -> LabelDPSettings:
        with as_value_errors():
            regression_cost(self.regressor, self.options, 1, 1).check()  # for any number of rows
        return self


class LabelDPJob(TrainingParameters):
    protocol: Literal["label-dp"] = "label-dp"
    """System that computes the job."""
    label_dp: LabelDPSettings = LabelDPSettings()

    no_selection: ClassVar[str] = (
        "a label-dp job pays for each label once, and its labels stay noisy in every fold: remove [select], and "
        "compare the figures of several jobs, which get the same noisy labels for nothing"
    )

    @property
    def delta(self) -> float:
        return super().delta if self.label_dp.mechanism == "gaussian" else 0.0

    def event_at_server(self, neighbours: str) -> ReleaseEvent:
        from blindfit.algorithms.estimators.label_noise import event_of_unit  # here: `show` needs no estimators

        privacy = self.required_privacy
        return event_of_unit(self.label_dp.mechanism, privacy.epsilon, privacy.delta, neighbours)

    def refusals(self, policy: PolicySettings, role: str) -> Iterator[tuple[str, str]]:
        yield from super().refusals(policy, role)
        if role == "measurement" and self.label_dp.mechanism not in policy.of(LabelDPPolicy).allowed:
            yield "mechanism", f"{self.label_dp.mechanism} is not one of the policy's mechanisms"

    def also_reads(self, role: str) -> tuple[str, ...]:
        return (self.label_dp.evaluate_on,) if role == "active" and self.label_dp.evaluate_on else ()

    @model_validator(mode="after")
    def _releases_labels(self) -> LabelDPJob:
        privacy, label_dp = self.privacy, self.label_dp
        if privacy is None:
            raise ValueError(
                f"privacy.epsilon is missing: labels are released only under differential privacy. {EPSILON_MEANS}"
            )
        try:
            check_label_epsilon(privacy.epsilon, label_dp.mechanism)
        except ConfigError as error:
            raise ValueError(f"{error.message}: {error.hint}") from None
        if privacy.mechanism != "analytic":
            raise ValueError("privacy.mechanism does nothing in a label-dp job, remove it: see label_dp.mechanism")
        if label_dp.mechanism != "gaussian" and privacy.delta != PrivacySettings.model_fields["delta"].default:
            raise ValueError(f"privacy.delta does nothing with {label_dp.mechanism}, whose delta is 0: remove it")
        if label_dp.epsilon_prior is not None and label_dp.epsilon_prior >= privacy.epsilon:
            raise ValueError("label_dp.epsilon_prior is a part of privacy.epsilon, and must be below it")
        return self
