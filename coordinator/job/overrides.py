"""Errors about options that the command line sets, which a file may not have at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from blindfit.algorithms.errors import ConfigError

T = TypeVar("T")


def read_with(
    read: Callable[[list[str]], T], path: Path, overrides: Sequence[str] | None, more: Sequence[str] = ()
) -> T:
    """Read a file with overrides; an error that `--set` causes names the option next to the file.

    Args:
        read: function that reads the file with a list of overrides.
        overrides: values of `--set`.
        more: overrides that other options of the command line make.
    """
    given = list(overrides or [])
    try:
        return read([*given, *more])
    except ConfigError as error:
        blamed = [
            text
            for number, text in enumerate(given)
            if _changes(error, read, [*given[:number], *given[number + 1 :], *more])
        ]
        if blamed and error.message.startswith(str(path)):
            options = " ".join(f"--set {text.partition('=')[0].strip()}" for text in blamed)
            named = f"{path} with {options}{error.message.removeprefix(str(path))}"
            raise ConfigError(named, hint=error.hint) from None
        raise


def _changes(error: ConfigError, read: Callable[[list[str]], object], overrides: list[str]) -> bool:
    """Return True if the error changes with fewer overrides."""
    try:
        read(overrides)
    except ConfigError as other:
        return other.message != error.message
    return True
