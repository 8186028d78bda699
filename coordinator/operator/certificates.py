"""What the commands of `blindfit certs` do."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer
from cryptography import x509
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.texts import printable
from blindfit.coordinator.terminal.terminal import terminal
from blindfit.parties.files import private_files
from blindfit.parties.files.private_files import read_certificate, read_file, read_passphrase
from blindfit.parties.identity import AUTHORITY_VARIABLE, KEY_VARIABLE, authority
from blindfit.parties.identity.authority import PartyFiles, party_of

COPY = "copy this file next to the certificate of every party and of the coordinator"


def make_authority(directory: Path, name: str, days: int, protect: bool, passphrase_file: Path | None) -> None:
    secret = _new_passphrase(AUTHORITY_VARIABLE, passphrase_file, protect, "the authority's key")
    authority.create_authority(directory, name, days, secret)
    _say(f"{directory}: {name} until {_end(directory / 'authority.pem')}; its key is {_lock(secret)}")


def issue(
    directory: Path,
    party: str,
    hosts: list[str],
    days: int,
    protect: bool,
    passphrase_file: Path | None,
    key_passphrase_file: Path | None,
) -> None:
    opens = _authority_passphrase(directory, passphrase_file)
    locks = _new_passphrase(KEY_VARIABLE, key_passphrase_file, protect, f"{party}'s key")
    files = authority.issue(directory, party, hosts, days, passphrase=opens, key_passphrase=locks)
    _say(
        f"{files.certificate.parent}: {party} until {_end(files.certificate)}, all that {party} needs; "
        f"its key is {_lock(locks)}"
    )


def renew(directory: Path, party: str, days: int, passphrase_file: Path | None) -> None:
    secret = _authority_passphrase(directory, passphrase_file)
    files = authority.renew(directory, party, days, passphrase=secret)
    _say(f"{files.certificate}: {party} until {_end(files.certificate)}; copy this one file to {party}")


def revoke(directory: Path, party: str, passphrase_file: Path | None) -> None:
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority.revoke(directory, party, passphrase=secret)
    _say(f"{path}: {party} is revoked; {COPY}")


def renew_crl(directory: Path, days: int, passphrase_file: Path | None) -> None:
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority.renew_crl(directory, days, passphrase=secret)
    _say(f"{path}: {_crl_facts(_read_crl(path))}; {COPY}")


def show(file: Path) -> None:
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
    """One line, whatever the terminal's width and whatever a certificate says: it may be read by a script."""
    terminal().print(escape(printable(line)), highlight=False, soft_wrap=True)
