"""A predict job: new rows, which the parties score together."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.settings import SESSION
from blindfit.parties.tables import Settings


class PredictSettings(Settings):
    """Model that scores new rows."""

    session: str = Field("", pattern=f"^$|{SESSION}", max_length=64)
    """Session of the training whose model scores the rows."""


class PredictJob(AlignedParameters):
    protocol: Literal["predict"] = "predict"
    """System that computes the job."""
    predict: PredictSettings = PredictSettings()
    scores_rows: ClassVar[bool] = True

    @property
    def takes_models_of(self) -> tuple[str, ...]:
        return (self.predict.session,)

    @model_validator(mode="after")
    def _has_a_model(self) -> PredictJob:
        if not self.predict.session:
            raise ValueError(
                "predict.session is missing: the session of the training whose model is used (`blindfit predict "
                "--model DIR` takes it from that training's report.json)"
            )
        if self.align.method != "psi":
            raise ValueError(
                "align.method: after a linkage no party learns which rows match, so no row can be scored: set "
                'align.method = "psi" and remove other options of [align]'
            )
        return self
