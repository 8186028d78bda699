"""Who we are, who they are: a party's certificate, and connections on which both sides have shown theirs.

Python's gRPC can neither read a revocation list nor say why a handshake failed. So:

- a server lets gRPC check the chain and dates of every client, and asks `caller` on every call for the name,
  which refuses a certificate that was revoked or has run out since;
- a client first makes the handshake with Python's own TLS (`probe`), which can say what is wrong, and then
  opens the gRPC channel with the certificate that it saw there as the only root of trust (`channel`). What
  the probe accepted is what the channel speaks with: nothing can be swapped in between.

A channel is bound to one certificate. After the peer renewed its own, the channel cannot connect again:
whoever reconnects calls `open_channel` anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from blindfit.algorithms.errors import ConfigError, PeerUnauthenticated, PeerUnreachable
from blindfit.parties.files.private_files import (
    private_pem,
    read_certificate,
    read_file,
    read_passphrase,
    read_private_key,
)
from blindfit.parties.identity.authority import REVOKED, PartyFiles, party_of
from blindfit.parties.settings import IdentitySettings
from blindfit.parties.wire.addresses import split_address
from blindfit.parties.wire.limits import Limits, channel_options

log = structlog.get_logger(__name__)

LOOK_AGAIN_S = (0.3, 1.0, 0.0)

VERIFY_FAILURES = {  # OpenSSL's X509_V_ERR_* -> what is wrong with the peer's certificate
    9: "its certificate is not valid yet (is a clock wrong?)",
    10: "its certificate has expired",
    18: "its certificate is signed by itself, not by our authority",
    19: "its certificate comes from another authority",
    20: "its certificate comes from another authority",
    21: "its certificate comes from another authority",
    26: "its certificate may not be used by a server",
}
NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
REVOKED_REASON = "its certificate was revoked"
HUNG_UP = "it hung up during the handshake: it is stopping, or has too many connections"

NEW_LIST = "`blindfit certs crl DIR`, run by the authority's operator, makes a new one: copy it over this file"
SOON = timedelta(days=7)  # of the end of a revocation list

Stamp = tuple[int, int, int]
NO_FILE: Stamp = (0, 0, 0)


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return NO_FILE
    return status.st_mtime_ns, status.st_ino, status.st_size


class RevocationList:
    """The authority's list of revoked certificates, read again whenever its file changes.

    Args:
        required: the file must be there, because the operator named it. A list that was read once must stay too.
    """

    def __init__(self, path: Path, authority: x509.Certificate, *, required: bool) -> None:
        self.path, self._authority, self.required = path, authority, required
        self._stamp: Stamp = NO_FILE
        self._crl: x509.CertificateRevocationList | None = None
        self._warned_of = NO_FILE  # a list that ends soon, once
        self._refresh()

    def has(self, certificate: x509.Certificate) -> bool:
        """Return whether the certificate was revoked; without a list, none was.

        Raises:
            ConfigError: our list is unreadable, foreign, expired, older than before or gone, so nobody can be let in.
        """
        self._refresh()
        if self._crl is None:
            return False
        self._check_fresh()
        return self._crl.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None

    def report(self, party: str) -> None:
        """Log which list acts and when it ends, or that none does."""
        if self._crl is None:
            log.warning("no revocation list: a revoked certificate is let in", party=party, hint=self.hint_if_missing)
        else:
            facts = {"file": str(self.path), "ends": _day(self._crl.next_update_utc), "revoked": len(self._crl)}
            log.info("a revocation list acts", party=party, **facts)

    @property
    def is_missing(self) -> bool:
        return self._crl is None

    @property
    def hint_if_missing(self) -> str:
        return f"copy the authority's crl.pem to {self.path}: it acts at once, without a restart"

    def _refresh(self) -> None:
        stamp = _stamp(self.path)
        if self._crl is not None and stamp == self._stamp:
            return
        if self._crl is None and not self.required and not os.path.lexists(self.path):
            return
        crl = self._read()
        if self._crl is not None:
            number, before = _number(crl), _number(self._crl)
            if number is not None and before is not None and number < before:
                raise ConfigError(
                    f"{self.path} is older than the list that acted before: its number is {number}, after {before}",
                    hint="copy the newest crl.pem from the authority's folder",
                )
            facts = {"file": str(self.path), "ends": _day(crl.next_update_utc), "revoked": len(crl)}
            log.info("a new revocation list acts", **facts)
        self._crl, self._stamp, self.required = crl, stamp, True

    def _read(self) -> x509.CertificateRevocationList:
        try:
            crl = x509.load_pem_x509_crl(read_file(self.path))
        except ValueError as error:
            raise ConfigError(
                f"{self.path} is not a revocation list in PEM",
                hint="it must begin with -----BEGIN X509 CRL-----",
            ) from error
        if not crl.is_signature_valid(self._authority.public_key()):  # type: ignore[arg-type]  # any CA's key
            raise ConfigError(
                f"{self.path} is not signed by our authority",
                hint="take crl.pem from the authority's folder",
            )
        return crl

    def _check_fresh(self) -> None:
        ends, now = self._crl.next_update_utc if self._crl is not None else None, datetime.now(UTC)
        if ends is None or ends <= now:
            raise ConfigError(
                f"{self.path} expired on {_day(ends)}" if ends else f"{self.path} has no end date", hint=NEW_LIST
            )
        if ends - now < SOON and self._warned_of != self._stamp:
            self._warned_of = self._stamp
            log.warning("the revocation list ends soon", file=str(self.path), ends=_day(ends), hint=NEW_LIST)


def _number(crl: x509.CertificateRevocationList) -> int | None:
    """Return the number that grows with each list of an authority, if it has one."""
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return None


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "never"


@dataclass(frozen=True)
class Identity:
    """What a party needs to show who it is and to know the others; made by `load_identity`.

    Attributes:
        seen: the last certificate that each party showed, and this party's own.
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

    def first_revoked(self, names: Iterable[str]) -> str:
        """Return the first of these parties whose certificate was revoked since it was shown; "" if there is none.

        Raises:
            ConfigError: our revocation list cannot be used.
        """
        shown = ((name, self.seen.get(name)) for name in names)
        return next((name for name, certificate in shown if certificate and self.revoked.has(certificate)), "")


