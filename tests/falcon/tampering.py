"""Messages that a party changes on their way."""

from __future__ import annotations

from typing import Any

import numpy as np

from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.sharing import field
from blindfit.parties.wire import codec

TAMPERED = ("Correction", "MaskedInput", "OpenedShares", "CheckCommitment", "CheckSeed", "ResidueCommitment", "Residue")


class Tamper:
    """Changes one element, or one octet, of one message, chosen by number."""

    def __init__(self, number: int, place: int = 0) -> None:
        self._number, self._place, self.seen = number, place, 0
        self.what: tuple[str, str, str] | None = None

    def wire(self, sender: str, receiver: str, step: str, data: bytes) -> bytes:
        if step in TAMPERED:
            self.seen += 1
            if self.seen == self._number:
                self.what = (sender, receiver, step)
                return self._changed(step, data)
        return data

    def _changed(self, step: str, data: bytes) -> bytes:
        kind = getattr(falcon.messages, step)
        message = codec.decode(data, kind, culprit="")
        name = next(iter(message.__slots__))
        content = getattr(message, name)
        parts: dict[str, Any] = {slot: getattr(message, slot) for slot in message.__slots__}
        if isinstance(content, bytes):
            at = self._place % len(content)
            parts[name] = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        else:
            at = self._place % len(content)
            changed = content.copy()
            changed[at] = field.add(changed[at : at + 1], np.array([1], np.uint64))[0]
            parts[name] = changed
        return codec.encode(kind(**parts))
