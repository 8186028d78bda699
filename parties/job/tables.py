"""Tables of a job file that several systems share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blindfit.algorithms.alignment.clk import DEFAULT_HASHES, Encoding
from blindfit.algorithms.alignment.clk import Field as LinkageField
from blindfit.algorithms.errors import ConfigError
from blindfit.parties.tables import Settings

LEAST_EPSILON, LEAST_DELTA = 1e-6, 1e-100  # that a measurement server answers


class PrivacySettings(Settings):
    """What the release may tell, and so how much noise it has."""

    # what all that the job releases may tell together; smaller tells less, and is noisier
    epsilon: float = Field(gt=0, le=50)
    # the chance that is left out of the promise; keep it below one in the number of rows
    delta: float = Field(1e-5, gt=0, lt=0.5)
    # how noise is calibrated; "classic" is wider, and proved below epsilon 1 alone
    mechanism: Literal["analytic", "classic"] = "analytic"
    max_rows_per_person: int | None = Field(None, ge=1, le=2**16)  # None: what the dataset declares
    release: str = Field("", max_length=64)  # another name asks for another draw, charged again

    def set_besides(self, *names: str) -> str:
        """Return the first option, other than these, that is set to something else than its default; or ""."""
        fields = type(self).model_fields
        return next((n for n in fields if n not in names and getattr(self, n) != fields[n].default), "")

    @model_validator(mode="after")
    def _has_a_noise(self) -> PrivacySettings:
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON:g}: an answer would be nothing but noise")
        if self.delta < LEAST_DELTA:
            raise ValueError(f"delta must be at least {LEAST_DELTA:g}")
        return self

    @model_validator(mode="after")
    def _classic_is_proved_below_1(self) -> PrivacySettings:
        if self.mechanism == "classic" and self.epsilon >= 1:
            raise ValueError('mechanism = "classic" is proved for epsilon < 1 alone: take "analytic"')
        return self


class SplitSettings(Settings):
    """Which rows are for the test."""

    # rows that are not sent and not trained on; 0: all are trained on, and nothing is evaluated
    test_fraction: float = Field(0.2, ge=0, lt=1)


def _field(text: str) -> LinkageField:
    name, _, rest = text.partition(":")
    kind, _, hashes = rest.partition(":")
    if hashes and not hashes.isdigit():
        raise ConfigError(f"align.fields: {text!r} is not of the form name:kind:hashes")
    return LinkageField(name, kind or "text", int(hashes or DEFAULT_HASHES))  # type: ignore[arg-type]


class AlignSettings(Settings):
    """How rows that all have are found."""

    # how common rows are found: "psi" by ids, "linkage" by similar fields where no id is common
    method: Literal["psi", "linkage"] = "psi"
    min_common: int = Field(100, ge=1)  # fewer common rows end the job
    # Of linkage:
    fields: tuple[str, ...] = ()  # "last_name", "birth_date:date", "postcode:text:20" (name, kind, hashes)
    threshold: float = Field(0.8, ge=0.5, le=1)  # the least similarity of a match
    fold: bool = True  # filters of half the size, harder to attack
    match_rate: float = Field(0.5, gt=0, le=1)  # what share of the slots match, at least; above .5 by a flag

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


class TimeoutSettings(Settings):
    """How long each wait may last, in seconds."""

    # the longest a peer may take for one step; raise it where machines are slow or rows are millions
    step_s: float = Field(120.0, gt=0, le=86400)
    # the longest a cut may last; raise it where networks fail for longer
    reconnect_s: float = Field(30.0, gt=0, le=86400)
    # the longest a party may prepare or compute; raise it for millions of rows
    session_s: float = Field(3600.0, gt=0, le=30 * 86400)
    # the longest an operator may take to approve; raise it where nobody is there at night
    approval_s: float = Field(3600.0, gt=0, le=30 * 86400)
