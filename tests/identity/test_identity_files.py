"""`load_identity` names every wrong file, and what to do."""

from __future__ import annotations

import dataclasses
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID
from structlog.testing import capture_logs

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.job.job import JobParty
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity import authority, revocation
from blindfit.parties.identity.authority import PartyFiles, issue, renew, renew_crl, revoke
from blindfit.parties.identity.identity import current, load_identity
from blindfit.parties.identity.key_proof import read_certificate_der
from blindfit.parties.identity.revocation import RevocationList
from blindfit.parties.settings import PeerSettings
from blindfit.parties.tables import Settings, validate
from blindfit.parties.wire.addresses import split_address
from tests.certificates import demo_authority, load
from tests.each_case import each_case
from tests.identity.bad_files import on_another_curve, short_crl, write_pem


@pytest.fixture
def files(folder: Path) -> PartyFiles:
    return issue(folder, "alice")


def test_a_good_identity_knows_its_name_and_shows_no_secret(files: PartyFiles) -> None:
    identity = load(files)
    assert identity.name == "alice"
    assert b"PRIVATE" in identity.key_pem
    assert "PRIVATE" not in repr(identity)
    assert "CERTIFICATE" not in repr(identity)
    with pytest.raises(dataclasses.FrozenInstanceError):
        identity.name = "bob"


def test_the_passphrase_opens_the_key_and_is_not_shown(folder: Path) -> None:
    secret = b"correct horse battery staple"
    files = issue(folder, "bob", key_passphrase=secret)
    identity = load_identity(files.certificate, files.key, files.authority, passphrase=secret)
    assert b"ENCRYPTED" not in identity.key_pem
    assert "horse" not in repr(identity)


@pytest.mark.parametrize("which", ["certificate", "key", "authority", "revoked"])
def test_a_missing_file_is_named(files: PartyFiles, which: str) -> None:
    path = getattr(files, which)
    path.unlink()
    with pytest.raises(ConfigError, match=f"^{path} cannot be read: No such file or directory( \\(|$)") as caught:
        load(files)
    assert caught.value.hint == "check the path and the file's owner"


@pytest.mark.parametrize(
    ("which", "text"),
    [
        ("certificate", "is not a certificate in PEM"),
        ("key", "is not a private key in PEM"),
        ("authority", "is not a certificate in PEM"),
        ("revoked", "is not a revocation list in PEM"),
    ],
)
def test_a_damaged_file_is_named(files: PartyFiles, which: str, text: str) -> None:
    path = getattr(files, which)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ConfigError, match=f"^{path} {text}( \\(|$)"):
        load(files)


@pytest.mark.parametrize(
    ("which", "kind"), [("certificate", "CERTIFICATE"), ("key", "PRIVATE KEY"), ("authority", "CERTIFICATE")]
)
def test_a_key_on_a_curve_that_is_not_supported_is_named_with_its_file(
    files: PartyFiles, which: str, kind: str
) -> None:
    path = getattr(files, which)
    path.write_bytes(on_another_curve(path.read_bytes(), kind))
    said = f"^{path} has a key that cannot be used here: Curve 1.2.840.10045.3.1.127 is not supported( \\(|$)"
    with pytest.raises(ConfigError, match=said):
        load(files)


def test_the_certificate_of_another_with_such_a_key_is_one_that_cannot_be_read(files: PartyFiles) -> None:
    der = ssl.PEM_cert_to_DER_cert(on_another_curve(files.certificate.read_bytes(), "CERTIFICATE").decode())
    with pytest.raises(DataError, match=r"^the certificate of alice cannot be read$"):
        read_certificate_der(der, "alice")


def test_another_partys_key(folder: Path, files: PartyFiles) -> None:
    other = issue(folder, "bob")
    with pytest.raises(ConfigError, match=f"^{other.key} is not the key of {files.certificate}( \\(|$)"):
        load(dataclasses.replace(files, key=other.key))


