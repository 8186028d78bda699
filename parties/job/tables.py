"""Tables of a job file that several systems share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blindfit.algorithms.alignment.clk import DEFAULT_HASHES, Encoding
from blindfit.algorithms.alignment.clk import Field as LinkageField
from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.fixed_point import MAX_ROWS
from blindfit.parties.tables import HeldOutFraction, Settings, as_value_errors, explain

LEAST_EPSILON, LEAST_DELTA = 1e-6, 1e-100  # least values that a measurement server answers
MOST_EPSILON = 50.0


class PrivacySettings(Settings):
    """Limit of what the release may reveal, and so the size of its noise."""

    epsilon: float = Field(gt=0, le=MOST_EPSILON)
    """Privacy loss of all that the job releases together. A smaller epsilon reveals less and adds more noise."""
    delta: float = Field(1e-5, gt=0, lt=0.5)
    """Probability with which the promise of epsilon may fail. Keep it below 1 / the number of rows."""
    mechanism: Literal["analytic", "classic"] = "analytic"
    """Calibration of the noise. "classic" adds more noise, and is proved only for epsilon below 1."""
    max_rows_per_person: int | None = Field(None, ge=1, le=2**16)
    """Largest number of rows of one person that count. By default the number that the dataset declares."""
    release: str = Field("", max_length=64)
    """Name of the release. Another name draws the noise again, which is charged again."""

    def set_besides(self, *names: str) -> str:
        """Return the first option, except these, that differs from its default; "" if there is no such option."""
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
            raise ValueError('mechanism = "classic" is proved only for epsilon < 1: take "analytic"')
        return self


EPSILON_MEANS = explain(PrivacySettings, "epsilon")
"""Meaning of the number, for a job that lacks it."""


class SplitSettings(Settings):
    """Choice of the test rows."""

    test_fraction: HeldOutFraction = 0.2
    """Fraction of rows that are held out: 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3 or 0.5. They are not sent and not trained
    on. 0 trains on all rows and evaluates nothing."""


def _field(text: str) -> LinkageField:
    name, _, rest = text.partition(":")
    kind, _, hashes = rest.partition(":")
    if hashes and not hashes.isdigit():
        raise ConfigError(f"align.fields: {text!r} is not of the form name:kind:hashes")
    return LinkageField(name, kind or "text", int(hashes or DEFAULT_HASHES))  # type: ignore[arg-type]


class AlignSettings(Settings):
    """Search for the common rows of all parties."""

    method: Literal["psi", "linkage"] = "psi"
    """Way to find common rows: "psi" compares ids, "linkage" compares similar fields if the parties have no common
    ids."""
    min_common: int = Field(100, ge=1, le=MAX_ROWS)
    """Smallest number of common rows with which the job continues. Raise it if a model of few rows is of no use."""
    fields: tuple[str, ...] = ()
    """Fields to link by, each as name, name:kind or name:kind:hashes, such as "last_name", "birth_date:date" or
    "postcode:text:20"."""
    threshold: float = Field(0.8, ge=0.5, le=1)
    """Smallest similarity of a match in a linkage. Raise it for fewer wrong matches, lower it for fewer missed
    matches."""
    fold: bool = True
    """Folding of linkage filters to half their size. Folded filters are harder to attack."""
    match_rate: float = Field(0.5, gt=0, le=1)
    """Smallest fraction of the slots of a linkage that match. Defences count only so many rows; a rate above 0.5 needs
    the flag `leverage`.
    """

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> AlignSettings:
        defaults = AlignSettings.model_fields
        for name in ("fields", "threshold", "fold", "match_rate"):
            if self.method == "psi" and getattr(self, name) != defaults[name].default:
                raise ValueError(f'{name} does nothing with method = "psi", remove it')
        if self.method == "linkage":
            if not self.fields:
                raise ValueError('fields is missing: linkage compares some, such as ["last_name", "birth_date:date"]')
            with as_value_errors():
                self.encoding()
        return self

    def encoding(self) -> Encoding:
        """Return the conversion of records to filters.

        Raises:
            ConfigError: a field is not of the form name, kind and hashes.
        """
        return Encoding(tuple(map(_field, self.fields)), fold=self.fold)


class TimeoutSettings(Settings):
    """Longest waits, in seconds."""

    step_s: float = Field(120.0, gt=0, le=86400)
    """Longest time that a peer may take for one step, in seconds. Raise it for slow machines or millions of rows."""
    reconnect_s: float = Field(30.0, gt=0, le=86400)
    """Longest time that a connection may be cut, in seconds. Raise it for networks that fail for longer."""
    session_s: float = Field(3600.0, gt=0, le=30 * 86400)
    """Longest time that a party may prepare or compute, in seconds. Raise it for millions of rows."""
    approval_s: float = Field(3600.0, gt=0, le=30 * 86400)
    """Longest time that an operator may take to approve, in seconds. Raise it if nobody is there at night."""
