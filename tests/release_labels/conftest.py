from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.measurement.house import House
from tests.release_labels.house import WIDE, Counter, make_labels


@pytest.fixture
def open_counter(tmp_path: Path) -> Iterator[Callable[..., Counter]]:
    """Opens counters, by default of one dataset of forty rows and a budget of 50."""
    houses: list[House] = []

    def make(**settings: Any) -> Counter:
        settings = {"datasets": None, "budget": WIDE} | settings
        settings["datasets"] = settings["datasets"] or {"prices": make_labels(tmp_path)}
        houses.append(House(tmp_path, **settings))
        return Counter(houses[-1])

    yield make
    for house in houses:
        house.close()


@pytest.fixture
def counter(open_counter: Callable[..., Counter]) -> Counter:
    return open_counter()
