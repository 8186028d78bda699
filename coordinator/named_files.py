"""Tables that the command line names, and no party's file: their errors speak of the option, not of a `url`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from blindfit.algorithms.errors import DataError

OF_A_PARTY_FILE = "`url`"


@contextmanager
def named_by(option: str) -> Iterator[None]:
    """
    Args:
        option: as it is typed, "--members".
    """
    try:
        yield
    except DataError as error:
        error.hint = error.hint.replace(OF_A_PARTY_FILE, option)
        raise
