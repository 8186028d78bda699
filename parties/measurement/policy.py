"""Policy of a measurement server for label-dp jobs, whose labels it releases."""

from __future__ import annotations

from pydantic import Field, field_validator

from blindfit.algorithms.privacy.label_mechanism_options import NAMES
from blindfit.parties.settings import PartySettings, SystemPolicy


class LabelDPPolicy(SystemPolicy):
    """Policy of a measurement server for label-dp jobs."""

    mechanisms: list[str] | None = Field(None, min_length=1)
    """Mechanisms that a job may use to randomise labels. By default all of them. A shorter list refuses more jobs."""

    @property
    def allowed(self) -> list[str]:
        return sorted(NAMES if self.mechanisms is None else self.mechanisms)

    def in_vain_at(self, party: PartySettings) -> str:
        if party.releases_labels:
            return ""
        return 'is for a measurement server\'s datasets of label_kind = "number"'

    @field_validator("mechanisms")
    @classmethod
    def _mechanisms_exist(cls, mechanisms: list[str] | None) -> list[str] | None:
        unknown = sorted(set(mechanisms or ()) - set(NAMES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(NAMES)}")
        return mechanisms
