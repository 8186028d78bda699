"""A certificate authority and identities for tests: real ones, made the way the command makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from blindfit.parties.identity import connections
from blindfit.parties.identity.authority import PartyFiles, create_authority, issue
from blindfit.parties.identity.identity import Identity, load_identity


def demo_authority(directory: Path) -> Path:
    """Return the folder of an authority below `directory`, made on the first call."""
    folder = directory / "certs"
    if not (folder / "authority.pem").exists():
        create_authority(folder, "Test authority", days=2)
    return folder


@cache
def make_identity(authority_dir: Path, name: str) -> Identity:
    """Return a party's identity under that authority, the same for the whole test session and its processes."""
    files = PartyFiles.in_folder(authority_dir / name)
    return load(files if files.certificate.exists() else issue(authority_dir, name, days=1))


class NothingRevoked:
    """Stand-in for a revocation list."""

    def has(self, certificate: object) -> bool:
        return False


@contextmanager
def quick_connections(authority_dir: Path) -> Iterator[None]:
    """Make connections with one handshake each, not one more to learn the peer's certificate."""

    def known(_own: object, peer: str, *_: object) -> bytes:
        return make_identity(authority_dir, peer).certificate_pem

    with mock.patch.object(connections, "probe", known):
        yield


def load(files: PartyFiles) -> Identity:
    return load_identity(files.certificate, files.key, files.authority, files.revoked)
