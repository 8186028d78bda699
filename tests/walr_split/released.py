"""Released and fitted sums of WALR jobs, and releases without noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols.walr import ConsumerRows, NoisySum
from blindfit.algorithms.statistics.walr.fit import treatment_of
from blindfit.parties.measurement.servers import Servers
from blindfit.parties.walr import fit, lead


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all noise by 0, so that a test can count."""

    def zeros(n: int, sigma_squared: Fraction, uniform: Any) -> list[int]:
        return [0] * n

    monkeypatch.setattr(gaussian, "sample_vector", zeros)


def released(monkeypatch: pytest.MonkeyPatch) -> list[NoisySum]:
    """Return the sums that the active party fits to, job by job."""
    found: list[NoisySum] = []
    release = Servers.release

    async def noted(self: Servers, rows: ConsumerRows, requests: Any) -> Any:
        made = await release(self, rows, requests)
        found.append(made.aggregate.answer)
        return made

    monkeypatch.setattr(Servers, "release", noted)
    return found


def cells_of_treatments(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return for how many rows times columns each job chooses the treatment of mu."""
    cells: list[int] = []

    def noted(treatment: Any, of: int) -> Any:
        cells.append(of)
        return treatment_of(treatment, of)

    for module in (lead, fit):
        monkeypatch.setattr(module, "treatment_of", noted)
    return cells
