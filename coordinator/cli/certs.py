"""`blindfit certs`: the certificate authority on the command line; certificates.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.terminal.json_output import App, Found
from blindfit.parties.identity import AUTHORITY_VARIABLE, CRL_DAYS, KEY_VARIABLE, ROLES

app = App(name="certs", no_args_is_help=True, help="Make, renew and revoke the certificates that name the parties.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the authority.")]
Party = Annotated[str, typer.Argument(help="Name of the party: lower-case letters, digits, hyphens.")]
Days = Annotated[int, typer.Option(min=1, help="Days for which it is valid.")]
Protect = Annotated[
    bool,
    typer.Option(
        "--protect",
        help="Encrypt the new key with a passphrase. Without a passphrase file or variable, the command asks for it.",
    ),
]
AuthorityFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", help=f"File with the authority's passphrase, or set {AUTHORITY_VARIABLE}."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-passphrase-file", help=f"File with the party's passphrase, or set {KEY_VARIABLE}."),
]


@app.command()
def authority(
    directory: Directory,
    name: Annotated[str, typer.Option(help="Name of the authority.")] = "Blindfit authority",
    days: Days = 3650,
    protect: Protect = False,
    passphrase_file: AuthorityFile = None,
) -> Found:
    """Make a certificate authority in a new folder."""
    from blindfit.coordinator.operator import certificates

    return certificates.make_authority(directory, name, days, protect, passphrase_file)


@app.command()
def issue(
    directory: Directory,
    party: Party,
    host: Annotated[
        list[str] | None, typer.Option(help="Additional host name or address of the party. Repeatable.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(help=f"Only role of the party: {', '.join(ROLES)}. An auditor needs it.")
    ] = None,
    days: Days = 365,
    protect: Protect = False,
    passphrase_file: AuthorityFile = None,
    key_passphrase_file: KeyFile = None,
) -> Found:
    """Make a party's key and certificate."""
    from blindfit.coordinator.operator import certificates

    return certificates.issue(directory, party, host or [], role, days, protect, passphrase_file, key_passphrase_file)


@app.command()
def renew(directory: Directory, party: Party, days: Days = 365, passphrase_file: AuthorityFile = None) -> Found:
    """Extend the validity of a party's certificate; its key stays."""
    from blindfit.coordinator.operator import certificates

    return certificates.renew(directory, party, days, passphrase_file)


@app.command()
def revoke(directory: Directory, party: Party, passphrase_file: AuthorityFile = None) -> Found:
    """Revoke every certificate that a party ever had."""
    from blindfit.coordinator.operator import certificates

    return certificates.revoke(directory, party, passphrase_file)


@app.command()
def crl(directory: Directory, days: Days = CRL_DAYS, passphrase_file: AuthorityFile = None) -> Found:
    """Sign the revocation list again before it expires."""
    from blindfit.coordinator.operator import certificates

    return certificates.renew_crl(directory, days, passphrase_file)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="Certificate, revocation list or folder of a party.")],
) -> Found:
    """Print what a certificate or a revocation list holds."""
    from blindfit.coordinator.operator import certificates

    return certificates.describe(file)
