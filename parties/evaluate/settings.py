"""An evaluate job: one more noisy weighted sum, of rows that a model has scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms import fixed_point
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols.walr.grid import Grid, wide_grid
from blindfit.algorithms.statistics.walr.evaluation import FIGURES, LEAST_BINS, LEAST_SCORE_BOUND, MOST_BINS, FigureName
from blindfit.parties.job.parameters import PrivateParameters
from blindfit.parties.measurement import trust
from blindfit.parties.measurement.trust import ASK_TWO_SERVERS, ENCRYPTED_ROWS, SHARED_ROWS, Trust
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import Settings

NORM_BOUND = 1.0  # of what is sent of a row
FracBits = Annotated[int, Field(ge=fixed_point.MIN_FRAC_BITS, le=fixed_point.MAX_FRAC_BITS)]


class EvaluateSettings(Settings):
    """Which model is evaluated, by which figures."""

    session: str = Field("", pattern=f"^$|{SESSION}", max_length=64)  # the training whose model is evaluated
    rows: Literal["held-out", "all"] = "held-out"  # of that training, or all of the dataset as it is now
    scores: str = Field("", pattern=f"^$|{SESSION}", max_length=64)  # the joint prediction, where several hold columns
    figures: tuple[FigureName, ...] = FIGURES  # each more than one makes the noise of all larger
    # of the score, for AUC and KS; fewer where rows are few: each bin has noise of its own
    bins: int = Field(20, ge=LEAST_BINS, le=MOST_BINS)
    score_bound: float | Literal["auto"] = "auto"  # log-odds are clipped to it; "auto": what 99 % of the rows keep to
    trust: Trust = "trusted"  # one server with labels and rows, two with shares of labels, or one without rows
    # of the grid on which scores and noise lie, whose noise must be 2^16 steps wide; "auto": 16, or what that needs
    frac_bits: FracBits | Literal["auto"] = "auto"

    @model_validator(mode="after")
    def _each_figure_once(self) -> EvaluateSettings:
        if not self.figures or len(set(self.figures)) < len(self.figures):
            raise ValueError("figures must name each figure once, and one at least")
        if self.score_bound != "auto" and self.score_bound < LEAST_SCORE_BOUND:
            raise ValueError(f'score_bound must be "auto" or a number, {LEAST_SCORE_BOUND:g} at least')
        if "auc" not in self.figures and self.bins != EvaluateSettings.model_fields["bins"].default:
            raise ValueError('bins does nothing without "auc" among the figures, remove it')
        return self


class EvaluateJob(PrivateParameters):
    protocol: Literal["evaluate"] = "evaluate"  # which system computes
    evaluate: EvaluateSettings = EvaluateSettings()
    scores_rows: ClassVar[bool] = True

    trust_option: ClassVar[str] = "evaluate.trust"

    @property
    def grid(self) -> Grid:
        """Public, as it follows from the job alone."""
        if self.evaluate.frac_bits != "auto":
            return Grid.of(NORM_BOUND, self.evaluate.frac_bits)
        privacy = self.required_privacy
        multiplier = gaussian.noise_multiplier(privacy.mechanism, privacy.epsilon, privacy.delta)
        return wide_grid(NORM_BOUND, multiplier, privacy.max_rows_per_person or 1)

    @property
    def asks_shares(self) -> bool:
        return self.evaluate.trust in ASK_TWO_SERVERS

    @property
    def encrypts_rows(self) -> bool:
        return self.evaluate.trust == ENCRYPTED_ROWS

    @property
    def shares_rows(self) -> bool:
        return self.evaluate.trust == SHARED_ROWS

    @property
    def unsafe(self) -> tuple[str, ...]:
        return trust.unsafe(self.evaluate.trust)

    def unsafe_at(self, role: str) -> tuple[str, ...]:
        return self.unsafe if role == "measurement" else ()

    def wrong_parties(self, roles: Sequence[str]) -> str:
        return trust.wrong_servers(self.trust_option, self.evaluate.trust, roles)

    @model_validator(mode="after")
    def _has_a_model_and_a_price(self) -> EvaluateJob:
        if not self.evaluate.session:
            raise ValueError(
                "evaluate.session is missing: the session of the training whose model is evaluated (`blindfit evaluate "
                "--model DIR` takes it from that training's report.json)"
            )
        if self.privacy is None:
            raise ValueError("privacy.epsilon is missing: an evaluation is a release under differential privacy")
        return self
