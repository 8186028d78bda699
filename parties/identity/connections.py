"""A party's certificate, and connections on which both sides have shown theirs.

Python's gRPC can neither read a revocation list nor report why a handshake failed. So:

- a server lets gRPC check the chain and dates of every client. On every call it uses `caller` for the name, which
  refuses a certificate that was revoked or has expired since;
- a client first makes the handshake with Python's own TLS (`probe`), which can report an error. Then it opens the gRPC
  channel with the certificate that it saw there as the only root of trust (`channel`). The channel speaks with the peer
  that the probe accepted: nothing can be exchanged in between.

A channel is bound to one certificate. After the peer has renewed its own, the channel cannot connect again: a party
that reconnects calls `open_channel` again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import grpc
import structlog
from cryptography import x509

from blindfit.algorithms.errors import ConfigError, PeerUnauthenticated
from blindfit.parties.identity.authority import party_of
from blindfit.parties.identity.identity import Identity, current
from blindfit.parties.identity.probing import probe, unreachable
from blindfit.parties.identity.revocation import REVOKED_REASON
from blindfit.parties.wire.limits import Limits, channel_options

log = structlog.get_logger(__name__)


# --- the server's side --------------------------------------------------------------------------------


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Return credentials that ask every client for a certificate, and take our own renewed one without a restart."""
    latest = identity

    def renew() -> grpc.ServerCertificateConfiguration | None:
        nonlocal latest
        newest = current(latest)
        if newest is latest:
            return None
        latest = newest
        log.info("a changed certificate is in use", party=latest.name)
        return _server_configuration(latest)

    return grpc.dynamic_ssl_server_credentials(
        _server_configuration(identity),
        renew,  # type: ignore[arg-type]  # the stub forgets None, which means no change
        require_client_authentication=True,
    )


def _server_configuration(identity: Identity) -> grpc.ServerCertificateConfiguration:
    pair = (identity.key_pem, identity.certificate_pem)
    return grpc.ssl_server_certificate_configuration([pair], identity.authority_pem)


Context = grpc.aio.ServicerContext | Mapping[str, Iterable[bytes]]  # type: ignore[type-arg]


def caller(context: Context, identity: Identity) -> str:
    """Return the party that makes this call.

    gRPC has checked the chain when the connection was made. A connection may outlive its certificate, so the facts that
    can change since then are checked on every call.

    Raises:
        PeerUnauthenticated: no certificate, expired, revoked, or naming no party.
        ConfigError: our revocation list cannot be used, so nobody can be admitted.
    """
    shown = _find_shown(context)
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
    """Check a call that was admitted before. A list that cannot be read ends no call: it only admits no new one.

    Raises:
        PeerUnauthenticated: the caller's certificate was revoked since.
    """
    shown = _find_shown(context)
    if shown is not None:
        certificate, name = _read_shown(shown)
        with contextlib.suppress(ConfigError):
            if identity.revoked.has(certificate):
                raise PeerUnauthenticated(peer=name or "a caller", reason=REVOKED_REASON)


def _find_shown(context: Context) -> bytes | None:
    facts = context if isinstance(context, Mapping) else context.auth_context()
    return next(iter(facts.get("x509_pem_cert", ())), None)


@lru_cache(maxsize=256)
def _read_shown(pem: bytes) -> tuple[x509.Certificate, str | None]:
    """Return the certificate and its party. Every call shows a certificate, so the results are cached."""
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate, party_of(certificate)


# --- the client's side --------------------------------------------------------------------------------


async def open_channel(identity: Identity, peer: str, address: str, limits: Limits | None = None) -> grpc.aio.Channel:
    """Return a channel to the peer that answers at `address`, after both sides accepted each other's certificate.

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
        raise unreachable(peer, address, f"no answer in {timeout_s:g} s") from error
    newest.seen[peer] = x509.load_pem_x509_certificate(leaf)
    return channel(newest, peer, address, leaf, channel_options(limits))


def channel(
    identity: Identity, peer: str, address: str, leaf: bytes, options: Sequence[tuple[str, Any]]
) -> grpc.aio.Channel:
    """Return a gRPC channel that trusts one certificate only, the `leaf` that `probe` returned."""
    credentials = grpc.ssl_channel_credentials(leaf, identity.key_pem, identity.certificate_pem)
    bound = [
        ("grpc.ssl_target_name_override", peer),
        ("grpc.use_local_subchannel_pool", 1),  # never use a connection that another channel authenticated
    ]
    return grpc.aio.secure_channel(address, credentials, [*options, *bound])
