"""Transcript of the messages that a party received in a session: one line for each, to compare with the protocol's
table.

    {"message": 12, "from": "laboratory", "kind": "Residuals", "step": "2", "opened": "..", "bytes": 65552 ..}

`opened` states what the receiver can read in the message: nothing in ciphertexts that only the key node decrypts. The
message itself is not kept. In an alignment by points, thousands of messages share one line for each kind and sender.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from blindfit.algorithms.protocols.table import CHUNKS, ROUNDS, Arrow, Table


@dataclass(frozen=True, slots=True)
class _Row:
    """All arrows of one name, which two protocols may have; a session uses one of them."""

    step: str = ""
    opened: str = "not in the table"
    in_chunks: bool = False

    @classmethod
    def of(cls, name: str, tables: Sequence[Table]) -> _Row:
        found = [(table, _find_arrows(table, name)) for table in tables]
        arrows = [arrow for _, some in found for arrow in some]
        if not arrows:
            return cls()
        return cls(
            ", ".join(table.label(some) for table, some in found if some),
            "; ".join(dict.fromkeys(arrow.opened for arrow in arrows)),
            any(arrow.how_often in (CHUNKS, ROUNDS) for arrow in arrows),
        )


def _find_arrows(table: Table, name: str) -> list[Arrow]:
    return [arrow for arrow in table.arrows if arrow.message.__name__ == name]


@dataclass(slots=True)
class _Line:
    sender: str
    kind: str
    size: int = 0
    messages: int = 0
    digest: Any = field(default_factory=hashlib.sha256)


class Transcript:
    """Records every message that is received; written when the session ends, also after a failure.

    Args:
        tables: tables of the session's protocols.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._rows: dict[str, _Row] = {}
        self._lines: list[_Line] = []
        self._chunked: dict[tuple[str, str], _Line] = {}

    def add(self, sender: str, kind: str, data: bytes) -> None:
        line = self._chunked.get((sender, kind))
        if line is None:
            line = _Line(sender, kind)
            self._lines.append(line)
            if self._row(kind).in_chunks:
                self._chunked[sender, kind] = line
        line.size += len(data)
        line.messages += 1
        line.digest.update(data)

    def _row(self, kind: str) -> _Row:
        if kind not in self._rows:
            self._rows[kind] = _Row.of(kind, self._tables)
        return self._rows[kind]

    def encode(self) -> bytes:
        """Return a line of JSON for each message."""
        return b"".join(self._line(number, line) for number, line in enumerate(self._lines, 1))

    def _line(self, number: int, line: _Line) -> bytes:
        row = self._row(line.kind)
        told = {
            "message": number,
            "from": line.sender,
            "kind": line.kind,
            "step": row.step,
            "opened": row.opened,
            "messages": line.messages,
            "bytes": line.size,
            "sha256": line.digest.hexdigest(),
        }
        return json.dumps(told).encode() + b"\n"
