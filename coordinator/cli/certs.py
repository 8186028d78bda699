"""`blindfit certs`: the certificate authority on the command line; what its commands do is in certificates.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.terminal.json_output import App, Found
from blindfit.parties.identity import AUTHORITY_VARIABLE, CRL_DAYS, KEY_VARIABLE, ROLES

app = App(name="certs", no_args_is_help=True, help="Make, renew and revoke the certificates that name the parties.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The authority's folder.")]
Party = Annotated[str, typer.Argument(help="The party's name: lower-case letters, digits, hyphens.")]
Days = Annotated[int, typer.Option(min=1, help="How long it is valid.")]
Protect = Annotated[
    bool,
    typer.Option("--protect", help="Lock the new key with a passphrase; asked for if not given."),
]
AuthorityFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", help=f"Holds the authority's passphrase; or set {AUTHORITY_VARIABLE}."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-passphrase-file", help=f"Holds the party's passphrase; or set {KEY_VARIABLE}."),
]


@app.command()
def authority(
    directory: Directory,
    name: Annotated[str, typer.Option(help="How the authority calls itself.")] = "Blindfit authority",
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
    host: Annotated[list[str] | None, typer.Option(help="A host name or address to list too; may be repeated.")] = None,
    role: Annotated[
        str | None, typer.Option(help=f"The only role of the party: {', '.join(ROLES)}. Auditors ask for it.")
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
    """Make a party's certificate last longer; its key stays."""
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
    file: Annotated[Path, typer.Argument(help="A certificate, a revocation list or a party's folder.")],
) -> Found:
    """Say what a certificate or a revocation list holds."""
    from blindfit.coordinator.operator import certificates

    return certificates.describe(file)
