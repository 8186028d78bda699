"""Texts of the command line, read as options of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.simulate.asked import ALL, Asked, Range, read_parties, refuse_repeats


def read_asked(
    *,
    parties: int | None,
    party: Sequence[str],
    label_range: str,
    bounds: Sequence[str],
    systems: str,
    epsilon: str,
    **more: Any,
) -> Asked:
    """Raise ConfigError: a text does not have the form of its option."""
    if parties is not None and party:
        raise ConfigError("--parties and --party both define the parties", hint="take one of the two")
    ranges = [_read_bounds(text) for text in bounds]
    refuse_repeats("--bounds", "column", [name for name, _ in ranges])
    return Asked(
        parties=read_parties(party) if party else Asked.parties if parties is None else parties,
        label_range=_read_range("--label-range", label_range) if label_range else None,
        bounds=dict(ranges),
        systems=ALL if systems.strip() == "all" else tuple(_split(systems)),
        epsilons=tuple(_number("--epsilon", text) for text in _split(epsilon)),
        **more,
    )


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!a} is not a number", hint=f"such as {option} 0.5,1,2") from None


def _read_bounds(text: str) -> tuple[str, Range]:
    """Return NAME:LOW:HIGH in parts; a name may contain colons."""
    name, *numbers = text.rsplit(":", 2)
    if len(numbers) < 2 or not name:
        raise ConfigError(f"--bounds {text!a} is not NAME:LOW:HIGH", hint="such as --bounds age:0:110")
    return name, _read_range(f"--bounds {name}", ":".join(numbers))


def _read_range(option: str, text: str) -> Range:
    """Return LOW:HIGH as two numbers.

    Raises:
        ConfigError: the text does not have two numbers.
    """
    low, colon, high = text.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        colon, found = "", (0.0, 0.0)
    if not colon:
        raise ConfigError(f"{option}: {text!a} is not LOW:HIGH, two numbers", hint="such as 0:110")
    return found
