"""A party's certificate, key and authority: read from its files, checked, and read again once they are renewed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import private_pem, read_certificate, read_passphrase, read_private_key
from blindfit.parties.identity.authority import REVOKED, PartyFiles, party_of, role_of
from blindfit.parties.identity.revocation import RevocationList, Stamp, stamp_of
from blindfit.parties.settings import IdentitySettings

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Identity:
    """The files with which a party proves its identity and checks that of others; made by `load_identity`.

    Attributes:
        seen: last certificate that each party showed, and this party's own.
    """

    name: str
    files: PartyFiles
    certificate_pem: bytes = field(repr=False)
    authority_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    passphrase: bytes | None = field(repr=False)
    revoked: RevocationList = field(repr=False, compare=False)
    stamps: tuple[Stamp, ...] = field(repr=False, compare=False)
    seen: dict[str, x509.Certificate] = field(default_factory=dict, repr=False, compare=False)

    @property
    def role(self) -> str | None:
        """Role that its certificate carries; None without a role."""
        return role_of(x509.load_pem_x509_certificate(self.certificate_pem))

    def first_revoked(self, names: Iterable[str]) -> str:
        """Return the first of these parties whose certificate was revoked since it was shown; "" if none was.

        Raises:
            ConfigError: our revocation list cannot be used.
        """
        shown = ((name, self.seen.get(name)) for name in names)
        return next((name for name, certificate in shown if certificate and self.revoked.has(certificate)), "")


def load_identity(
    certificate: str | Path,
    key: str | Path,
    authority: str | Path,
    revoked: str | Path | None = None,
    passphrase: bytes | None = None,
) -> Identity:
    """Read a party's certificate and key, and check everything that a peer would check.

    Args:
        certificate: file of the certificate, PEM.
        key: file of its private key, PEM.
        authority: file of the authority's certificate, PEM.
        revoked: file of the authority's revocation list; by default crl.pem next to the certificate, if it exists.
        passphrase: passphrase of the key, if the key is encrypted.

    Returns:
        The identity; its repr has no secret.

    Raises:
        ConfigError: a file is missing or wrong; the message names it and the next step.

    Example:
        >>> shop = blindfit.load_identity("shop/certificate.pem", "shop/key.pem", "shop/authority.pem")
        >>> shop.name, shop.role
        ('shop', 'active')
    """
    certificate, key, authority = Path(certificate), Path(key), Path(authority)
    revoked = None if revoked is None else Path(revoked)
    files = PartyFiles(certificate, key, authority, revoked)
    stamps = _stamps(files)  # before the files are read, so that a change meanwhile is noticed
    leaf, root = read_certificate(certificate), read_certificate(authority)
    private = read_private_key(key, passphrase)
    if private.public_key() != leaf.public_key():
        raise ConfigError(f"{key} is not the key of {certificate}", hint="copy both from the same folder")
    _check_root(authority, root)
    _check_leaf(files, leaf, root)
    beside = certificate.with_name(REVOKED)
    revocations = RevocationList(revoked or beside, root, required=revoked is not None)
    if revocations.has(leaf):
        raise ConfigError(
            f"{certificate} was revoked", hint="ask the authority's operator for a new key and certificate"
        )
    name = party_of(leaf)
    if name is None:
        raise ConfigError(
            f"{certificate} names no party: its common name must be its first alternative name",
            hint="`blindfit certs issue DIR PARTY` makes such a certificate",
        )
    return Identity(
        name=name,
        files=files,
        certificate_pem=pem_of(leaf),
        authority_pem=pem_of(root),
        key_pem=private_pem(private),
        passphrase=passphrase,
        revoked=revocations,
        stamps=stamps,
        seen={name: leaf},
    )


def open_identity(settings: IdentitySettings, base_dir: Path) -> Identity:
    """Open the identity that a party's or a job's file names, from the folder of that file; raise as `load_identity`
    does.
    """
    passphrase = read_passphrase(base_dir / settings.passphrase_file) if settings.passphrase_file else None
    return load_identity(
        base_dir / settings.certificate,
        base_dir / settings.key,
        base_dir / settings.authority,
        base_dir / settings.revoked if settings.revoked else None,
        passphrase,
    )


def current(identity: Identity) -> Identity:
    """Return the identity, read again if its files changed; the old one while the new files do not fit together."""
    if _stamps(identity.files) == identity.stamps:
        return identity
    files, known = identity.files, identity.revoked
    revoked = known.path if known.required else files.revoked  # a list that was in force must stay
    try:
        newest = load_identity(files.certificate, files.key, files.authority, revoked, identity.passphrase)
    except ConfigError as error:
        log.warning("the changed certificate is not taken", reason=error.message, hint=error.hint)
        return identity
    if newest.name != identity.name:
        log.warning("the changed certificate is not taken", reason=f"it names {newest.name}")
        return identity
    identity.seen.update(newest.seen)
    return replace(newest, seen=identity.seen)


def _stamps(files: PartyFiles) -> tuple[Stamp, ...]:
    return tuple(stamp_of(path) for path in (files.certificate, files.key, files.authority))


def _check_root(path: Path, root: x509.Certificate) -> None:
    try:
        is_authority = root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    if not is_authority:
        raise ConfigError(f"{path} is not an authority's certificate", hint="give authority.pem")
    if root.not_valid_after_utc <= datetime.now(UTC):
        raise ConfigError(
            f"{path} expired on {root.not_valid_after_utc:%Y-%m-%d}",
            hint="every party needs a certificate of a new authority",
        )


def _check_leaf(files: PartyFiles, leaf: x509.Certificate, root: x509.Certificate) -> None:
    try:
        leaf.verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ConfigError(
            f"{files.certificate} was not issued by {files.authority}",
            hint="certificates of all parties come from one authority, without intermediates",
        ) from error
    now = datetime.now(UTC)
    if now < leaf.not_valid_before_utc:
        raise ConfigError(
            f"{files.certificate} is not valid before {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC",
            hint="is this machine's clock right?",
        )
    if leaf.not_valid_after_utc <= now:
        raise ConfigError(
            f"{files.certificate} expired on {leaf.not_valid_after_utc:%Y-%m-%d}",
            hint="`blindfit certs renew DIR PARTY`, run by the authority's operator, makes a new one",
        )
    if not _serves_and_calls(leaf):
        raise ConfigError(
            f"{files.certificate} must allow both server and client authentication",
            hint="every party is both: its extended key usage needs serverAuth and clientAuth",
        )


def _serves_and_calls(leaf: x509.Certificate) -> bool:
    try:
        usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True  # no restriction
    return {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH} <= set(usage)


def pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
