"""The view of one observer of a run: lists of normalised lines by which two runs can be compared."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.interference.kinds import (
    DERIVED,
    EXACT,
    MACHINE,
    RANDOM,
    RELEASED,
    UNPROTECTED,
    Treatment,
    treatment_of,
)


class Shown(NamedTuple):
    """One field that was seen; there are a million of them.

    Attributes:
        value: original value; only that of an EXACT field is compared.
        charged: True if a charge was durable by then.
    """

    name: str
    value: Any
    treatment: Treatment
    charged: bool

    def text(self, numbers: Mapping[tuple[str, Any], int], declared: tuple[str, ...], *, covered: bool) -> str:
        """Return the text by which the field is compared.

        Args:
            numbers: numbers of random values, by first appearance.
            declared: names that this comparison treats as DECLARED.
            covered: True if a charge pays for the private unit, so that nothing RELEASED may come before it.
        """
        if declared and is_of(self.name, declared):
            return f"<{kind_of(self.value)}>"
        if self.treatment is RELEASED and covered and not self.charged:
            return f"{_plain(self.value)} before its charge"
        if self.treatment is EXACT or (self.treatment is UNPROTECTED and covered):
            return f"{_plain(self.value)}"
        if self.treatment in (RANDOM, DERIVED):
            return f"<{self.treatment} {numbers[self.key]} of length {len(self.value)}>" if self.value else "<none>"
        if self.treatment is MACHINE:
            return "<machine>"
        return f"<{self.treatment} {kind_of(self.value)}>"

    @property
    def key(self) -> tuple[str, Any]:
        """Name and value under which equal random values share a number; a dataset's version has several names."""
        return ("", _plain(self.value))


@cache
def is_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def kind_of(value: Any) -> str:
    """Return type and shape, and nothing else."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, bytes):
        return f"bytes[{len(value)}]"
    if isinstance(value, str):  # numbers in words show their length
        return "str"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(kind_of, value))}]" if len(value) < 5 else f"{kind_of(value[0])} x {len(value)}"
    return type(value).__name__


def _plain(value: Any) -> Any:
    # most values are: this is quicker than checking whether they are sequences
    if isinstance(value, str | bytes | int):
        return value
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Sequence):
        return tuple(map(_plain, value))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def shown(name: str, value: Any, *, charged: bool, kind: str = "") -> Shown:
    return Shown(name, value, treatment_of(name, kind), charged)


@dataclass(frozen=True, repr=False)
class Line:
    """A message, answer, event or error."""

    what: str
    fields: tuple[Shown, ...] = ()

    def texts(
        self,
        numbers: Mapping[tuple[str, Any], int],
        declared: tuple[str, ...],
        omitted: tuple[str, ...],
        *,
        covered: bool,
    ) -> list[str]:
        fields = [s for s in self.fields if not is_of(s.name, omitted)] if omitted else self.fields
        return [self.what, *(f"{s.name} = {s.text(numbers, declared, covered=covered)}" for s in fields)]


Stream = tuple[str, str, str]  # sender, receiver, call
RACING = ("PEER_ABORTED", "PEER_UNREACHABLE", "CANCELLED")  # how a session ends for the parties that did not end it
FELL, DONE = "falls with another party", "done"


@dataclass(repr=False)
class Record:
    """Everything that was sent in one run.

    Attributes:
        streams: lines in their order for each sender, receiver and call; lines of different senders have no order.
        ends: error code, or "", of each party's last event in each session.
    """

    streams: dict[Stream, list[Line]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[tuple[str, str], str] = field(default_factory=dict)
    charged: bool = False

    def copy(self) -> Record:
        """Return a copy that later records do not change."""
        streams = defaultdict(list, {stream: list(lines) for stream, lines in self.streams.items()})
        return Record(streams, dict(self.ends), self.charged)

    def add(self, sender: str, receiver: str, over: str, line: Line) -> None:
        self.streams[sender, receiver, over].append(line)

    def seen_by(self, observer: str) -> dict[Stream, list[Line]]:
        return {stream: lines for stream, lines in sorted(self.streams.items()) if stream[1] == observer}

    def numbers(self, observer: str) -> dict[tuple[str, Any], int]:
        """Number the random values by their first appearance before this observer."""
        keys = (s.key for s in self._shown(observer) if s.treatment in (RANDOM, DERIVED))
        return dict(zip(dict.fromkeys(keys), itertools.count(1), strict=False))

    def _shown(self, observer: str) -> Iterator[Shown]:
        for lines in self.seen_by(observer).values():
            for line in lines:
                yield from line.fields

    def fell_with_others(self, party: str, session: str) -> bool:
        """Return True if it ended because another party did: timing decides how far it came by then."""
        return self.ends.get((session, party), "") in RACING


def differences(
    one: Record,
    other: Record,
    observer: str,
    *,
    declared: tuple[str, ...] = (),
    omitted: tuple[str, ...] = (),
    covered: bool = False,
) -> list[str]:
    """Return one line for each difference by which this observer could distinguish the two runs."""
    views = one.seen_by(observer), other.seen_by(observer)
    numbers = one.numbers(observer), other.numbers(observer)
    found = []
    for stream in sorted({*views[0], *views[1]}):
        lines = [view.get(stream, []) for view in views]
        texts = [
            [line.texts(numbered, declared, omitted, covered=covered) for line in mine]
            for numbered, mine in zip(numbers, lines, strict=True)
        ]
        if any(record.fell_with_others(stream[0], _session_of(stream)) for record in (one, other)):
            common = min(map(len, texts))
            texts = [mine[:common] for mine in texts]
        found += [f"{stream[0]} -> {stream[1]} {stream[2]}: {text}" for text in _differing(*texts)]
    return found


def _session_of(stream: Stream) -> str:
    return stream[2].rpartition(" ")[2]


def _differing(one: list[list[str]], other: list[list[str]]) -> Iterable[str]:
    for place, (a, b) in enumerate(itertools.zip_longest(one, other, fillvalue=["nothing"])):
        if FELL in (a[0], b[0]) and DONE not in (a[0], b[0]):
            return  # it fails in both; timing decides whether it fails for its own reason or another party's
        if a[0] != b[0]:
            yield f"{place}: {_cut(a[0])} | {_cut(b[0])}"
            return  # the lines that follow are shifted
        for left, right in itertools.zip_longest(a[1:], b[1:], fillvalue="nothing"):
            if left != right:
                yield f"{place} {a[0]}: {_cut(left)} | {_cut(right)}"


def _cut(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."


def not_random(one: Record, twin: Record) -> list[str]:
    """Return the RANDOM fields that came out the same in two fresh runs on equal data: hashes, or constants."""
    found = set()
    for stream in one.streams.keys() & twin.streams.keys():
        for line, again in zip(one.streams[stream], twin.streams[stream], strict=False):
            for mine, its in zip(line.fields, again.fields, strict=False):
                if mine.treatment is RANDOM and mine.value and mine.name == its.name and mine.key == its.key:
                    found.add(mine.name)
    return sorted(found)
