"""The certificate authority of a job, which assigns a key to each party, and revokes it.

A folder holds one authority, and for each party a folder with the files that the party needs and no others:

    authority.pem  authority.key    the root; its key never leaves this folder
    crl.pem                         the revoked certificates; it expires, so an old copy does not pass for a new one
    index.json                      every serial ever issued
    alice/                          certificate.pem  key.pem  authority.pem  crl.pem

A party is the common name of its certificate, repeated as its first alternative name. There are no intermediate
authorities: the root signs every certificate.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import (
    private_pem,
    read_certificate,
    read_file,
    read_private_key,
    replace_file,
    write_new,
)
from blindfit.parties.identity import CRL_DAYS, ROLES

PARTY_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
HOST_NAME = re.compile(r"(?=.{1,253}$)[a-zA-Z0-9]([a-zA-Z0-9-]{0,62})(\.[a-zA-Z0-9-]{1,63})*")

REVOKED = "crl.pem"  # the revocation list, in the authority's folder and in each party's
ROLE_URI = "blindfit:role:"  # beginning of the alternative name that carries a role; `renew` keeps it
CLOCK_SKEW = timedelta(hours=1)  # a new signature is valid at a peer whose clock is behind ours


@dataclass(frozen=True)
class PartyFiles:
    certificate: Path
    key: Path
    authority: Path
    revoked: Path | None = None

    @classmethod
    def in_folder(cls, folder: Path) -> PartyFiles:
        return cls(folder / "certificate.pem", folder / "key.pem", folder / "authority.pem", folder / REVOKED)


# --- the commands ---------------------------------------------------------------------------------


def create_authority(directory: Path, name: str, days: int = 3650, passphrase: bytes | None = None) -> None:
    """Make the root's key and certificate, an empty index and an empty revocation list in `directory`."""
    if not (name.isprintable() and 1 <= len(name) <= 64):
        raise ConfigError(f"the authority's name {name!r} must have 1 to 64 printable characters")
    key = ec.generate_private_key(ec.SECP256R1())
    root, key_pem = _root_certificate(key, name, _check_days(days)), private_pem(key, passphrase)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(directory):
        for path in (directory / "authority.pem", directory / "authority.key"):
            if path.exists():
                raise ConfigError(
                    f"{path} exists already: an authority is never overwritten", hint="choose another folder"
                )
        write_new(directory / "authority.key", key_pem, mode=0o600)
        _save_index(directory, _Index())
        # Last, because this file makes the folder an authority.
        write_new(directory / "authority.pem", pem_of(root))
        _write_crl(_Signer(directory, root, key), CRL_DAYS)


def issue(
    directory: Path,
    party: str,
    hosts: Sequence[str] = (),
    days: int = 365,
    *,
    role: str | None = None,
    passphrase: bytes | None = None,
    key_passphrase: bytes | None = None,
    starts: datetime | None = None,
) -> PartyFiles:
    """Make a key and a certificate for a party that has no certificate, or only revoked ones.

    Args:
        hosts: names and addresses that the certificate carries too, for clients that are not Blindfit.
        role: role in which the party may act with this certificate, one of ROLES; None names no role.
        days: lifetime in days from `starts`, and never beyond the authority's own last day.
        passphrase: passphrase of the authority's key.
        key_passphrase: passphrase for the party's key.
        starts: first moment of the certificate; by default now.
    """
    names = _alternative_names(check_party(party), hosts, role)
    folder = directory / party
    with _lock(directory):
        signer = _open(directory, passphrase)
        index = _load_index(directory)
        set_aside = _set_aside_as(folder, index) if folder.exists() else None
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(signer, party, key.public_key(), names, days, starts)
        key_pem = private_pem(key, key_passphrase)
        # From here on nothing is refused. The index comes first: a certificate that it does not list could never be
        # revoked.
        _save_index(directory, index.with_issued(party, certificate))
        _write_folder(signer, folder, certificate, key_pem, set_aside)
    return PartyFiles.in_folder(folder)


def renew(directory: Path, party: str, days: int = 365, *, passphrase: bytes | None = None) -> PartyFiles:
    """Replace a party's certificate by one that ends later, for the same key and names.

    Only certificate.pem changes, so the party can swap it in while it runs, and its key does not travel
    again. The older certificate stays valid until its own last day; a lost key needs `revoke` and `issue`.
    """
    files = PartyFiles.in_folder(directory / check_party(party))
    with _lock(directory):
        signer = _open(directory, passphrase)
        index = _load_index(directory)
        old = read_certificate(files.certificate)
        if old.serial_number in index.serials_revoked():
            raise ConfigError(
                f"{files.certificate} was revoked and cannot be renewed",
                hint=f"`blindfit certs issue {quote(str(directory))} {party}` makes a new key and certificate",
            )
        names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        public_key = old.public_key()
        if not isinstance(public_key, ec.EllipticCurvePublicKey):
            raise ConfigError(f"{files.certificate} was not issued by this authority: its key is not on a curve")
        certificate = _sign(signer, party, public_key, names, days, None)
        _save_index(directory, index.with_issued(party, certificate))
        replace_file(files.certificate, pem_of(certificate))
    return files


