from __future__ import annotations

from pathlib import Path

import pytest

from tests.world.split_labels import Split


@pytest.fixture
def house(tmp_path: Path) -> Split:
    return Split(tmp_path)
