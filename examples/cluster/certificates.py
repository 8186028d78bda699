"""The cluster's certificate authority: a key and a certificate for each party, each in the party's own volume.

    python certificates.py AUTHORITY IDENTITIES

AUTHORITY is the folder of the authority, and its key stays there. IDENTITIES has a folder for each party, with the name
of the party. If you run it again, it renews the certificates and the revocation list, and keeps the keys.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.identity import authority
from blindfit.parties.identity.authority import PartyFiles

DAYS = 365


def main(directory: Path, identities: Path) -> None:
    if not (directory / "authority.pem").exists():
        authority.create_authority(directory, "Blindfit cluster")
    volumes = sorted(identities.iterdir())
    for volume in volumes:
        print(f"{volume.name}: {certify(directory, volume)}")
    authority.renew_crl(directory, DAYS)
    for volume in volumes:
        hand_over(directory / volume.name, volume)


def certify(directory: Path, volume: Path) -> str:
    """Make or renew the party's certificate. Return a word about it."""
    party = volume.name
    if not (directory / party).exists():
        authority.issue(directory, party, days=DAYS)
        return "made"
    try:
        authority.renew(directory, party, DAYS)
    except ConfigError as error:
        return f"not renewed: {error}"
    return "renewed"


def hand_over(issued: Path, volume: Path) -> None:
    """Copy the files, each of which appears whole, and move the key, so that only its party has it."""
    files = PartyFiles.in_folder(issued)
    for path in (files.key, files.certificate, files.authority, files.revoked):
        if path is not None and path.exists():
            unfinished = volume / f".{path.name}"
            shutil.copy2(path, unfinished)
            unfinished.replace(volume / path.name)
    files.key.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