def revoke(directory: Path, party: str, *, passphrase: bytes | None = None, days: int = CRL_DAYS) -> Path:
    """Revoke every certificate that the party ever had; return the path of the new revocation list."""
    _check_days(days)  # before the index records a revocation that no list has
    with _lock(directory):
        signer = _open(directory, passphrase)
        index = _load_index(directory)
        known = sorted({entry.party for entry in index.issued})
        if check_party(party) not in known:
            raise ConfigError(
                f"{directory} never issued a certificate to {party!r}",
                hint=f"it knows {', '.join(known) or 'nobody'}",
            )
        _save_index(directory, index.with_revoked(party))
        return _write_crl(signer, days)


def renew_crl(directory: Path, days: int = CRL_DAYS, *, passphrase: bytes | None = None) -> Path:
    """Sign the same revocations again, for `days` from now."""
    with _lock(directory):
        return _write_crl(_open(directory, passphrase), days)


def check_party(party: str) -> str:
    if not PARTY_NAME.fullmatch(party):
        raise ConfigError(
            f"{party!r} is not a party's name",
            hint="a name has 1 to 63 lower-case letters, digits and hyphens, and starts with a letter",
        )
    return party


# --- certificates -----------------------------------------------------------------------------------


def party_of(certificate: x509.Certificate) -> str | None:
    """Return the party that a certificate names: its only common name, if that is its first alternative name too."""
    common = [name.value for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return None
    if not common or common != extension.value.get_values_for_type(x509.DNSName)[:1]:
        return None
    name = str(common[0])
    return name if PARTY_NAME.fullmatch(name) else None


def role_of(certificate: x509.Certificate) -> str | None:
    """Return the role that the authority wrote into a certificate; None if it wrote no role.

    For a certificate with several roles, or with an unknown role, this returns all of them as one text: it is the
    certificate of no role.
    """
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return None
    uris = extension.value.get_values_for_type(x509.UniformResourceIdentifier)
    roles = [uri.removeprefix(ROLE_URI) for uri in uris if uri.startswith(ROLE_URI)]
    return " and ".join(roles) if roles else None


@dataclass(frozen=True)
class _Signer:
    directory: Path
    root: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"_Signer({str(self.directory)!r})"


def _open(directory: Path, passphrase: bytes | None) -> _Signer:
    path = directory / "authority.pem"
    if not path.exists():
        raise ConfigError(
            f"{directory} holds no certificate authority",
            hint=f"`blindfit certs authority {quote(str(directory))}` makes one",
        )
    root = read_certificate(path)
    if root.not_valid_after_utc <= datetime.now(UTC):
        raise ConfigError(
            f"{path} expired on {root.not_valid_after_utc:%Y-%m-%d}",
            hint="make a new one in another folder",
        )
    key = read_private_key(directory / "authority.key", passphrase)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != root.public_key():
        raise ConfigError(f"{directory / 'authority.key'} is not the key of {path}")
    return _Signer(directory, root, key)


def _root_certificate(key: ec.EllipticCurvePrivateKey, name: str, days: int) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    return (
        _builder(subject, subject, key.public_key(), now - CLOCK_SKEW, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _sign(
    signer: _Signer,
    party: str,
    public_key: ec.EllipticCurvePublicKey,
    names: x509.SubjectAlternativeName,
    days: int,
    starts: datetime | None,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)])
    now = datetime.now(UTC)
    ends = min((starts or now) + timedelta(days=_check_days(days)), signer.root.not_valid_after_utc)
    authority_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    both_sides = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        _builder(signer.root.subject, subject, public_key, starts or now - CLOCK_SKEW, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_sides), critical=False)
        .add_extension(names, critical=False)
        .add_extension(authority_key_id, critical=False)
        .sign(signer.key, hashes.SHA256())
    )


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, starts: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(starts)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(party: str, hosts: Sequence[str], role: str | None) -> x509.SubjectAlternativeName:
    others = [_host(host) for host in dict.fromkeys(hosts) if host != party]
    if role is not None and role not in ROLES:
        raise ConfigError(f"{role!r} is not a role", hint=f"a role is one of {', '.join(ROLES)}")
    roles = [x509.UniformResourceIdentifier(f"{ROLE_URI}{role}")] if role else []
    return x509.SubjectAlternativeName([x509.DNSName(party), *others, *roles])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not HOST_NAME.fullmatch(host):
        raise ConfigError(f"{host!r} is neither a host name nor an address", hint="give it without scheme and port")
    return x509.DNSName(host)


