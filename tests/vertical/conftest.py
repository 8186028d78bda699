"""Parties in this process have small keys, as forked ones have."""

from collections.abc import Iterator

import pytest

from tests.quick_keys import quick_keys


@pytest.fixture(autouse=True, scope="module")
def _quick_keys() -> Iterator[None]:
    with quick_keys():
        yield
