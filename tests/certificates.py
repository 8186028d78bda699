"""A certificate authority and identities for tests: real ones, made the way the command makes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from blindfit.parties.identity.authority import PartyFiles, create_authority, issue
from blindfit.parties.identity.connections import Identity, load_identity


def demo_authority(directory: Path) -> Path:
    """The folder of an authority below `directory`, made on the first call."""
    folder = directory / "certs"
    if not (folder / "authority.pem").exists():
        create_authority(folder, "Test authority", days=2)
    return folder


@cache
def make_identity(authority_dir: Path, name: str) -> Identity:
    """The identity of a party under that authority, the same for the whole test session and its processes."""
    files = PartyFiles.in_folder(authority_dir / name)
    return load(files if files.certificate.exists() else issue(authority_dir, name, days=1))


def load(files: PartyFiles) -> Identity:
    return load_identity(files.certificate, files.key, files.authority, files.revoked)
