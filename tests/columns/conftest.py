from __future__ import annotations

import pytest

from tests.postgres import running_postgres


@pytest.fixture(scope="session")
def postgres():
    with running_postgres() as server:
        yield server
