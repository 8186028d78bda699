from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import demo_authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("authority"))
