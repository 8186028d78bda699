"""Clients that ask for labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blindfit.parties.measurement.calls import ReleasedLabels
from tests.certificates import demo_authority
from tests.release_labels.house import LAPLACE, NAMES


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("labels"))


async def ask(
    world: Any, ids: Any = NAMES, settings: Any = LAPLACE, consumer: str = "shop", **more: Any
) -> ReleasedLabels:
    client = world.client(consumer)
    return await client.release_labels(await client.describe("prices"), ids, settings, **more)