def test_another_authority(tmp_path: Path, files: PartyFiles) -> None:
    other = demo_authority(tmp_path / "other")
    with pytest.raises(ConfigError, match=f"^{files.certificate} was not issued by {other}/authority.pem( \\(|$)"):
        load(dataclasses.replace(files, authority=other / "authority.pem"))
    with pytest.raises(ConfigError, match=f"^{other}/crl.pem is not signed by our authority( \\(|$)"):
        load(dataclasses.replace(files, revoked=other / "crl.pem"))


def test_a_partys_certificate_is_no_authority(files: PartyFiles) -> None:
    with pytest.raises(ConfigError, match=r"certificate\.pem is not an authority's certificate( \(|$)") as caught:
        load(dataclasses.replace(files, authority=files.certificate))
    assert caught.value.hint == "give authority.pem"


def test_a_certificate_that_does_not_say_whether_it_is_an_authority(folder: Path, files: PartyFiles) -> None:
    signer = authority._open(folder, None)
    now = datetime.now(UTC)
    plain = authority._builder(signer.root.subject, signer.root.subject, signer.key.public_key(), now, now)
    write_pem(files.authority, plain.sign(signer.key, hashes.SHA256()))
    with pytest.raises(ConfigError, match=r"authority\.pem is not an authority's certificate( \(|$)"):
        load(files)


def test_an_authority_that_is_over(folder: Path, files: PartyFiles) -> None:
    signer = authority._open(folder, None)
    then = datetime.now(UTC) - timedelta(days=1)
    root = authority._builder(signer.root.subject, signer.root.subject, signer.key.public_key(), then, then)
    basic = x509.BasicConstraints(ca=True, path_length=0)
    write_pem(files.authority, root.add_extension(basic, critical=True).sign(signer.key, hashes.SHA256()))
    with pytest.raises(ConfigError, match=rf"authority\.pem expired on {then:%Y-%m-%d}( \(|$)") as caught:
        load(files)
    assert caught.value.hint == "every party needs a certificate of a new authority"


def test_a_certificate_whose_use_is_not_restricted(folder: Path, files: PartyFiles) -> None:
    signer, issued = authority._open(folder, None), read_certificate(files.certificate)
    kept = [e for e in issued.extensions if not isinstance(e.value, x509.ExtendedKeyUsage)]
    builder = x509.CertificateBuilder(
        signer.root.subject,
        issued.subject,
        issued.public_key(),
        issued.serial_number,
        issued.not_valid_before_utc,
        issued.not_valid_after_utc,
        list(kept),
    )
    write_pem(files.certificate, builder.sign(signer.key, hashes.SHA256()))
    assert load(files).name == "alice"


def test_dates(folder: Path) -> None:
    now = datetime.now(UTC)
    with pytest.raises(ConfigError, match=r"old/certificate\.pem expired on 20") as caught:
        load(issue(folder, "old", starts=now - timedelta(days=10), days=5))
    assert "certs renew" in caught.value.hint
    with pytest.raises(ConfigError, match=r"new/certificate\.pem is not valid before 20.* UTC( \(|$)") as caught:
        load(issue(folder, "new", starts=now + timedelta(hours=2), days=5))
    assert caught.value.hint == "is this machine's clock right?"


def test_our_own_revoked_certificate(folder: Path, files: PartyFiles) -> None:
    revoke(folder, "alice")
    with pytest.raises(ConfigError, match=f"^{files.certificate} was revoked( \\(|$)"):
        load(files)


