from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from tests.certificates import demo_authority
from tests.interference.neighbours import Probe


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """The probe runs each case only once."""
    probe = Probe(demo_authority(tmp_path_factory.mktemp("interference")))
    yield probe
    probe.close()


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """A party's own log is not compared."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)
