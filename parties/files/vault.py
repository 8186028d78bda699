"""A party's secret files on its disk, under its operator's passphrase: keys, checkpoints, shares of models.

| data_dir/vault.json | salt, and a random key that scrypt(passphrase, salt) locks;
|                     | the passphrase is stretched once for each start of a process
| a locked file       | b"blindfit locked 1\\n", a nonce of 12 bytes, AES-256-GCM(key, content, the file's name)
| *.pem               | PKCS #8, locked with 256 bits that are derived from the same key

Without a passphrase all of it is plain, in files that only their owner may read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import (
    check_passphrase,
    is_locked,
    make_private,
    private_pem,
    read_file,
    read_passphrase,
    read_private_key,
    replace_file,
    write_new,
)
from blindfit.parties.files.signing import SigningKey

FILE = "vault.json"
FORMAT = "blindfit vault 1"
LOCKED = b"blindfit locked 1\n"
NONCE_BYTES, KEY_BYTES = 12, 32
STRETCH = {"n": 2**15, "r": 8, "p": 3}  # 32 MiB and a quarter of a second for each guess: OWASP's lower memory setting

MODEL_KEY, RECEIPT_KEY = "model_key.pem", "receipt_key.pem"
PARTY_KEY, ROW_KEY = "secret.key", "rows.key"
SECRETS = (
    MODEL_KEY,
    RECEIPT_KEY,
    PARTY_KEY,
    ROW_KEY,
    "checkpoints/*/*.json",
    "models/*/shares.json",
    "snapshots/*/header.json",
    "label_releases/*/header.json",
)
"""Files of a data_dir that are locked."""


class Vault:
    """Locks and opens a party's files; `PLAIN` leaves them as they are."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    @property
    def locks(self) -> bool:
        return self._key is not None

    def seal(self, name: str, content: bytes) -> bytes:
        """Return the bytes of a file with this name and content."""
        if self._key is None:
            return content
        nonce = os.urandom(NONCE_BYTES)
        return LOCKED + nonce + AESGCM(self._key).encrypt(nonce, content, name.encode())

    def read(self, path: Path) -> bytes:
        """Return the content of a file whose bytes `seal` made.

        Raises:
            OSError: the file cannot be read.
            ConfigError: the file is not locked, or is locked under another key.
        """
        content = path.read_bytes()
        if self._key is None:
            if content.startswith(LOCKED):
                raise _needs_passphrase(path)
            return content
        if not content.startswith(LOCKED):
            raise _not_locked(path)
        try:
            box = content[len(LOCKED) :]
            return AESGCM(self._key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], path.name.encode())
        except (InvalidTag, ValueError):
            raise ConfigError(
                f"{path} is damaged, or was locked under another {FILE}", hint=f"restore it, and its {FILE}"
            ) from None

    def signing_key(self, path: Path) -> SigningKey:
        """Return the key at `path`, or make a new one. Raise ConfigError as `read` does."""
        if self.locks and path.exists() and not is_locked(read_file(path)):
            raise _not_locked(path)
        return SigningKey.load_or_create(path, self._pem_passphrase)

    @property
    def _pem_passphrase(self) -> bytes | None:
        """Passphrase of PEM files: 256 random bits, because PEM stretches a passphrase little, and random bits need no
        stretching.
        """
        if self._key is None:
            return None
        return HKDFExpand(SHA256(), KEY_BYTES, b"blindfit pem 1").derive(self._key).hex().encode()

    def lock_plain(self, data_dir: Path) -> Iterator[Path]:
        """Lock the unlocked secrets of a data_dir, one after the other, and yield each path. It can be started
        again.
        """
        for path in _secrets(data_dir, locked=False):
            if path.suffix == ".pem":
                content = private_pem(read_private_key(path, None), self._pem_passphrase)
            else:
                content = self.seal(path.name, read_file(path))
            replace_file(path, content, mode=0o600)
            yield path


