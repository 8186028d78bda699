"""An evaluate job: one more noisy weighted sum, over rows that a model has scored."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms import fixed_point
from blindfit.algorithms.protocols.walr.grid import Grid, wide_grid
from blindfit.algorithms.statistics.walr.evaluation import FIGURES, LEAST_BINS, LEAST_SCORE_BOUND, MOST_BINS, FigureName
from blindfit.parties.job.tables import EPSILON_MEANS
from blindfit.parties.measurement.trust import SumJob, Trust
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import Settings

NORM_BOUND = 1.0  # largest norm of a row that is sent
FracBits = Annotated[int, Field(ge=fixed_point.MIN_FRAC_BITS, le=fixed_point.MAX_FRAC_BITS)]


class EvaluateSettings(Settings):
    """Model to evaluate, and figures to release."""

    session: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    """Session of the training whose model is evaluated."""
    rows: Literal["held-out", "all"] = "held-out"
    """Rows to evaluate on: the "held-out" rows of that training, or "all" rows of the dataset as it is now."""
    scores: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    """Session of the joint prediction. Set it if several parties hold columns."""
    figures: tuple[FigureName, ...] = FIGURES
    """Figures to release. Each additional figure adds noise to all of them."""
    bins: int = Field(20, ge=LEAST_BINS, le=MOST_BINS)
    """Number of bins of the score, for AUC and KS. Lower it for few rows: each bin has its own noise."""
    score_bound: float | Literal["auto"] = "auto"
    """Bound to which log odds are clipped. "auto" takes the bound that 99% of the rows keep to."""
    trust: Trust = "trusted"
    """Trust in the measurement servers. With "trusted", one server reads labels and scores. With "encrypted-rows", one
    server reads labels, and scores are encrypted. With "two-servers", two servers hold shares of the labels and read
    the scores. With "shared-rows", two servers hold shares of labels and scores, and a key node deals masks.
    """
    frac_bits: FracBits | Literal["auto"] = "auto"
    """Fraction bits of the grid for scores and noise, whose noise must be 2^16 steps wide. "auto" takes 16, or the
    number that the noise needs.
    """

    @model_validator(mode="after")
    def _each_figure_once(self) -> EvaluateSettings:
        if not self.figures or len(set(self.figures)) < len(self.figures):
            raise ValueError("figures must name each figure once, and one at least")
        if self.score_bound != "auto" and self.score_bound < LEAST_SCORE_BOUND:
            raise ValueError(f'score_bound must be "auto" or a number, {LEAST_SCORE_BOUND:g} at least')
        if "auc" not in self.figures and self.bins != EvaluateSettings.model_fields["bins"].default:
            raise ValueError('bins does nothing without "auc" among the figures, remove it')
        return self


class EvaluateJob(SumJob):
    protocol: Literal["evaluate"] = "evaluate"
    """System that computes the job."""
    evaluate: EvaluateSettings = EvaluateSettings()
    scores_rows: ClassVar[bool] = True

    trust_option: ClassVar[str] = "evaluate.trust"

    @property
    def grid(self) -> Grid:
        """Grid of the scores. It is public, because it follows only from the job."""
        if self.evaluate.frac_bits != "auto":
            return Grid.of(NORM_BOUND, self.evaluate.frac_bits)
        return wide_grid(NORM_BOUND, self.noise_multiplier, self.required_privacy.max_rows_per_person or 1)

    @property
    def takes_models_of(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.evaluate.scores, self.evaluate.session)))

    @property
    def trust(self) -> Trust:
        return self.evaluate.trust

    @model_validator(mode="after")
    def _has_a_model_and_a_price(self) -> EvaluateJob:
        if not self.evaluate.session:
            raise ValueError(
                "evaluate.session is missing: the session of the training whose model is evaluated (`blindfit evaluate "
                "--model DIR` takes it from that training's report.json)"
            )
        if self.privacy is None:
            raise ValueError(
                f"privacy.epsilon is missing: an evaluation is a release under differential privacy. {EPSILON_MEANS}"
            )
        return self
