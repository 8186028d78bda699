"""The work of the `blindfit certs` commands."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer
from cryptography import x509

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.texts import printable
from blindfit.coordinator.terminal.json_output import Found
from blindfit.parties.files import private_files
from blindfit.parties.files.private_files import read_certificate, read_file, read_passphrase
from blindfit.parties.identity import AUTHORITY_VARIABLE, KEY_VARIABLE, authority
from blindfit.parties.identity.authority import PartyFiles, party_of, role_of

COPY = "copy this file next to the certificate of every party and of the coordinator"


def make_authority(directory: Path, name: str, days: int, protect: bool, passphrase_file: Path | None) -> Found:
    secret = _new_passphrase(AUTHORITY_VARIABLE, passphrase_file, protect, "the authority's key")
    authority.create_authority(directory, name, days, secret)
    ends = _end(directory / "authority.pem")
    document: dict[str, object] = {"folder": directory, "name": name, "ends": ends, "key_is_locked": bool(secret)}
    return _one_line(document, f"{directory}: {name} until {ends}; its key is {_lock(secret)}")


def issue(
    directory: Path,
    party: str,
    hosts: list[str],
    role: str | None,
    days: int,
    protect: bool,
    passphrase_file: Path | None,
    key_passphrase_file: Path | None,
) -> Found:
    opens = _authority_passphrase(directory, passphrase_file)
    locks = _new_passphrase(KEY_VARIABLE, key_passphrase_file, protect, f"{party}'s key")
    files = authority.issue(directory, party, hosts, days, role=role, passphrase=opens, key_passphrase=locks)
    folder, ends = files.certificate.parent, _end(files.certificate)
    document: dict[str, object] = {
        "folder": folder,
        "name": party,
        "role": role,
        "ends": ends,
        "key_is_locked": bool(locks),
    }
    named = f"{_with_role(party, role)} until {ends}"
    return _one_line(document, f"{folder}: {named}, with all files that {party} needs; its key is {_lock(locks)}")


def renew(directory: Path, party: str, days: int, passphrase_file: Path | None) -> Found:
    secret = _authority_passphrase(directory, passphrase_file)
    files = authority.renew(directory, party, days, passphrase=secret)
    file, ends = files.certificate, _end(files.certificate)
    document: dict[str, object] = {"file": file, "name": party, "ends": ends}
    return _one_line(document, f"{file}: {party} until {ends}; copy this one file to {party}")


def revoke(directory: Path, party: str, passphrase_file: Path | None) -> Found:
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority.revoke(directory, party, passphrase=secret)
    return _one_line({"file": path, "revoked": party}, f"{path}: {party} is revoked; {COPY}")


def renew_crl(directory: Path, days: int, passphrase_file: Path | None) -> Found:
    secret = _authority_passphrase(directory, passphrase_file)
    path = authority.renew_crl(directory, days, passphrase=secret)
    found = _read_crl(path)
    return _one_line({"file": path, **_crl_document(found)}, f"{path}: {_crl_facts(found)}; {COPY}")


def describe(file: Path) -> Found:
    """Return a description of a certificate, a revocation list, or the certificate in a party's folder."""
    path = PartyFiles.in_folder(file).certificate if file.is_dir() else file
    if b"X509 CRL" in read_file(path):
        listed = _read_crl(path)
        return _one_line({"file": path, **_crl_document(listed)}, f"{path}: {_crl_facts(listed)}")
    certificate = read_certificate(path)
    name = party_of(certificate) or certificate.subject.rfc4514_string()
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    serial = f"{certificate.serial_number:x}"
    document: dict[str, object] = {
        "file": path,
        "name": name,
        "role": role_of(certificate),
        "serial": serial,
        "starts": _day(starts),
        "ends": _day(ends),
    }
    when = f"{_day(starts)} to {_day(ends)}, {_days_left(ends)}"
    return _one_line(document, f"{path}: {_with_role(name, role_of(certificate))}, serial {serial}, {when}")


def _read_crl(path: Path) -> x509.CertificateRevocationList:
    try:
        return x509.load_pem_x509_crl(read_file(path))
    except ValueError as error:
        raise ConfigError(f"{path} is not a revocation list in PEM") from error


def _crl_document(revocations: x509.CertificateRevocationList) -> dict[str, object]:
    ends = revocations.next_update_utc
    return {"revoked": len(revocations), "ends": _day(ends) if ends else None}


def _crl_facts(revocations: x509.CertificateRevocationList) -> str:
    ends = revocations.next_update_utc
    until = f"until {_day(ends)}, {_days_left(ends)}" if ends else "without an end"
    return f"{len(revocations)} revoked, {until}"


def _days_left(ends: datetime) -> str:
    left = ends - datetime.now(UTC)
    return f"{left.days} days left" if left > timedelta(0) else f"expired {(-left).days} days ago"


def _end(path: Path) -> str:
    return _day(read_certificate(path).not_valid_after_utc)


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d}"


def _with_role(name: str, role: str | None) -> str:
    return f"{name} ({role})" if role else name


def _lock(passphrase: bytes | None) -> str:
    return "locked" if passphrase else "not locked"


# --- passphrases: a file, else the environment, else a question -----------------------------------------


def _authority_passphrase(directory: Path, file: Path | None) -> bytes | None:
    key = directory / "authority.key"
    if not key.exists() or not private_files.is_locked(read_file(key)):
        return None
    return _read_given(AUTHORITY_VARIABLE, file) or _ask_passphrase("the authority's key", confirm=False)


def _new_passphrase(variable: str, file: Path | None, protect: bool, what: str) -> bytes | None:
    given = _read_given(variable, file)
    return given if given or not protect else _ask_passphrase(what, confirm=True)


def _read_given(variable: str, file: Path | None) -> bytes | None:
    if file is None:
        return os.environb.get(variable.encode()) or None
    return read_passphrase(file)


def _ask_passphrase(what: str, *, confirm: bool) -> bytes:
    answer: str = typer.prompt(f"Passphrase of {what}", hide_input=True, confirmation_prompt=confirm, err=True)
    return answer.encode()


def _one_line(document: dict[str, object], line: str) -> Found:
    """Return one line for any certificate: a script may read it."""
    return Found(document, (printable(line),))
