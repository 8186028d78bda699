from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import demo_authority


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of an authority."""
    return demo_authority(tmp_path)
