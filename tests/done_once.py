"""A job that is done once for a module: each test has a copy of all that it left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def done_once(make: Callable[[Path], Any]) -> tuple[Any, Any]:
    """Fixtures job_done, a house and its first job, which nobody disturbed; and trained, the same for a test alone."""

    @pytest.fixture(scope="module")
    def job_done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
        house = make(tmp_path_factory.mktemp("house"))
        return house, house.run()

    @pytest.fixture
    def trained(job_done: tuple[Any, Any], tmp_path: Path) -> tuple[Any, Any]:
        house, session = job_done
        return house.copied_to(tmp_path), session

    return job_done, trained