def _check_days(days: int) -> int:
    if not 1 <= days <= 36500:
        raise ConfigError(f"{days} days is not a valid lifetime: choose 1 to 36500")
    return days


# --- the index and the revocation list ----------------------------------------------------------------


@dataclass(frozen=True)
class _Issued:
    serial: str
    party: str
    until: str
    revoked: str | None = None


@dataclass(frozen=True)
class _Index:
    crl_number: int = 0
    issued: tuple[_Issued, ...] = ()

    def with_issued(self, party: str, certificate: x509.Certificate) -> _Index:
        until = certificate.not_valid_after_utc.isoformat()
        entry = _Issued(f"{certificate.serial_number:x}", party, until)
        return replace(self, issued=(*self.issued, entry))

    def with_revoked(self, party: str) -> _Index:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        marked = (
            replace(entry, revoked=now) if entry.party == party and entry.revoked is None else entry
            for entry in self.issued
        )
        return replace(self, issued=tuple(marked))

    def serials_revoked(self) -> dict[int, datetime]:
        return {int(e.serial, 16): datetime.fromisoformat(e.revoked) for e in self.issued if e.revoked}


def _load_index(directory: Path) -> _Index:
    path = directory / "index.json"
    try:
        fields = json.loads(read_file(path))
        return _Index(fields["crl_number"], tuple(_Issued(**entry) for entry in fields["issued"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is damaged: {error}", hint="restore it from a backup") from error


def _save_index(directory: Path, index: _Index) -> None:
    replace_file(directory / "index.json", (json.dumps(asdict(index), indent=1) + "\n").encode(), mode=0o600)


def _write_crl(signer: _Signer, days: int) -> Path:
    index = _load_index(signer.directory)
    index = replace(index, crl_number=index.crl_number + 1)
    pem = _sign_crl(signer, index, _check_days(days)).public_bytes(serialization.Encoding.PEM)
    _save_index(signer.directory, index)
    path = signer.directory / REVOKED
    replace_file(path, pem)
    for folder in signer.directory.iterdir():
        if PARTY_NAME.fullmatch(folder.name) and (folder / "certificate.pem").exists():
            replace_file(folder / REVOKED, pem)
    return path


def _sign_crl(signer: _Signer, index: _Index, days: int) -> x509.CertificateRevocationList:
    now = datetime.now(UTC)
    authority_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(signer.root.subject)
        .last_update(now - CLOCK_SKEW)
        .next_update(now + timedelta(days=days))
        .add_extension(x509.CRLNumber(index.crl_number), critical=False)
        .add_extension(authority_key_id, critical=False)
    )
    for serial, since in index.serials_revoked().items():
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(since).build()
        builder = builder.add_revoked_certificate(revoked)
    return builder.sign(signer.key, hashes.SHA256())


def _set_aside_as(folder: Path, index: _Index) -> Path:
    """Return the place for a party's revoked files, out of the way of new ones; refuse files that are in force."""
    serial = read_certificate(folder / "certificate.pem").serial_number
    if serial not in index.serials_revoked():
        raise ConfigError(
            f"{folder} exists already: {folder.name} has a certificate",
            hint=f"`blindfit certs renew {quote(str(folder.parent))} {folder.name}` makes it last longer; to replace "
            f"a lost key, `blindfit certs revoke {quote(str(folder.parent))} {folder.name}` comes before `issue`",
        )
    return folder.with_name(f"{folder.name}.revoked-{serial:x}")


def _write_folder(
    signer: _Signer, folder: Path, certificate: x509.Certificate, key_pem: bytes, set_aside: Path | None
) -> None:
    """Write a party's folder; it appears complete or not at all.

    Args:
        set_aside: place to which an older folder is moved first.
    """
    temporary = Path(tempfile.mkdtemp(prefix=".issue-", dir=signer.directory))  # mode 0700
    try:
        files = PartyFiles.in_folder(temporary)
        write_new(files.key, key_pem, mode=0o600)
        write_new(files.certificate, pem_of(certificate))
        write_new(files.authority, pem_of(signer.root))
        if (signer.directory / REVOKED).exists():
            write_new(temporary / REVOKED, read_file(signer.directory / REVOKED))
        if set_aside is not None:
            folder.rename(set_aside)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Let one command at a time work in an authority's folder, so that no serial is lost from the index."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(
            f"{directory} cannot be opened: {error.strerror}",
            hint=f"`blindfit certs authority {quote(str(directory))}` makes a certificate authority",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
