"""What a WALR job has released, and releases without noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols.walr import ConsumerRows, NoisySum
from blindfit.parties.measurement.servers import Servers


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 0 in the place of all noise, so that a test can count."""

    def zeros(n: int, sigma_squared: Fraction, uniform: Any) -> list[int]:
        return [0] * n

    monkeypatch.setattr(gaussian, "sample_vector", zeros)


def released(monkeypatch: pytest.MonkeyPatch) -> list[NoisySum]:
    """What the active party fits to, job by job."""
    found: list[NoisySum] = []
    release = Servers.release

    async def noted(self: Servers, rows: ConsumerRows, requests: Any) -> Any:
        made = await release(self, rows, requests)
        found.append(made.aggregate.answer)
        return made

    monkeypatch.setattr(Servers, "release", noted)
    return found
