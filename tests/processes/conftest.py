"""A shop and a meter on disk, and the command line to run them with, as a user would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.done_once import Kept, folder
from tests.world import World
from tests.world.measured import project, shop_and_meter

__all__ = ["project"]  # a fixture


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept.after_a_run(shop_and_meter(folder(tmp_path_factory)), "out")


@pytest.fixture
def ran(first_run: Kept) -> Iterator[World]:
    """A project whose job has run once, into out."""
    with first_run.anew() as project:
        yield project
