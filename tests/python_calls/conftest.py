"""Jobs that Python calls run, with forked parties."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from blindfit.coordinator.running import launcher
from tests.command import Forked
from tests.world.loans import loans
from tests.world.measured import shop_and_meter
from tests.world.world import World


@pytest.fixture(autouse=True)
def forked_parties(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fork the parties, and work in the test's folder, as a notebook does in its own."""
    monkeypatch.setattr(launcher, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Forked}))
    monkeypatch.chdir(tmp_path)


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
