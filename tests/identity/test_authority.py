"""The authority's folder: its files, its refusals, and its state after a crash."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import (
    make_private,
    read_certificate,
    read_private_key,
    replace_file,
    write_new,
)
from blindfit.parties.identity import authority as module
from blindfit.parties.identity.authority import PartyFiles, create_authority, issue, party_of, renew, renew_crl, revoke
from tests.certificates import demo_authority

PASSPHRASE = b"correct horse battery staple"


def revoked_serials(path: Path) -> set[int]:
    return {entry.serial_number for entry in x509.load_pem_x509_crl(path.read_bytes())}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_certificate_names_its_party_first_and_serves_both_sides(folder: Path) -> None:
    files = issue(folder, "alice", ["alice.example.org", "192.0.2.7", "alice.example.org"])
    certificate = read_certificate(files.certificate)
    certificate.verify_directly_issued_by(read_certificate(files.authority))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert party_of(certificate) == "alice"
    assert [str(name.value) for name in names] == ["alice", "alice.example.org", "192.0.2.7"]
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert certificate.public_key().curve.name == "secp256r1"
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_and_folders_are_private_and_nothing_else_is_left(folder: Path) -> None:
    files = issue(folder, "alice")
    assert {mode(folder), mode(folder / "alice")} == {0o700}
    assert {mode(folder / "authority.key"), mode(files.key), mode(folder / "index.json")} == {0o600}
    assert sorted(os.listdir(folder)) == ["alice", "authority.key", "authority.pem", "crl.pem", "index.json"]
    assert sorted(os.listdir(folder / "alice")) == ["authority.pem", "certificate.pem", "crl.pem", "key.pem"]


def test_a_key_is_never_readable_by_others_even_under_a_lax_umask(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real_fsync = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real_fsync(handle)

    monkeypatch.setattr(module.os, "fsync", fsync)
    before = os.umask(0)
    try:
        issue(folder, "alice")
    finally:
        os.umask(before)
    assert set(seen) == {0o600}  # every file is written before it is opened up, and keys never are
    assert mode(folder / "alice") == 0o700


@pytest.mark.parametrize("name", ["", "Alice", "1st", "a_b", "a.b", "../a", "a\n", "a" * 64, "-a"])
def test_a_bad_party_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a party's name") as caught:
        issue(folder, name)
    assert "lower-case" in caught.value.hint


@pytest.mark.parametrize("host", ["http://a", "a:443", "a b", "", "-a", "a" * 254])
def test_a_bad_host_is_refused_and_leaves_nothing(folder: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="neither a host name nor an address"):
        issue(folder, "alice", [host])
    assert not (folder / "alice").exists()


@pytest.mark.parametrize("days", [0, -1, 36501])
def test_a_bad_lifetime_is_refused(folder: Path, days: int) -> None:
    with pytest.raises(ConfigError, match=f"^{days} days is not a valid lifetime: choose 1 to 36500$"):
        issue(folder, "alice", days=days)


def contents(directory: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


@pytest.mark.parametrize("options", [{"days": 0}, {"days": 36501}, {"key_passphrase": b"short"}])
@pytest.mark.parametrize("party", ["alice", "revoked"])
def test_what_is_refused_when_issuing_changes_nothing(folder: Path, party: str, options: dict[str, Any]) -> None:
    """A refusal leaves no serial of a certificate that never existed, and revoked files stay in place."""
    issue(folder, "revoked")
    revoke(folder, "revoked")
    before = contents(folder)
    with pytest.raises(ConfigError):
        issue(folder, party, **options)
    assert contents(folder) == before


def test_a_revocation_whose_list_would_be_refused_changes_nothing(folder: Path) -> None:
    issue(folder, "alice")
    before = contents(folder)
    with pytest.raises(ConfigError, match="0 days is not a valid lifetime"):
        revoke(folder, "alice", days=0)
    assert contents(folder) == before


@pytest.mark.parametrize("options", [{"days": 0}, {"passphrase": b"short"}])
def test_an_authority_that_is_refused_leaves_no_folder(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        create_authority(tmp_path / "new", "Another", **options)
    assert not (tmp_path / "new").exists()


def test_a_certificate_does_not_outlive_its_authority(folder: Path) -> None:
    files = issue(folder, "alice", days=365)
    ends = read_certificate(files.certificate).not_valid_after_utc
    assert ends == read_certificate(files.authority).not_valid_after_utc


def test_nothing_is_overwritten(folder: Path) -> None:
    files = issue(folder, "alice")
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    with pytest.raises(ConfigError, match=r"authority\.pem exists already: an authority is never overwritten"):
        create_authority(folder, "Another")
    with pytest.raises(ConfigError, match=r"alice exists already: alice has a certificate( \(|$)") as caught:
        issue(folder, "alice")
    assert "renew" in caught.value.hint
    with pytest.raises(ConfigError, match="exists already and is not overwritten"):
        write_new(files.key, b"")
    assert before == {path: path.read_bytes() for path in folder.rglob("*.*")}


def test_without_an_authority_the_error_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no certificate authority( \(|$)") as caught:
        issue(tmp_path, "alice")
    assert caught.value.hint == f"`blindfit certs authority {tmp_path}` makes one"
    with pytest.raises(ConfigError, match="cannot be opened: No such file or directory"):
        issue(tmp_path / "nowhere", "alice")


def test_a_crash_while_issuing_leaves_no_folder_but_a_serial_that_can_be_revoked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="no space"):
            issue(folder, "alice")
    assert sorted(os.listdir(folder)) == ["authority.key", "authority.pem", "crl.pem", "index.json"]
    assert len(json.loads((folder / "index.json").read_text())["issued"]) == 1
    issue(folder, "alice")
    assert len(revoked_serials(revoke(folder, "alice"))) == 2


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")

    def fail(*_: object) -> None:
        raise OSError("crash")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(OSError, match="crash"):
        replace_file(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


def test_a_file_that_is_written_has_its_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut may take back the folder's entry of a file."""
    synced = []
    real_fsync = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            synced.append(sorted(os.listdir(handle)))
        real_fsync(handle)

    monkeypatch.setattr(module.os, "fsync", fsync)
    write_new(tmp_path / "one", b"")
    replace_file(tmp_path / "two", b"old")
    make_private(tmp_path / "new" / "newer")
    assert synced == [["one"], ["one", "two"], ["new", "one", "two"], ["newer"]]
    with pytest.raises(ConfigError, match="exists already"):
        write_new(tmp_path / "one", b"")
    assert len(synced) == 4


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_file_system_that_syncs_files_alone_is_taken_and_a_broken_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real_fsync = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        real_fsync(handle)

    monkeypatch.setattr(module.os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output") if number == errno.EIO else contextlib.nullcontext():
        replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_that_may_not_be_read_is_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for deliveries may be like this. Root may read any folder, so the test pretends the refusal."""
    real_open = os.open

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(path, flags, *more, **options)

    monkeypatch.setattr(module.os, "open", opened)
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_issuing_at_once_loses_no_serial(folder: Path) -> None:
    names = [f"party-{number}" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: issue(folder, name), names))
    index = json.loads((folder / "index.json").read_text())
    assert sorted(entry["party"] for entry in index["issued"]) == names
    assert len({entry["serial"] for entry in index["issued"]}) == 8


def test_renewing_keeps_key_and_names_and_ends_later(folder: Path) -> None:
    files = issue(folder, "alice", ["a.example"], days=1, starts=datetime.now(UTC) - timedelta(hours=20))
    old, key = read_certificate(files.certificate), files.key.read_bytes()
    renew(folder, "alice", days=1)
    new = read_certificate(files.certificate)
    san = x509.SubjectAlternativeName
    assert new.not_valid_after_utc > old.not_valid_after_utc
    assert new.serial_number != old.serial_number
    assert new.extensions.get_extension_for_class(san) == old.extensions.get_extension_for_class(san)
    assert (new.public_key(), files.key.read_bytes()) == (old.public_key(), key)


def test_renewing_needs_a_key_on_a_curve(folder: Path) -> None:
    """This authority makes keys on a curve; another certificate got there by mistake."""
    files = issue(folder, "alice")
    signer, issued = module._open(folder, None), read_certificate(files.certificate)
    own = ed25519.Ed25519PrivateKey.generate().public_key()
    now = datetime.now(UTC)
    builder = module._builder(signer.root.subject, issued.subject, own, now, now + timedelta(days=1))
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    foreign = builder.add_extension(names.value, critical=False).sign(signer.key, hashes.SHA256())
    replace_file(files.certificate, foreign.public_bytes(serialization.Encoding.PEM))
    with pytest.raises(ConfigError, match="was not issued by this authority: its key is not on a curve"):
        renew(folder, "alice")


def test_another_authoritys_key_signs_nothing(tmp_path: Path, folder: Path) -> None:
    other = demo_authority(tmp_path / "other")
    replace_file(folder / "authority.key", (other / "authority.key").read_bytes(), mode=0o600)
    with pytest.raises(ConfigError, match=rf"authority\.key is not the key of {folder / 'authority.pem'}$"):
        issue(folder, "alice")
    assert not (folder / "alice").exists()


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb"])
def test_an_authority_without_a_name_that_can_be_shown(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="must have 1 to 64 printable characters"):
        create_authority(tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_renewing_needs_a_certificate_that_was_not_revoked(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"alice/certificate\.pem cannot be read: No such file"):
        renew(folder, "alice")
    issue(folder, "alice")
    revoke(folder, "alice")
    with pytest.raises(ConfigError, match="was revoked and cannot be renewed") as caught:
        renew(folder, "alice")
    assert "certs issue" in caught.value.hint


def test_revoking_takes_every_serial_of_the_party_and_of_no_other(folder: Path) -> None:
    files, bob = issue(folder, "alice"), issue(folder, "bob")
    first = read_certificate(files.certificate).serial_number
    renew(folder, "alice")
    second = read_certificate(files.certificate).serial_number
    assert revoked_serials(revoke(folder, "alice")) == {first, second}
    assert revoked_serials(bob.revoked) == {first, second}  # every party's folder has the new list
    issue(folder, "alice")  # a new key, the old files set aside
    assert (folder / f"alice.revoked-{second:x}" / "key.pem").exists()
    third = read_certificate(files.certificate).serial_number
    assert third not in revoked_serials(revoke(folder, "bob"))
    assert revoked_serials(renew_crl(folder)) == {
        first,
        second,
        read_certificate(bob.certificate).serial_number,
    }


def test_revoking_a_stranger_names_those_who_are_known(folder: Path) -> None:
    issue(folder, "alice")
    with pytest.raises(ConfigError, match="never issued a certificate to 'carol'") as caught:
        revoke(folder, "carol")
    assert caught.value.hint == "it knows alice"


def test_the_revocation_list_has_a_number_that_grows_and_an_end(folder: Path) -> None:
    numbers = []
    for _ in range(3):
        crl = x509.load_pem_x509_crl(renew_crl(folder, days=30).read_bytes())
        numbers.append(crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)
        assert abs(crl.next_update_utc - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=1)
    assert numbers == [2, 3, 4]


def test_a_damaged_index_stops_everything(folder: Path) -> None:
    (folder / "index.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"index\.json is damaged") as caught:
        issue(folder, "alice")
    assert caught.value.hint == "restore it from a backup"
    assert not (folder / "alice").exists()


def test_keys_under_a_passphrase(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    create_authority(folder, "Locked", passphrase=PASSPHRASE)
    with pytest.raises(ConfigError, match=r"authority\.key is locked and no passphrase was given"):
        issue(folder, "alice")
    with pytest.raises(ConfigError, match=r"authority\.key does not open with this passphrase"):
        issue(folder, "alice", passphrase=b"wrong horse battery")
    files = issue(folder, "alice", passphrase=PASSPHRASE, key_passphrase=PASSPHRASE)
    assert b"ENCRYPTED" in files.key.read_bytes()
    read_private_key(files.key, PASSPHRASE)
    bob = issue(folder, "bob", passphrase=PASSPHRASE)
    with pytest.raises(ConfigError, match="is not locked, though a passphrase was given"):
        read_private_key(bob.key, PASSPHRASE)
    with pytest.raises(ConfigError, match="the passphrase is shorter than 12 bytes"):
        issue(folder, "carol", passphrase=PASSPHRASE, key_passphrase=b"short")


@pytest.mark.parametrize(
    ("bits", "allowed"),
    [(0o600, True), (0o400, True), (0o640, os.geteuid() == 0), (0o604, False), (0o666, False)],
)
def test_a_key_that_others_can_use_is_refused(folder: Path, bits: int, allowed: bool) -> None:
    key = issue(folder, "alice").key
    key.chmod(bits)
    if allowed:
        read_private_key(key, None)
        return
    with pytest.raises(ConfigError, match=f"has mode {bits:04o}: others can use this secret") as caught:
        read_private_key(key, None)
    assert caught.value.hint == f"chmod 600 {key}"


def test_an_expired_authority_signs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.now(UTC) + timedelta(days=3)

    monkeypatch.setattr(module, "datetime", Later)
    with pytest.raises(ConfigError, match=r"authority\.pem expired on 20"):
        issue(folder, "alice")


def test_a_certificate_whose_first_alternative_name_is_another_names_nobody(folder: Path) -> None:
    names = x509.SubjectAlternativeName([x509.DNSName("bob"), x509.DNSName("alice")])
    signer = module._open(folder, None)
    certificate = module._sign(signer, "alice", signer.key.public_key(), names, 1, None)
    assert party_of(certificate) is None
    assert party_of(read_certificate(folder / "authority.pem")) is None
    assert PartyFiles.in_folder(folder).key == folder / "key.pem"
