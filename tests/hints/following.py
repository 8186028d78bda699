"""A hint is followed: a refusal comes, the test does what its text advises, and the refusal is gone.

Each case declares the text of the code that it follows, with {} for computed parts. tests/hints/test_all_followed.py
compares these texts with all hints of the code.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.coordinator.preflight.findings import Finding
from blindfit.parties.wire import error_codes
from tests.command import Done

SETS = re.compile(
    r"""([a-z_]+(?:\.[\w-]+)+)\ =\ ("[^"]*"|\[[^\]]*\]|\{[^}]*\}|-?\d[\d.]*(?:e-?\d+)?(?<!\.)|true|false)""", re.VERBOSE
)


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text of the code, with any text in the place of its {} or {name}."""
    parts = re.split(r"\{[a-z_]*\}", text)
    return re.compile(
        "(.*?)".join(map(re.escape, parts)) + ("$" if text.endswith("}") and not parts[-1] else ""), re.DOTALL
    )


def says(text: str) -> str:
    """Return a text of the code that a case of a table follows."""
    return text


class Told:
    """Texts of a refusal."""

    def __init__(self, declared: str) -> None:
        self.declared, self.text = declared, ""
        self.parts: tuple[str, ...] = ()

    def hear(self, text: str) -> None:
        found = _pattern(self.declared).search(text)
        assert found, f"{self.declared!r} is not in what was said: {text!r}"
        self.text, self.parts = text, found.groups()

    def is_in(self, text: str) -> bool:
        return _pattern(self.declared).search(text) is not None

    @property
    def options(self) -> dict[str, Any]:
        """Every `table.option = value` of the text."""
        return {name: tomllib.loads(f"value = {value}")["value"] for name, value in SETS.findall(self.text)}

    @property
    def sets(self) -> list[str]:
        """Every `table.option=value` of the text, as `--set` takes it."""
        return [f"{name}={value}" for name, value in SETS.findall(self.text)]

    def set(self, option: str) -> str:
        """Return the setting of one of these options; the text may give its present value before."""
        return [text for text in self.sets if text.startswith(f"{option}=")][-1]

    @property
    def commands(self) -> list[list[str]]:
        """Every `blindfit ...` of the text, without its first word."""
        return [shlex.split(command)[1:] for command in re.findall(r"`(blindfit [^`]*)`", self.text)]


@contextmanager
def refused(declared: str) -> Iterator[Told]:
    """Check that the block is refused with this text, by an error of ours, and at other parties if they receive it."""
    told = Told(declared)
    with pytest.raises(BlindfitError) as caught:
        yield told
    told.hear(_said(caught.value))
    if isinstance(caught.value, PolicyRefused):
        over = error_codes.error_of(error_codes.status_of(caught.value), peer="peer")
        assert _said(over) == _said(caught.value)  # whole


def _said(error: BlindfitError) -> str:
    return f"{error.message}\n{error.hint}"


def refused_value(declared: str, text: str) -> Told:
    """Return the value that a printed text, such as a command's, refuses."""
    told = Told(declared)
    told.hear(text)
    return told


def refused_command(declared: str, done: Done) -> Told:
    assert done.returncode, done.stdout
    return refused_value(declared, done.stderr)


def found(declared: str, findings: Iterable[Finding], *levels: str) -> Told:
    """Return the finding of the pre-flight with this text."""
    told = Told(declared)
    wanted = [finding for finding in findings if finding.level in (levels or ("refuses", "warning"))]
    said = [finding.text for finding in wanted if told.is_in(finding.text)]
    assert said, f"{declared!r} is not in {[finding.text for finding in wanted]}"
    told.hear(said[0])
    return told


def not_found(told: Told, findings: Iterable[Finding]) -> None:
    again = [finding.text for finding in findings if finding.level in ("refuses", "warning")]
    assert not [text for text in again if told.is_in(text)]


def led_past(told: Told, follow: Callable[[], object]) -> None:
    """Do what the hint asks, and check that the same refusal does not come; another one may."""
    said = ""
    try:
        follow()
    except BlindfitError as error:
        said = _said(error)
    assert not told.is_in(said)


def changed(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with another value; None removes the option."""
    first, _, rest = path.partition(".")
    copy = dict(values)
    if rest:
        copy[first] = changed(copy.get(first, {}), rest, value)
    elif value is None:
        copy.pop(first, None)
    else:
        copy[first] = value
    return copy


def with_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    for path, value in changes.items():
        values = changed(values, path, value)
    return dict(values)
