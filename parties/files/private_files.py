"""Files of keys and certificates: private if needed, complete or absent, with errors that name them."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.regular import other_kind

# The key file stretches a passphrase with only 2048 rounds of PBKDF2, so its length must carry the strength.
LEAST_PASSPHRASE = 12
WRITABLE = "its folder (a party's data_dir or output_dir, or --out) must be one that this user may write into"


def make_private(directory: Path) -> None:
    """Make a directory, and missing directories above it, private to their owner under any umask."""
    for missing in reversed([d for d in (directory, *directory.parents) if not d.exists()]):
        with contextlib.suppress(FileExistsError):  # another process made it meanwhile
            missing.mkdir(mode=0o700)
            sync_directory(missing.parent)


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file as `open` does; only its owner may read it, from its first moment and under any umask."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


@contextlib.contextmanager
def new_private(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that must not exist yet. Only its owner may read it, and it is on the disk at the end."""
    with open_private(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk, if the file system supports that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # a directory that this user may write into, and not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # from a file system that supports this only for files
            raise
    finally:
        os.close(descriptor)


def write_new(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file that must not exist yet. It appears complete, with its mode, or not at all, and survives a power
    cut.
    """
    temporary = _write_temporary(path, content, mode)
    try:
        os.link(temporary, path)  # unlike a rename, a link does not replace
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already and is not overwritten", hint="move it away first") from error
    finally:
        os.unlink(temporary)
    sync_directory(path.parent)


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file. A reader sees the old file or the new one, never a part; after a power cut the new one."""
    temporary = _write_temporary(path, content, mode)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_directory(path.parent)


def _write_temporary(path: Path, content: bytes, mode: int) -> str:
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # O_EXCL, mode 0600
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint=WRITABLE) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def read_file(path: Path, *, may_be_pipe: bool = False) -> bytes:
    """Return the content of a file.

    Args:
        may_be_pipe: True for a passphrase, which a command may supply, such as <(...) of a shell.
    """
    try:
        if not may_be_pipe and (other := other_kind(path)):
            raise ConfigError(f"{path} cannot be read: this is {other}", hint="name a file")
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint="check the path and the file's owner"
        ) from error


def read_certificate(path: Path) -> x509.Certificate:
    """Return a certificate. Raise ConfigError if the file holds none, or its key is of a kind that cannot be used
    here.
    """
    try:
        certificate = x509.load_pem_x509_certificate(read_file(path))
        certificate.public_key()
    except ValueError as error:
        raise ConfigError(
            f"{path} is not a certificate in PEM", hint="it must begin with -----BEGIN CERTIFICATE-----"
        ) from error
    except UnsupportedAlgorithm as error:
        raise _unusable(path, error) from error
    return certificate


def read_private_key(path: Path, passphrase: bytes | None) -> PrivateKeyTypes:
    """Read a private key. Only its owner may be able to read the file; it must be locked if, and only if, a passphrase
    is given.
    """
    content = read_file(path)
    check_private(path)
    if is_locked(content) and not passphrase:
        raise ConfigError(f"{path} is locked and no passphrase was given", hint="give its passphrase")
    if passphrase and not is_locked(content):
        raise ConfigError(
            f"{path} is not locked, though a passphrase was given",
            hint="remove passphrase_file, or lock the key: openssl pkey -aes256 -in KEY -out NEW",
        )
    try:
        return serialization.load_pem_private_key(content, passphrase or None)
    except (ValueError, TypeError) as error:
        reason = "does not open with this passphrase" if passphrase else "is not a private key in PEM"
        raise ConfigError(f"{path} {reason}") from error
    except UnsupportedAlgorithm as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: UnsupportedAlgorithm) -> ConfigError:
    return ConfigError(
        f"{path} has a key that cannot be used here: {error}",
        hint="use a key on the curve P-256; `blindfit certs issue DIR PARTY` makes such a key",
    )


def is_locked(key_pem: bytes) -> bool:
    return b"ENCRYPTED" in key_pem


def check_private(path: Path) -> None:
    """Refuse a file that others can read, by PostgreSQL's rule: 0600, or 0640 if root owns it.

    Kubernetes uses the second mode to give a secret to a process that is not root.
    """
    status = path.stat()
    allowed = 0o640 if status.st_uid == 0 else 0o600
    if status.st_mode & 0o777 & ~allowed & ~0o100:
        raise ConfigError(
            f"{path} has mode {status.st_mode & 0o777:04o}: others can use this secret",
            hint=f"chmod 600 {shlex.quote(str(path))}",
        )


def private_pem(key: PrivateKeyTypes, passphrase: bytes | None = None) -> bytes:
    if passphrase is not None:
        check_passphrase(passphrase)
    lock = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def check_passphrase(passphrase: bytes) -> None:
    """Refuse a passphrase that is too short for a new lock."""
    if len(passphrase) < LEAST_PASSPHRASE:
        raise ConfigError(f"the passphrase is shorter than {LEAST_PASSPHRASE} bytes", hint="take four random words")


def read_passphrase(path: Path) -> bytes:
    """Return the single line of a file. Credentials of systemd and secrets of Docker and Kubernetes have this form
    too.
    """
    passphrase = read_file(path, may_be_pipe=True).rstrip(b"\r\n")
    if not passphrase:
        raise ConfigError(f"{path} holds no passphrase", hint="write it there as one line")
    return passphrase
