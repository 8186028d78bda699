"""What is said alike, whoever is trusted."""

from __future__ import annotations

from blindfit.coordinator.terminal.wording import figure
from blindfit.parties.walr.report import PrivacyFigures


def sensitivity(privacy: PrivacyFigures) -> str:
    return (
        f"Between neighbours the exact sum differs by at most {figure(privacy.sensitivity)} in Euclidean norm: "
        "its sensitivity."
    )
