"""Jobs that Python calls run, with forked parties."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import forked_parties
from tests.world.loans import loans
from tests.world.measured import shop_and_meter
from tests.world.world import World


@pytest.fixture(autouse=True)
def in_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Fork the parties, and work in the test's folder, as a notebook does in its own."""
    monkeypatch.chdir(tmp_path)
    with forked_parties():
        yield


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[World]:
    """A shop and a measurement server, and a walr job."""
    world = shop_and_meter(tmp_path)
    yield world
    world.stop()


@pytest.fixture
def vertical(tmp_path: Path) -> World:
    """A bank, a post, a shop and a key node, and a taylor job."""
    return loans(tmp_path, "taylor", columns=(3, 4, 5))
