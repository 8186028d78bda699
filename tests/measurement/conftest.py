from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.measurement.house import NAMES, House, make_dataset


@pytest.fixture
def open_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Makes houses, by default of one dataset of twelve rows, every second of which has a label."""
    houses: list[House] = []

    def make(**settings: Any) -> House:
        if "datasets" not in settings:
            labels = {name: i % 2 for i, name in enumerate(NAMES)}
            settings["datasets"] = {"visits": make_dataset(tmp_path, labels)}
        houses.append(House(tmp_path, **settings))
        return houses[-1]

    yield make
    for house in houses:
        house.close()


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    return open_house()
