"""Proof of a signing key's owner: the key of a party's certificate signs it.

A party signs receipts and releases with keys that outlive its certificates. A later reader identifies a party only by
its authority's certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.identity.authority import party_of
from blindfit.parties.identity.identity import Identity

RECEIPTS, RELEASES = "receipts", "releases"  # uses of a key: the proof for one use does not hold for another


@dataclass(frozen=True, slots=True)
class KeyProof:
    certificate: bytes = field(repr=False)  # DER
    signature: bytes = field(repr=False)


NO_PROOF = KeyProof(b"", b"")


def prove(identity: Identity, signs: str, key: bytes) -> KeyProof:
    """Return the proof that a key is the party's.

    Args:
        key: Ed25519, public.

    Raises:
        ConfigError: the certificate's key is of a kind that cannot sign here.
    """
    private = serialization.load_pem_private_key(identity.key_pem, None)
    message = _message(identity.name, signs, key)
    if isinstance(private, ec.EllipticCurvePrivateKey):
        signature = _of_one_length(private.sign(message, ec.ECDSA(hashes.SHA256())), private.curve)
    elif isinstance(private, rsa.RSAPrivateKey):
        signature = private.sign(message, padding.PKCS1v15(), hashes.SHA256())
    else:
        raise ConfigError(f"{identity.files.key} is neither an elliptic curve's key nor an RSA key")
    return KeyProof(encode(x509.load_pem_x509_certificate(identity.certificate_pem)), signature)


def authority_of(identity: Identity) -> x509.Certificate:
    return x509.load_pem_x509_certificate(identity.authority_pem)


def encode(certificate: x509.Certificate) -> bytes:
    """Return the certificate in DER."""
    return certificate.public_bytes(serialization.Encoding.DER)


def read_certificate_der(encoded: bytes, whose: str) -> x509.Certificate:
    """Return a certificate. Raise DataError if it cannot be read, or its key is of a kind that cannot be used here."""
    try:
        certificate = x509.load_der_x509_certificate(encoded)
        certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise DataError(f"the certificate of {whose} cannot be read") from None
    return certificate


def check(
    proof: KeyProof, name: str, signs: str, key: bytes, authority: x509.Certificate, at: datetime
) -> x509.Certificate:
    """Check the proof of a key's owner.

    Args:
        at: time at which the certificate must have been valid.

    Returns:
        The party's certificate.

    Raises:
        DataError: the proof does not show that the key is the party's.
    """
    certificate = read_certificate_der(proof.certificate, name)
    check_issued(certificate, name, authority, at)
    _check_signature(certificate, proof.signature, _message(name, signs, key), name)
    return certificate


def check_authority(authority: x509.Certificate) -> None:
    """Raise DataError if a certificate is not an authority's, or is incomplete."""
    try:
        authority.verify_directly_issued_by(authority)
        is_authority = authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        is_authority = False
    if not is_authority:
        raise DataError("the authority's certificate does not belong to an authority")


def check_issued(certificate: x509.Certificate, name: str, authority: x509.Certificate, at: datetime) -> None:
    """Raise DataError if this is not the party's certificate by this authority."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise DataError(f"the certificate of {name} was not issued by the authority") from None
    if party_of(certificate) != name:
        raise DataError(f"the certificate of {name} names another party")
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        raise DataError(f"the certificate of {name} was not valid at {at:%Y-%m-%d %H:%M} UTC")


def _check_signature(certificate: x509.Certificate, signature: bytes, message: bytes, name: str) -> None:
    public = certificate.public_key()
    try:
        if isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(_as_der(signature, public.curve), message, ec.ECDSA(hashes.SHA256()))
        elif isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
        else:
            raise DataError(f"the certificate of {name} has a key of another kind")
    except InvalidSignature:
        raise DataError(f"no proof shows that the key that signs for {name} is its own") from None


def _of_one_length(signature: bytes, curve: ec.EllipticCurve) -> bytes:
    """Return r and s, big-endian, each as long as the curve's order, because DER would have a random length."""
    size = -(-curve.key_size // 8)
    return b"".join(number.to_bytes(size, "big") for number in decode_dss_signature(signature))


def _as_der(signature: bytes, curve: ec.EllipticCurve) -> bytes:
    size = -(-curve.key_size // 8)
    if len(signature) != 2 * size:
        raise InvalidSignature
    return encode_dss_signature(int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big"))


def _message(name: str, signs: str, key: bytes) -> bytes:
    return f"blindfit-key-v1/{signs}/{name}/".encode() + key