def load_identity(
    certificate: Path,
    key: Path,
    authority: Path,
    revoked: Path | None = None,
    passphrase: bytes | None = None,
) -> Identity:
    """Reads a party's files and checks everything that a peer would check.

    Args:
        revoked: the authority's revocation list; by default crl.pem next to the certificate, if it is there.

    Raises:
        ConfigError: naming the file, what is wrong with it and what to do.
    """
    files = PartyFiles(certificate, key, authority, revoked)
    stamps = _stamps(files)  # before reading: a change meanwhile is then seen as one
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
        certificate_pem=_pem(leaf),
        authority_pem=_pem(root),
        key_pem=private_pem(private),
        passphrase=passphrase,
        revoked=revocations,
        stamps=stamps,
        seen={name: leaf},
    )


def open_identity(settings: IdentitySettings, base_dir: Path) -> Identity:
    """As a party's or a job's file names it, from the folder of that file; raises as `load_identity`."""
    passphrase = read_passphrase(base_dir / settings.passphrase_file) if settings.passphrase_file else None
    return load_identity(
        base_dir / settings.certificate,
        base_dir / settings.key,
        base_dir / settings.authority,
        base_dir / settings.revoked if settings.revoked else None,
        passphrase,
    )


def current(identity: Identity) -> Identity:
    """The identity, read again if its files changed; the old one while the new files do not fit together."""
    if _stamps(identity.files) == identity.stamps:
        return identity
    files, known = identity.files, identity.revoked
    revoked = known.path if known.required else files.revoked  # a list that has acted must stay
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
    return tuple(_stamp(path) for path in (files.certificate, files.key, files.authority))


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


