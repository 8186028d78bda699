"""The secret of a party, from which it draws values that must come out the same again: jitter, kept noise, its own
splits.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import check_private, write_new
from blindfit.parties.files.vault import Vault

BYTES = 32


@dataclass(frozen=True, repr=False)
class PartySecret:
    key: bytes

    @classmethod
    def load_or_create(cls, path: Path, vault: Vault) -> PartySecret:
        """Return the secret. Raise ConfigError if the file is not a secret, others may read it, or the vault does not
        open it.
        """
        if not path.exists():
            try:
                write_new(path, vault.seal(path.name, secrets.token_bytes(BYTES)), mode=0o600)
            except ConfigError:
                # Another process may have made it since the check; then both use the same secret.
                if not path.exists():
                    raise
        check_private(path)
        key = vault.read(path)
        if len(key) != BYTES:
            raise ConfigError(f"{path} is not {BYTES} bytes long", hint="restore it from a backup")
        return cls(key)

    def derive(self, purpose: str, *context: bytes) -> bytes:
        """Return 32 bytes, the same for the same purpose and context. Nobody else can distinguish them from random."""
        parts = (purpose.encode(), *context)
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.digest(self.key, framed, hashlib.sha256)
