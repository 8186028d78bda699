"""Connect to a peer once without gRPC, to learn why a connection fails: gRPC does not report the reason."""

from __future__ import annotations

import socket
import ssl
import time
from functools import lru_cache

from cryptography import x509

from blindfit.algorithms.errors import ConfigError, PeerUnauthenticated, PeerUnreachable
from blindfit.parties.identity.authority import party_of
from blindfit.parties.identity.identity import Identity, pem_of
from blindfit.parties.identity.revocation import LOOK_AGAIN_S, REVOKED_REASON
from blindfit.parties.wire.addresses import split_address

VERIFY_FAILURES = {  # OpenSSL's X509_V_ERR_* -> error in the peer's certificate
    9: "its certificate is not valid yet (is a clock wrong?)",
    10: "its certificate has expired",
    18: "its certificate is signed by itself, not by our authority",
    19: "its certificate comes from another authority",
    20: "its certificate comes from another authority",
    21: "its certificate comes from another authority",
    26: "its certificate may not be used by a server",
}


NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}


HUNG_UP = "it closed the connection during the handshake: it is stopping, or has too many connections"


def probe(identity: Identity, peer: str, address: str, timeout_s: float) -> bytes:
    """Make a handshake with a peer, close the connection, and return the peer's certificate (PEM).

    Raises:
        PeerUnreachable: no party is there, or it does not answer in time.
        PeerUnauthenticated: its certificate is not that peer's, or it refused ours.
        ConfigError: there is an error in the address, or in our own files.
    """
    deadline = time.monotonic() + timeout_s
    host, port = split_address(address)
    refusals = 0
    for wait_s in LOOK_AGAIN_S:
        try:
            with socket.create_connection((host, port), _find_time_left(deadline)) as connection:
                leaf = _shake_hands(identity, peer, address, connection, deadline)
        except PeerUnreachable:
            if not wait_s:
                raise
        except TimeoutError as error:
            raise unreachable(peer, address, f"no answer in {timeout_s:g} s") from error
        except OSError as error:
            raise unreachable(peer, address, error.strerror or str(error)) from error
        else:
            if leaf is not None:
                return leaf
            refusals += 1
        if refusals == 2:
            break
        # A server that stops closes the connection as one that refuses us does; a moment later it no longer answers.
        # One that has too many connections soon accepts more.
        time.sleep(wait_s)
    raise PeerUnauthenticated(
        peer=peer,
        reason="it refused our certificate: it closed the connection after the handshake "
        f"(is {identity.files.certificate} of the same authority, and not expired?)",
    )


def _shake_hands(
    identity: Identity, peer: str, address: str, connection: socket.socket, deadline: float
) -> bytes | None:
    """Return the peer's certificate, once it has accepted ours; None if it closed the connection instead."""
    connection.settimeout(_find_time_left(deadline))
    try:
        tls = _client_context(identity).wrap_socket(connection, server_hostname=peer)
    except ssl.SSLError as error:
        raise _handshake_failure(peer, address, error) from error
    except ConnectionError as error:
        raise unreachable(peer, address, HUNG_UP) from error
    with tls:
        leaf = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")
        _check_peer(identity, peer, leaf)
        if tls.selected_alpn_protocol() != "h2":
            raise unreachable(peer, address, "the process that answers there is not a gRPC server")
        tls.settimeout(_find_time_left(deadline))
        accepted = _speaks_first(peer, tls)
    return pem_of(leaf) if accepted else None


def _speaks_first(peer: str, tls: ssl.SSLSocket) -> bool:
    """Return True if the server continued after our certificate.

    In TLS 1.3 the client has finished before the server judges its certificate. A server that accepts the certificate
    begins with its SETTINGS (RFC 9113, 3.4). A server that does not sends an alert, or closes the connection as gRPC
    does. We send nothing: the answer to that, a reset, could overtake the alert.
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
        raise PeerUnauthenticated(peer=peer, reason=f"the party that answers there is {name}")
    if identity.revoked.has(leaf):
        raise PeerUnauthenticated(peer=peer, reason=REVOKED_REASON)


@lru_cache(maxsize=8)
def _client_context(identity: Identity) -> ssl.SSLContext:
    """Return the TLS context of an identity, used for all its handshakes. A renewed certificate makes another identity.
    To read the files takes as long as a handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=identity.authority_pem.decode())
    # `_check_peer` is stricter than OpenSSL (the party's own name, not any host that its certificate lists), and can
    # report who did answer. OpenSSL still checks the chain: verify_mode is CERT_REQUIRED.
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
        return unreachable(peer, address, HUNG_UP)
    if error.reason in NOT_TLS:
        return PeerUnauthenticated(peer=peer, reason="the process that answers there does not speak TLS")
    return PeerUnauthenticated(peer=peer, reason=_refusal(error))


def _refusal(error: ssl.SSLError) -> str:
    """Return a peer's alert in words: TLSV1_ALERT_UNKNOWN_CA -> unknown ca."""
    reason = error.reason or str(error)
    said = reason.partition("_ALERT_")[2].replace("_", " ").lower()
    if any(word in said for word in ("certificate", "unknown ca", "access denied", "decrypt error")):
        return f"it refused our certificate: {said}"
    return f"the handshake failed: {said or reason.replace('_', ' ').lower()}"


def unreachable(peer: str, address: str, reason: str) -> PeerUnreachable:
    return PeerUnreachable(peer=peer, address=address, step="connect", reason=reason)


def _find_time_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