def test_a_certificate_that_may_only_serve(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    with monkeypatch.context() as patch:
        patch.setattr(authority.x509, "ExtendedKeyUsage", lambda _: usage)
        files = issue(folder, "alice")
    with pytest.raises(ConfigError, match=r"must allow both server and client authentication( \(|$)"):
        load(files)


def test_a_certificate_without_a_party(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "_alternative_names", lambda *_: x509.SubjectAlternativeName([x509.DNSName("bob")]))
    with pytest.raises(ConfigError, match=r"names no party: its common name must be its first alternative name( \(|$)"):
        load(issue(folder, "alice"))


def test_an_expired_revocation_list(folder: Path, files: PartyFiles) -> None:
    short_crl(folder, datetime.now(UTC) - timedelta(days=1))
    stale = dataclasses.replace(files, revoked=folder / "crl.pem")
    with pytest.raises(ConfigError, match=rf"^{folder}/crl\.pem expired on 20\d\d-\d\d-\d\d( \(|$)") as caught:
        load(stale)
    assert caught.value.hint.startswith("ask the authority's operator to run `blindfit certs crl DIR`")
    renew_crl(folder)
    load(stale)


def test_a_revocation_list_ages_and_changes_while_it_is_in_use(
    folder: Path, files: PartyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = read_certificate(files.certificate)
    later = datetime.now(UTC) + timedelta(hours=1)
    short_crl(folder, later)
    revocations = RevocationList(folder / "crl.pem", read_certificate(files.authority), required=True)
    assert not revocations.has(certificate)
    with monkeypatch.context() as patch:
        patch.setattr(revocation, "datetime", SimpleNamespace(now=lambda _: later))
        with pytest.raises(ConfigError, match="expired on"):
            revocations.has(certificate)
    revoke(folder, "alice")
    assert revocations.has(certificate)
    (folder / "crl.pem").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        revocations.has(certificate)


# --- the list next to the certificate, which no option names --------------------------------------------


@pytest.fixture
def unnamed(files: PartyFiles) -> PartyFiles:
    """Files as in a party's file that follows `blindfit init`."""
    return dataclasses.replace(files, revoked=None)


def crl_of(unnamed: PartyFiles) -> Path:
    return unnamed.certificate.with_name("crl.pem")


def test_the_list_beside_the_certificate_acts(folder: Path, unnamed: PartyFiles) -> None:
    bob = read_certificate(issue(folder, "bob").certificate)
    identity = load(unnamed)
    assert not identity.revoked.has(bob)
    revoke(folder, "bob")  # writes the new list into every party's folder
    assert identity.revoked.has(bob)
    with capture_logs() as logs:
        load(unnamed).revoked.report("alice")
    (line,) = logs
    assert (line["event"], line["file"], line["revoked"]) == ("a revocation list is in force", str(crl_of(unnamed)), 1)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", line["ends"])


def test_a_list_that_comes_later_acts_without_a_restart(folder: Path, unnamed: PartyFiles) -> None:
    bob = read_certificate(issue(folder, "bob").certificate)
    revoke(folder, "bob")
    later = crl_of(unnamed).read_bytes()
    crl_of(unnamed).unlink()
    identity = load(unnamed)
    with capture_logs() as logs:
        identity.revoked.report("alice")
    assert [(line["log_level"], line["hint"]) for line in logs] == [
        ("warning", f"copy the authority's crl.pem to {crl_of(unnamed)}: it takes effect at once, without a restart")
    ]
    assert not identity.revoked.has(bob)
    crl_of(unnamed).write_bytes(later)
    assert identity.revoked.has(bob)
    crl_of(unnamed).unlink()
    with pytest.raises(ConfigError, match=r"crl\.pem cannot be read: No such file"):
        identity.revoked.has(bob)
    renew(folder, "alice")  # a new certificate does not bring back the time before the list
    assert current(identity) is identity


BAD_LISTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "expired": (
        lambda folder, _: short_crl(folder, datetime.now(UTC) - timedelta(days=1)),
        r"crl\.pem expired on 20\d\d-\d\d-\d\d \(ask the authority's operator to run `blindfit certs crl DIR`",
    ),
    "foreign": (
        lambda folder, path: path.write_bytes((demo_authority(folder / "other") / "crl.pem").read_bytes()),
        r"crl\.pem is not signed by our authority \(take crl",
    ),
    "no list": (lambda _, path: path.write_text("-----BEGIN X509 CRL-----\n"), r"crl\.pem is not a revocation list"),
    "empty": (lambda _, path: path.write_bytes(b""), r"crl\.pem is not a revocation list"),
    "a directory": (lambda _, path: (path.unlink(), path.mkdir()), r"crl\.pem cannot be read: this is a directory"),
    "a link to nothing": (
        lambda _, path: (path.unlink(), path.symlink_to("nothing")),
        r"crl\.pem cannot be read: No such file",
    ),
}


@each_case("what", list(BAD_LISTS))
def test_a_list_that_cannot_be_used_is_an_error_with_its_file(tmp_path: Path, what: str) -> None:
    folder = demo_authority(tmp_path / what)
    files = dataclasses.replace(issue(folder, "alice"), revoked=None)
    identity = load(files)
    spoil, reason = BAD_LISTS[what]
    spoil(folder, crl_of(files))
    if what == "expired":
        crl_of(files).write_bytes((folder / "crl.pem").read_bytes())
    for use in (lambda: load(files), lambda: identity.revoked.has(read_certificate(files.certificate))):
        with pytest.raises(ConfigError, match=reason):
            use()


def test_an_older_list_does_not_take_the_place_of_a_newer_one(folder: Path, unnamed: PartyFiles) -> None:
    """An attacker who copies it back would let a revoked party in."""
    bob = read_certificate(issue(folder, "bob").certificate)
    identity, before = load(unnamed), crl_of(unnamed).read_bytes()
    revoke(folder, "bob")
    newest = crl_of(unnamed).read_bytes()
    assert identity.revoked.has(bob)
    crl_of(unnamed).write_bytes(before)
    with pytest.raises(ConfigError, match="is older than the list in force before it"):
        identity.revoked.has(bob)
    crl_of(unnamed).write_bytes(newest)
    assert identity.revoked.has(bob)


def test_a_list_that_ends_soon_is_a_warning_once(folder: Path, unnamed: PartyFiles) -> None:
    short_crl(folder, datetime.now(UTC) + timedelta(days=2))
    crl_of(unnamed).write_bytes((folder / "crl.pem").read_bytes())
    with capture_logs() as logs:
        identity = load(unnamed)
        for _ in range(3):
            identity.revoked.has(read_certificate(unnamed.certificate))
    assert [line["event"] for line in logs] == ["the revocation list ends soon"]


def test_a_renewed_certificate_is_taken_and_a_bad_one_is_not(folder: Path, files: PartyFiles) -> None:
    identity = load(files)
    assert current(identity) is identity
    renew(folder, "alice")
    renewed = current(identity)
    assert renewed.certificate_pem == files.certificate.read_bytes() != identity.certificate_pem
    bob = issue(folder, "bob")
    files.certificate.write_bytes(bob.certificate.read_bytes())
    assert current(renewed) is renewed  # half a copy: the key is still alice's
    files.key.write_bytes(bob.key.read_bytes())
    assert current(renewed) is renewed  # a whole identity, but another's


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("a.example:443", ("a.example", 443)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:65535", ("::1", 65535)),
        (f"{'a' * 63}.example.:443", (f"{'a' * 63}.example.", 443)),
    ],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    [
        *("a", "a:", "a:0", "a:65536", ":1", "unix:/x", "dns:///a:1", "::1:2", "a:1\n"),
        *("a..b:1", ".a:1", ".:1", "a..:1", f"{'a' * 64}:1", f"a.{'b' * 64}.c:1", "[..]:1", f"[{'a' * 64}]:1"),
    ],
)
def test_bad_addresses(address: str) -> None:
    with pytest.raises(ConfigError, match=r"is not an address( \(|$)"):
        split_address(address)


@pytest.mark.parametrize(("model", "values"), [(PeerSettings, {"role": "active"}), (JobParty, {"role": "active"})])
@pytest.mark.parametrize("address", ["a..b:7100", f"{'a' * 64}:7100", "a:0", ""])
def test_a_bad_address_of_a_file_is_refused_with_its_option(
    model: type[Settings], values: dict[str, str], address: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        validate({**values, "address": address}, model, source="bank.toml")
    form = "write host:port, or [address]:port for IPv6"
    assert str(refused.value) == f"bank.toml: address: {address!r} is not an address: {form}"
