"""Certificates, keys and lists with faults."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from blindfit.parties.identity import authority

P_256 = bytes.fromhex("06082a8648ce3d030107")  # identifier 1.2.840.10045.3.1.7


def short_crl(folder: Path, ends: datetime) -> None:
    """Sign the folder's revocation list again, with another end."""
    signer = authority._open(folder, None)
    builder = x509.CertificateRevocationListBuilder().issuer_name(signer.root.subject)
    crl = builder.last_update(ends - timedelta(days=1)).next_update(ends).sign(signer.key, hashes.SHA256())
    (folder / "crl.pem").write_bytes(crl.public_bytes(serialization.Encoding.PEM))


def write_pem(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def on_another_curve(pem: bytes, kind: str) -> bytes:
    """Move a certificate to a curve that OpenSSL does not know, with an identifier as long as that of P-256."""
    der = ssl.PEM_cert_to_DER_cert(pem.decode().replace(kind, "CERTIFICATE"))
    assert der.count(P_256) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(P_256, P_256[:-1] + b"\x7f")).replace("CERTIFICATE", kind).encode()
