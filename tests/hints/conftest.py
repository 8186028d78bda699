from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import World
from tests.world.loans import loans, speed_is_not_measured

__all__ = ["speed_is_not_measured"]


@pytest.fixture(autouse=True)
def _speed(speed_is_not_measured: None) -> None:
    """Measure no speed in any test of this folder."""


@pytest.fixture
def taylor(tmp_path: Path) -> World:
    return loans(tmp_path, "taylor")


@pytest.fixture
def falcon(tmp_path: Path) -> World:
    return loans(tmp_path, "falcon")
