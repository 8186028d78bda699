from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import demo_authority


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority's folder."""
    return demo_authority(tmp_path)
