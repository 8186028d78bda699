"""What a party received in a session: a line for each message, to be held against the protocol's table.

    {"message": 12, "from": "laboratory", "kind": "Residuals", "step": "2", "opened": "..", "bytes": 65552 ..}

`opened` says what the receiver can read of it: nothing of ciphertexts that only the key node decrypts. The message
itself is not kept. Of an alignment by points, thousands of messages are one line for each kind and sender.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindfit.parties.files import written


@dataclass(frozen=True, slots=True)
class Row:
    """One arrow of a protocol's table."""

    step: str
    to: frozenset[str]  # roles that may receive it
    opened: str  # what the receiver reads
    chunked: bool = False


_ALL = frozenset({"active", "passive", "key-node"})
_DATA = frozenset({"active", "passive"})
_KEY = frozenset({"key-node"})
_PASSIVE = frozenset({"passive"})

# Every message class of a vertical session; what is not here is never received.
TABLE: dict[str, Row] = {
    "Hello": Row("handshake", _ALL, "the public parameters"),
    "TaylorKey": Row("taylor 0", _DATA, "the public key"),
    "SetSize": Row("align 1", _KEY, "the size of a set"),
    "SetSizes": Row("align 2", _DATA, "the sizes of the sets"),
    "PassedPoints": Row("align 3, 4", _DATA, "nothing: blinded points", chunked=True),
    "BlindedPoints": Row("align 4", _KEY, "which shuffled positions match", chunked=True),
    "CommonRows": Row("align 5", _DATA, "own common rows", chunked=True),
    "Outcome": Row("align 5, link 2", _DATA, "whether enough rows match"),
    "KeyShare": Row("link 0", _DATA, "half of the filters' secret"),
    "Filters": Row("link 1", _KEY, "how alike keyed filters are", chunked=True),
    "Slots": Row("link 3", _DATA, "own rows' slots; of the mask nothing", chunked=True),
    "Ready": Row("ready 1", _ALL, "a party's number of columns, unsafe flags, checkpoints"),
    "Stored": Row("ready 3", _ALL, "that a party has stored its part"),
    "RowFactors": Row("taylor 0", _PASSIVE, "nothing: ciphertexts"),
    "HoldOutLabels": Row("taylor 0", _PASSIVE, "nothing: ciphertexts"),
    "ChainedResiduals": Row("taylor 1, 2", _PASSIVE, "nothing: ciphertexts"),
    "Residuals": Row("taylor 2", _DATA, "nothing: ciphertexts"),
    "MaskedGradient": Row("taylor 3", _KEY, "a gradient plus a uniform mask"),
    "NoisyGradient": Row("taylor 4", _DATA, "own noisy gradient"),
    "PartialLoss": Row("taylor 6", _PASSIVE, "nothing: ciphertexts"),
    "HoldOutLoss": Row("taylor 6", _KEY, "the hold-out loss"),
    "Verdict": Row("taylor 7", _DATA, "go on or stop"),
    "MaskSeed": Row("predict 1", _PASSIVE, "a mask shared with another passive party"),
    "MaskedScores": Row("predict 2", frozenset({"active"}), "a part of scores, masked where two parties are passive"),
}


@dataclass(slots=True)
class _Line:
    sender: str
    kind: str
    size: int = 0
    messages: int = 0
    digest: Any = field(default_factory=hashlib.sha256)


class Transcript:
    """Takes every message as it is received; written when the session ends, also when it fails."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._chunked: dict[tuple[str, str], _Line] = {}

    def received(self, sender: str, kind: str, data: bytes) -> None:
        line = self._chunked.get((sender, kind))
        if line is None:
            line = _Line(sender, kind)
            self._lines.append(line)
            if kind in TABLE and TABLE[kind].chunked:
                self._chunked[sender, kind] = line
        line.size += len(data)
        line.messages += 1
        line.digest.update(data)

    def write(self, path: Path) -> None:
        written.write_file(path, b"".join(self._encoded(number, line) for number, line in enumerate(self._lines, 1)))

    def _encoded(self, number: int, line: _Line) -> bytes:
        row = TABLE.get(line.kind, Row("", frozenset(), "not in the table"))
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
