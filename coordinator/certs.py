"""`blindfit certs`: the certificate authority on the command line."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from cryptography import x509
from rich.console import Console
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files import private_files
from blindfit.parties.files.private_files import read_certificate, read_file, read_passphrase
from blindfit.parties.identity import authority as authority_
from blindfit.parties.identity.authority import CRL_DAYS, PartyFiles, party_of

app = typer.Typer(
    name="certs", no_args_is_help=True, help="Make, renew and revoke the certificates that name the parties."
)

AUTHORITY_VARIABLE = "BLINDFIT_AUTHORITY_PASSPHRASE"
KEY_VARIABLE = "BLINDFIT_KEY_PASSPHRASE"

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
) -> None:
    """Make a certificate authority in a new folder."""
    secret = _new_passphrase(AUTHORITY_VARIABLE, passphrase_file, protect, "the authority's key")
    authority_.create_authority(directory, name, days, secret)
    _say(f"{directory}: {name} until {_end(directory / 'authority.pem')}; its key is {_lock(secret)}")


@app.command()
def issue(
    directory: Directory,
    party: Party,
    host: Annotated[list[str] | None, typer.Option(help="A host name or address to list too; may be repeated.")] = None,
    days: Days = 365,
    protect: Protect = False,
    passphrase_file: AuthorityFile = None,
    key_passphrase_file: KeyFile = None,
) -> None:
    """Make a party's key and certificate."""
    opens = _authority_passphrase(directory, passphrase_file)
    locks = _new_passphrase(KEY_VARIABLE, key_passphrase_file, protect, f"{party}'s key")
    files = authority_.issue(directory, party, host or (), days, passphrase=opens, key_passphrase=locks)
    _say(
        f"{files.certificate.parent}: {party} until {_end(files.certificate)}, all that {party} needs; "
        f"its key is {_lock(locks)}"
    )


@app.command()
def renew(directory: Directory, party: Party, days: Days = 365, passphrase_file: AuthorityFile = None) -> None:
    """Make a party's certificate last longer; its key stays."""
    secret = _authority_passphrase(directory, passphrase_file)
    files = authority_.renew(directory, party, days, passphrase=secret)
    _say(f"{files.certificate}: {party} until {_end(files.certificate)}; copy this one file to {party}")


@app.command()
def revoke(directory: Directory, party: Party, passphrase_file: AuthorityFile = None) -> None:
    """Revoke every certificate that a party ever had."""
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority_.revoke(directory, party, passphrase=secret)
    _say(f"{path}: {party} is revoked; copy this file to every party")


@app.command()
def crl(directory: Directory, days: Days = CRL_DAYS, passphrase_file: AuthorityFile = None) -> None:
    """Sign the revocation list again before it expires."""
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority_.renew_crl(directory, days, passphrase=secret)
    _say(f"{path}: {_crl_facts(_read_crl(path))}; copy this file to every party")


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A certificate, a revocation list or a party's folder.")],
) -> None:
    """Say what a certificate or a revocation list holds."""
    path = PartyFiles.in_folder(file).certificate if file.is_dir() else file
    is_crl = b"X509 CRL" in read_file(path)
    _say(f"{path}: {_crl_facts(_read_crl(path)) if is_crl else _certificate_facts(read_certificate(path))}")


def _certificate_facts(certificate: x509.Certificate) -> str:
    name = party_of(certificate) or certificate.subject.rfc4514_string()
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    dates = f"{starts:%Y-%m-%d} to {ends:%Y-%m-%d}, {_days_left(ends)}"
    return f"{name}, serial {certificate.serial_number:x}, {dates}"


def _read_crl(path: Path) -> x509.CertificateRevocationList:
    try:
        return x509.load_pem_x509_crl(read_file(path))
    except ValueError as error:
        raise ConfigError(f"{path} is not a revocation list in PEM") from error


def _crl_facts(revocations: x509.CertificateRevocationList) -> str:
    ends = revocations.next_update_utc
    until = f"until {ends:%Y-%m-%d}, {_days_left(ends)}" if ends else "without an end"
    return f"{len(revocations)} revoked, {until}"


def _days_left(ends: datetime) -> str:
    left = ends - datetime.now(UTC)
    return f"{left.days} days left" if left > timedelta(0) else f"expired {(-left).days} days ago"


def _end(path: Path) -> str:
    return f"{read_certificate(path).not_valid_after_utc:%Y-%m-%d}"


def _lock(passphrase: bytes | None) -> str:
    return "locked" if passphrase else "not locked"


# --- passphrases: a file, else the environment, else a question -----------------------------------------


def _authority_passphrase(directory: Path, file: Path | None) -> bytes | None:
    key = directory / "authority.key"
    if not key.exists() or not private_files.is_locked(read_file(key)):
        return None
    return _given(AUTHORITY_VARIABLE, file) or _asked("the authority's key", confirm=False)


def _new_passphrase(variable: str, file: Path | None, protect: bool, what: str) -> bytes | None:
    given = _given(variable, file)
    return given if given or not protect else _asked(what, confirm=True)


def _given(variable: str, file: Path | None) -> bytes | None:
    if file is None:
        return os.environb.get(variable.encode()) or None
    return read_passphrase(file)


def _asked(what: str, *, confirm: bool) -> bytes:
    answer: str = typer.prompt(f"Passphrase of {what}", hide_input=True, confirmation_prompt=confirm, err=True)
    return answer.encode()


def _say(line: str) -> None:
    """One line, whatever the terminal's width: it may be read by a script."""
    Console().print(escape(line), highlight=False, soft_wrap=True)
