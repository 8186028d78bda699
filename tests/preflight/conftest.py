from __future__ import annotations

import functools
from pathlib import Path

import pytest

from blindfit.coordinator.vertical import cost_of_shares as falcon_cost
from tests.world import World
from tests.world.loans import loans, speed_is_not_measured

__all__ = ["speed_is_not_measured"]
N_ROWS = 600
_counted = functools.cache(falcon_cost.cost_of)  # most of these tests have the same sizes


@pytest.fixture
def project(tmp_path: Path, speed_is_not_measured: None) -> World:
    return loans(tmp_path, "taylor", N_ROWS, only_in_shop=50)


@pytest.fixture
def shares(tmp_path: Path, speed_is_not_measured: None, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(falcon_cost, "cost_of", _counted)
    return loans(tmp_path, "falcon", N_ROWS, only_in_shop=50)
