"""For a conftest whose tests need ed25519 itself, not quick_points.py."""

from collections.abc import Iterator
from unittest import mock

import pytest
from nacl import bindings

from blindfit.algorithms.alignment import psi


@pytest.fixture(autouse=True, scope="module")
def on_the_curve() -> Iterator[None]:
    with mock.patch.object(psi, "bindings", bindings):
        yield
