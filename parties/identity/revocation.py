"""The list of revoked certificates, which is read again after its file has changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog
from cryptography import x509

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import read_file

log = structlog.get_logger(__name__)

LOOK_AGAIN_S = (0.3, 1.0, 0.0)


REVOKED_REASON = "its certificate was revoked"


NEW_LIST = "ask the authority's operator to run `blindfit certs crl DIR`, and copy the new list over this file"


SOON = timedelta(days=7)  # before the end of a revocation list


Stamp = tuple[int, int, int]


NO_FILE: Stamp = (0, 0, 0)


def stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return NO_FILE
    return status.st_mtime_ns, status.st_ino, status.st_size


class RevocationList:
    """The authority's list of revoked certificates, read again whenever its file changes.

    Args:
        required: True if the file must be there, because the operator named it. A list that was read once must stay
            too.
    """

    def __init__(self, path: Path, authority: x509.Certificate, *, required: bool) -> None:
        self.path, self._authority, self.required = path, authority, required
        self.stamp_of: Stamp = NO_FILE
        self._crl: x509.CertificateRevocationList | None = None
        self._warned_of = NO_FILE  # for one warning about a list that ends soon
        self._refresh()

    def has(self, certificate: x509.Certificate) -> bool:
        """Return True if the certificate was revoked; False without a list.

        Raises:
            ConfigError: our list is unreadable, foreign, expired, older than before or gone, so nobody can be admitted.
        """
        self._refresh()
        if self._crl is None:
            return False
        self._check_fresh()
        return self._crl.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None

    def report(self, party: str) -> None:
        """Log which list is in force and when it ends, or that no list is there."""
        if self._crl is None:
            log.warning("no revocation list: a revoked certificate is accepted", party=party, hint=self.hint_if_missing)
        else:
            facts = {"file": str(self.path), "ends": _day(self._crl.next_update_utc), "revoked": len(self._crl)}
            log.info("a revocation list is in force", party=party, **facts)

    @property
    def is_missing(self) -> bool:
        return self._crl is None

    @property
    def hint_if_missing(self) -> str:
        return f"copy the authority's crl.pem to {self.path}: it takes effect at once, without a restart"

    def _refresh(self) -> None:
        stamp = stamp_of(self.path)
        if self._crl is not None and stamp == self.stamp_of:
            return
        if self._crl is None and not self.required and not os.path.lexists(self.path):
            return
        crl = self._read()
        if self._crl is not None:
            number, before = _number(crl), _number(self._crl)
            if number is not None and before is not None and number < before:
                raise ConfigError(
                    f"{self.path} is older than the list in force before it: its number is {number}, after {before}",
                    hint="copy the newest crl.pem from the authority's folder",
                )
            facts = {"file": str(self.path), "ends": _day(crl.next_update_utc), "revoked": len(crl)}
            log.info("a new revocation list is in force", **facts)
        self._crl, self.stamp_of, self.required = crl, stamp, True

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
        if ends - now < SOON and self._warned_of != self.stamp_of:
            self._warned_of = self.stamp_of
            log.warning("the revocation list ends soon", file=str(self.path), ends=_day(ends), hint=NEW_LIST)


def _number(crl: x509.CertificateRevocationList) -> int | None:
    """Return the number that grows with each list of an authority, if it has one."""
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return None


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "never"