# --- the server's side --------------------------------------------------------------------------------


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Credentials that ask every client for a certificate, and take our own renewed one without a restart."""
    latest = identity

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal latest
        newest = current(latest)
        if newest is latest:
            return None
        latest = newest
        log.info("a changed certificate is in use", party=latest.name)
        return _server_configuration(latest)

    return grpc.dynamic_ssl_server_credentials(
        _server_configuration(identity),
        renewed,  # type: ignore[arg-type]  # the stub forgets None, which means no change
        require_client_authentication=True,
    )


def _server_configuration(identity: Identity) -> grpc.ServerCertificateConfiguration:
    pair = (identity.key_pem, identity.certificate_pem)
    return grpc.ssl_server_certificate_configuration([pair], identity.authority_pem)


Context = grpc.aio.ServicerContext | Mapping[str, Iterable[bytes]]  # type: ignore[type-arg]


def caller(context: Context, identity: Identity) -> str:
    """The party that makes this call.

    gRPC has checked the chain when the connection was made; a connection may outlive its certificate, so what
    can change since is checked on every call.

    Raises:
        PeerUnauthenticated: no certificate, expired, revoked, or naming no party.
        ConfigError: our revocation list cannot be used, so nobody can be let in.
    """
    shown = _shown(context)
    if shown is None:
        raise PeerUnauthenticated(peer="a caller", reason="it showed no certificate")
    certificate, name = _read_shown(shown)
    if name is None:
        raise PeerUnauthenticated(peer="a caller", reason="its certificate names no party")
    if certificate.not_valid_after_utc <= datetime.now(UTC):
        raise PeerUnauthenticated(peer=name, reason="its certificate has expired")
    if identity.revoked.has(certificate):
        raise PeerUnauthenticated(peer=name, reason=REVOKED_REASON)
    identity.seen[name] = certificate
    return name


def check_not_revoked(context: Context, identity: Identity) -> None:
    """Check a call that was let in before. A list that cannot be read ends no call: it lets no new one in.

    Raises:
        PeerUnauthenticated: the caller's certificate was revoked since.
    """
    shown = _shown(context)
    if shown is not None:
        certificate, name = _read_shown(shown)
        with contextlib.suppress(ConfigError):
            if identity.revoked.has(certificate):
                raise PeerUnauthenticated(peer=name or "a caller", reason=REVOKED_REASON)


def _shown(context: Context) -> bytes | None:
    facts = context if isinstance(context, Mapping) else context.auth_context()
    return next(iter(facts.get("x509_pem_cert", ())), None)


@lru_cache(maxsize=256)
def _read_shown(pem: bytes) -> tuple[x509.Certificate, str | None]:
    """Every call shows one."""
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate, party_of(certificate)


# --- the client's side --------------------------------------------------------------------------------


async def open_channel(identity: Identity, peer: str, address: str, limits: Limits | None = None) -> grpc.aio.Channel:
    """A channel to the peer that answers at `address`, after both sides accepted each other's certificate.

    Raises:
        PeerUnreachable, PeerUnauthenticated: with the reason.
        ConfigError: the address, or our own files.
    """
    limits = limits or Limits()
    newest = current(identity)
    timeout_s = limits.connect_timeout_s
    try:
        async with asyncio.timeout(timeout_s + 1):  # the resolver of names knows no timeout of ours
            leaf = await asyncio.to_thread(probe, newest, peer, address, timeout_s)
    except TimeoutError as error:
        raise _unreachable(peer, address, f"no answer in {timeout_s:g} s") from error
    newest.seen[peer] = x509.load_pem_x509_certificate(leaf)
    return channel(newest, peer, address, leaf, channel_options(limits))


def channel(
    identity: Identity, peer: str, address: str, leaf: bytes, options: Sequence[tuple[str, Any]]
) -> grpc.aio.Channel:
    """A gRPC channel that trusts one certificate only, the `leaf` that `probe` returned."""
    credentials = grpc.ssl_channel_credentials(leaf, identity.key_pem, identity.certificate_pem)
    bound = [
        ("grpc.ssl_target_name_override", peer),
        ("grpc.use_local_subchannel_pool", 1),  # never a connection that another channel authenticated
    ]
    return grpc.aio.secure_channel(address, credentials, [*options, *bound])


def probe(identity: Identity, peer: str, address: str, timeout_s: float) -> bytes:
    """Shakes hands with a peer and hangs up; returns its certificate (PEM).

    Raises:
        PeerUnreachable: nobody there, or nobody who answers in time.
        PeerUnauthenticated: its certificate is not that peer's, or it refused ours.
        ConfigError: the address, or our own files.
    """
    deadline = time.monotonic() + timeout_s
    host, port = split_address(address)
    refusals = 0
    for wait_s in LOOK_AGAIN_S:
        try:
            with socket.create_connection((host, port), _left(deadline)) as connection:
                leaf = _shake_hands(identity, peer, address, connection, deadline)
        except PeerUnreachable:
            if not wait_s:
                raise
        except TimeoutError as error:
            raise _unreachable(peer, address, f"no answer in {timeout_s:g} s") from error
        except OSError as error:
            raise _unreachable(peer, address, error.strerror or str(error)) from error
        else:
            if leaf is not None:
                return leaf
            refusals += 1
        if refusals == 2:
            break
        # A server that is going down hangs up like one that refuses us; a moment later it no longer answers. One that
        # has too many connections soon has room.
        time.sleep(wait_s)
    raise PeerUnauthenticated(
        peer=peer,
        reason="it refused our certificate: it hung up after the handshake "
        f"(is {identity.files.certificate} of the same authority, and not expired?)",
    )


def _shake_hands(
    identity: Identity, peer: str, address: str, connection: socket.socket, deadline: float
) -> bytes | None:
    """The peer's certificate, once it has accepted ours; None if it hung up instead of accepting."""
    connection.settimeout(_left(deadline))
    try:
        tls = _client_context(identity).wrap_socket(connection, server_hostname=peer)
    except ssl.SSLError as error:
        raise _handshake_failure(peer, address, error) from error
    except ConnectionError as error:
        raise _unreachable(peer, address, HUNG_UP) from error
    with tls:
        leaf = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")
        _check_peer(identity, peer, leaf)
        if tls.selected_alpn_protocol() != "h2":
            raise _unreachable(peer, address, "what answers there is not a gRPC server")
        tls.settimeout(_left(deadline))
        accepted = _speaks_first(peer, tls)
    return _pem(leaf) if accepted else None


