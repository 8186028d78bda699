"""The key with which a party signs receipts, kept in a file of its own.

It is not the party's TLS key: the TLS key is replaced from time to time, and a receipt lasts as long as the ledger.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import private_pem, read_private_key, write_new


class SigningKey:
    """An Ed25519 key (RFC 8032)."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def load_or_create(cls, path: Path, passphrase: bytes | None = None) -> SigningKey:
        """Read the key at `path`, or make a key there that only its owner can read."""
        if not path.exists():
            try:
                write_new(path, private_pem(Ed25519PrivateKey.generate(), passphrase), mode=0o600)
            except ConfigError:
                # Another process may have made it since the check; then both use the same key.
                if not path.exists():
                    raise
        key = read_private_key(path, passphrase)
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigError(
                f"{path} is not an Ed25519 key",
                hint="restore the key that signed the receipts given out so far",
            )
        return cls(key)

    @property
    def public_bytes(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public_bytes.hex()})"


def verify(public_bytes: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if `signature` is that key's signature of `message`; False also for bytes that are not a key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_bytes).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
