"""One secret of a party, from which it draws what must come out the same again: jitter, kept noise, its own splits."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import check_private, read_file, write_new

BYTES = 32


@dataclass(frozen=True, repr=False)
class PartySecret:
    key: bytes

    @classmethod
    def load_or_create(cls, path: Path) -> PartySecret:
        """Raises ConfigError: the file is not such a secret, or others may read it."""
        if not path.exists():
            write_new(path, secrets.token_bytes(BYTES), mode=0o600)
        key = read_file(path)
        check_private(path)
        if len(key) != BYTES:
            raise ConfigError(f"{path} is not {BYTES} bytes long", hint="restore it from a backup")
        return cls(key)

    def derive(self, purpose: str, *context: bytes) -> bytes:
        """32 bytes that nobody else can tell from random, the same for the same purpose and context."""
        parts = (purpose.encode(), *context)
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.digest(self.key, framed, hashlib.sha256)