PLAIN = Vault(None)


def open_vault(data_dir: Path, passphrase: bytes | None) -> Vault:
    """Return the vault of a data_dir; the first passphrase makes it.

    Raises:
        ConfigError: the passphrase is wrong, missing, or too short for a new vault.
    """
    path = data_dir / FILE
    if passphrase is None:
        if path.exists():
            raise _needs_passphrase(path)
        return PLAIN
    if not path.exists():
        if orphans := _secrets(data_dir, locked=True):
            raise ConfigError(
                f"{path} is missing, though {orphans[0]} is locked", hint="restore it from a backup: it has the key"
            )
        make_private(data_dir)
        try:
            write_new(path, _lock_key(os.urandom(KEY_BYTES), passphrase), mode=0o600)
        except ConfigError:
            # Another process may have made it since the check; then both use the same key.
            if not path.exists():
                raise
    return Vault(_open_key(path, passphrase))


class KeepsSecrets(Protocol):
    """The settings of a party that its vault needs."""

    @property
    def data_dir(self) -> Path: ...

    @property
    def passphrase_file(self) -> Path | None: ...


def vault_of(party: KeepsSecrets, base_dir: Path) -> Vault:
    """Open the vault of a party.

    Args:
        base_dir: folder of the party's file.

    Raises:
        ConfigError: the passphrase is wrong or missing.
    """
    file = party.passphrase_file
    return open_vault(base_dir / party.data_dir, read_passphrase(base_dir / file) if file else None)


def _secrets(data_dir: Path, *, locked: bool) -> list[Path]:
    """Return the secret files that are locked, or the ones that are not."""
    found = sorted(path for pattern in SECRETS for path in data_dir.glob(pattern))
    return [path for path in found if _is_locked(path) == locked]


def _is_locked(path: Path) -> bool:
    content = read_file(path)
    return is_locked(content) if path.suffix == ".pem" else content.startswith(LOCKED)


def change_passphrase(data_dir: Path, old: bytes, new: bytes) -> None:
    """Lock the vault's key with a new passphrase. The key and the files under it stay. Raise ConfigError as
    `open_vault` does.
    """
    path = data_dir / FILE
    replace_file(path, _lock_key(_open_key(path, old), new), mode=0o600)


def _lock_key(key: bytes, passphrase: bytes) -> bytes:
    check_passphrase(passphrase)
    salt, nonce = os.urandom(16), os.urandom(NONCE_BYTES)
    box = nonce + AESGCM(_stretch(passphrase, salt)).encrypt(nonce, key, FORMAT.encode())
    return json.dumps({"format": FORMAT, "salt": salt.hex(), "key": box.hex()}, indent=1).encode() + b"\n"


def _open_key(path: Path, passphrase: bytes) -> bytes:
    try:
        content = json.loads(read_file(path))
        if content["format"] != FORMAT:
            raise ValueError
        salt, box = bytes.fromhex(content["salt"]), bytes.fromhex(content["key"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path} is not a {FORMAT}", hint="restore it from a backup: it locks this party's keys"
        ) from None
    try:
        return AESGCM(_stretch(passphrase, salt)).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], FORMAT.encode())
    except (InvalidTag, ValueError):
        raise ConfigError(
            f"{path} does not open with this passphrase",
            hint="set secrets.passphrase_file to the passphrase that it was made with, or change the passphrase: "
            "`blindfit lock PARTY.TOML --old-passphrase-file FILE`",
        ) from None


def _stretch(passphrase: bytes, salt: bytes) -> bytes:
    return Scrypt(salt, KEY_BYTES, **STRETCH).derive(passphrase)


def _needs_passphrase(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} is locked and no passphrase was given",
        hint="set secrets.passphrase_file to a file with the party's passphrase",
    )


def _not_locked(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} is not locked, though this party has a passphrase",
        hint="run `blindfit lock PARTY.TOML`, which locks the files from before there was a passphrase",
    )
