"""Files of the cluster's parties, made once. Tests read them, and a test that changes them makes a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.running import hand_out_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    hand_out_data(folder)
    return folder
