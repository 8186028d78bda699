"""Changes to a release file: byte by byte, or by its active party, with a seal."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blindfit.algorithms.messages import canonical_json
from blindfit.coordinator.verify import checks
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.vault import MODEL_KEY
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import Parts

Change = Callable[[dict[str, Any]], object]


def sealed_again(encoded: bytes, data_dir: Path, change: Change) -> bytes:
    """Sign the seal again as a lying active party would: with the right digests and its own seal."""
    parts = json.loads(encoded)["parts"]
    change(parts)
    return release_document.encode(Parts.model_validate(parts), SigningKey.load_or_create(data_dir / MODEL_KEY))


def changes_noticed(encoded: bytes, changes: int, seed: int) -> int:
    rng = random.Random(seed)
    noticed = 0
    while noticed < changes:
        changed = _changed_once(encoded, rng)
        if changed == encoded:  # two equal neighbours were exchanged
            continue
        assert not checks.verify(changed).passed
        noticed += 1
    return noticed


ODD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 1e308, 5e-324, 0.0, 1.5),
    *("", "a", "\ud800", "\n", "00", "[/red]", "\u00e9" * 300, "9" * 70),
    *([], [1], {}, {"a": 1}, [None], [[]], ["00"]),
]


def odd_parts(encoded: bytes, data_dir: Path, files: int, seed: int) -> None:
    """Sign parts of which some hold odd values: each check reports this in a line, and none of what servers signed
    passes.
    """
    key, rng = SigningKey.load_or_create(data_dir / MODEL_KEY), random.Random(seed)
    whole = json.loads(encoded)["parts"]
    for _ in range(files):
        parts = copy.deepcopy(whole)
        for place in rng.sample(sorted(flat(parts)), rng.choice([1, 1, 2])):
            _put(parts, place.split("/")[1:], rng.choice(ODD))
        if rng.random() < 0.2:
            parts["servers"] = [parts["servers"][0]] * 2
        verified = checks.verify(_sealed_as_it_is(parts, key))
        assert not [result for result in verified.results if "\n" in result.why]
        assert not verified.passed or parts["servers"] == whole["servers"]


def _put(parts: Any, place: list[str], odd: Any) -> None:
    *above, last = place
    with contextlib.suppress(LookupError, TypeError, ValueError):  # a value above it has gone
        for step in above:
            parts = parts[_key(parts, step)]
        parts[_key(parts, last)] = odd


def _key(parts: Any, step: str) -> Any:
    return int(step) if isinstance(parts, list) else step


def _sealed_as_it_is(parts: dict[str, Any], key: SigningKey) -> bytes:
    """Sign the parts without any check."""
    digests = release_document._digests(parts)
    seal = key.sign(release_document._encode_sealed(digests)).hex()
    return canonical_json({"format": release_document.FORMAT, "parts": parts, "sha256": digests, "seal": seal}) + b"\n"


def _changed_once(encoded: bytes, rng: random.Random) -> bytes:
    """Replace, remove or add one byte, or exchange two neighbours."""
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
    """Return a document's values by their paths."""
    if isinstance(value, dict):
        return {p: v for name, item in value.items() for p, v in flat(item, f"{path}/{name}").items()}
    if isinstance(value, list):
        return {p: v for place, item in enumerate(value) for p, v in flat(item, f"{path}/{place}").items()}
    return {path: value}
