"""Whoever would change a release file: byte by byte, or as its active party, with a seal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blindfit.coordinator.verify import checks
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.vault import MODEL_KEY
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import Parts

Change = Callable[[dict[str, Any]], object]


def sealed_again(encoded: bytes, data_dir: Path, change: Change) -> bytes:
    """As an active party would that lies: with the right digests and its own seal."""
    parts = json.loads(encoded)["parts"]
    change(parts)
    return release_document.encode(Parts.model_validate(parts), SigningKey.load_or_create(data_dir / MODEL_KEY))


def changes_noticed(encoded: bytes, changes: int, seed: int) -> int:
    rng = random.Random(seed)
    noticed = 0
    while noticed < changes:
        changed = _changed_once(encoded, rng)
        if changed == encoded:  # of two equal neighbours
            continue
        assert not checks.verify(changed).passed
        noticed += 1
    return noticed


def _changed_once(encoded: bytes, rng: random.Random) -> bytes:
    """One byte replaced, removed, added, or two neighbours exchanged."""
    at = rng.randrange(len(encoded))
    kind = rng.randrange(4)
    if kind == 0:
        return encoded[:at] + bytes([encoded[at] ^ rng.randrange(1, 256)]) + encoded[at + 1 :]
    if kind == 1:
        return encoded[:at] + encoded[at + 1 :]
    if kind == 2:
        return encoded[:at] + bytes([rng.randrange(256)]) + encoded[at:]
    return encoded[:at] + encoded[at : at + 2][::-1] + encoded[at + 2 :]


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A document's values by their paths."""
    if isinstance(value, dict):
        return {p: v for name, item in value.items() for p, v in flat(item, f"{path}/{name}").items()}
    if isinstance(value, list):
        return {p: v for place, item in enumerate(value) for p, v in flat(item, f"{path}/{place}").items()}
    return {path: value}