def _speaks_first(peer: str, tls: ssl.SSLSocket) -> bool:
    """Whether the server went on after our certificate.

    In TLS 1.3 the client has finished before the server judges its certificate. A server that accepts it
    begins with its SETTINGS (RFC 9113, 3.4); one that does not sends an alert, or like gRPC just hangs up. We
    send nothing: the answer to that, a reset, could overtake the alert.
    """
    try:
        return tls.recv(1) != b""
    except ConnectionError:
        return False
    except ssl.SSLError as error:
        raise PeerUnauthenticated(peer=peer, reason=_refusal(error)) from error


def _check_peer(identity: Identity, peer: str, leaf: x509.Certificate) -> None:
    name = party_of(leaf)
    if name is None:
        raise PeerUnauthenticated(peer=peer, reason="its certificate names no party")
    if name != peer:
        raise PeerUnauthenticated(peer=peer, reason=f"what answers there is {name}")
    if identity.revoked.has(leaf):
        raise PeerUnauthenticated(peer=peer, reason=REVOKED_REASON)


@lru_cache(maxsize=8)
def _client_context(identity: Identity) -> ssl.SSLContext:
    """One for all handshakes of an identity, which is another one when a certificate is renewed: to read the files
    takes as long as a handshake does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=identity.authority_pem.decode())
    # `_check_peer` is stricter than OpenSSL (the party's own name, not any host that its certificate lists)
    # and can say who did answer. The chain stays OpenSSL's to check: verify_mode is CERT_REQUIRED.
    context.check_hostname = False
    files = identity.files
    try:
        # Without a password OpenSSL would ask at the terminal.
        context.load_cert_chain(files.certificate, files.key, password=lambda: identity.passphrase or b"")
    except OSError as error:
        raise ConfigError(
            f"{files.certificate} and {files.key} do not load: {error.strerror or error}",
            hint="copy both from the same folder",
        ) from error
    return context


def _handshake_failure(peer: str, address: str, error: ssl.SSLError) -> PeerUnauthenticated | PeerUnreachable:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = VERIFY_FAILURES.get(error.verify_code, f"its certificate is not valid: {error.verify_message}")
        return PeerUnauthenticated(peer=peer, reason=reason)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _unreachable(peer, address, HUNG_UP)
    if error.reason in NOT_TLS:
        return PeerUnauthenticated(peer=peer, reason="what answers there does not speak TLS")
    return PeerUnauthenticated(peer=peer, reason=_refusal(error))


def _refusal(error: ssl.SSLError) -> str:
    """What an alert of the peer says, in words: TLSV1_ALERT_UNKNOWN_CA -> unknown ca."""
    reason = error.reason or str(error)
    said = reason.partition("_ALERT_")[2].replace("_", " ").lower()
    if any(word in said for word in ("certificate", "unknown ca", "access denied", "decrypt error")):
        return f"it refused our certificate: {said}"
    return f"the handshake failed: {said or reason.replace('_', ' ').lower()}"


def _unreachable(peer: str, address: str, reason: str) -> PeerUnreachable:
    return PeerUnreachable(peer=peer, address=address, step="connect", reason=reason)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
