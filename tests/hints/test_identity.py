"""Mistakes in certificates, keys and secrets, and how to mend them."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from blindfit.parties.files.private_files import check_private, read_private_key, write_new
from blindfit.parties.files.vault import open_vault
from blindfit.parties.identity import authority
from blindfit.parties.identity.authority import PartyFiles, issue
from blindfit.parties.systems import load_party
from tests.certificates import demo_authority, load
from tests.command import Done, blindfit
from tests.hints.following import Told, led_past, refused, refused_command
from tests.identity.bad_files import on_another_curve, short_crl, write_pem
from tests.unconnected import unconnected
from tests.world import World
from tests.world.vertical import bank_and_shops

WORDS = b"four random words here"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority's folder."""
    return demo_authority(tmp_path)


def certs(folder: Path, told: Told, **names: str) -> Done:
    """Run the last command of the hint."""
    words = {"DIR": str(folder), "PARTY": "alice", **names}
    done = blindfit(folder.parent, *(words.get(word, word) for word in told.commands[-1]))
    assert done.returncode == 0, done.stderr
    return done


# --- an authority ----------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_authority(tmp_path: Path) -> None:
    words = ("certs", "issue", str(tmp_path / "new"), "alice")
    told = refused_command("`blindfit certs authority {}` makes a certificate authority", blindfit(tmp_path, *words))
    certs(tmp_path / "new", told)
    assert blindfit(tmp_path, *words).returncode == 0
    (tmp_path / "empty").mkdir()
    words = ("certs", "issue", str(tmp_path / "empty"), "alice")
    told = refused_command("`blindfit certs authority {}` makes one", blindfit(tmp_path, *words))
    (tmp_path / "empty").rmdir()
    certs(tmp_path / "empty", told)
    assert blindfit(tmp_path, *words).returncode == 0


def test_a_name_that_is_none(folder: Path) -> None:
    told = refused_command(
        "a name has 1 to 63 lower-case letters, digits and hyphens, and starts with a letter",
        blindfit(folder, "certs", "issue", ".", "Alice"),
    )
    assert not told.is_in(blindfit(folder, "certs", "issue", ".", "alice").stderr)


def test_a_party_that_has_a_certificate(folder: Path) -> None:
    issue(folder, "alice")
    words = ("certs", "issue", str(folder), "alice")
    told = refused_command(
        "`blindfit certs renew {} {}` makes it last longer; to replace a lost key, `blindfit certs revoke",
        blindfit(folder, *words),
    )
    renew, revoke = told.commands[:2]
    assert blindfit(folder, *renew).returncode == 0
    assert blindfit(folder, *revoke).returncode == 0
    told = refused_command("`blindfit certs issue {} {}` makes a new key and certificate", blindfit(folder, *renew))
    assert blindfit(folder, *told.commands[0]).returncode == 0


# --- a party's files ---------------------------------------------------------------------------------------------


def test_a_revocation_list(folder: Path) -> None:
    files = issue(folder, "alice")
    assert files.revoked is not None
    good = files.revoked.read_bytes()
    files.revoked.write_bytes(good.replace(b"X509 CRL", b"SOMETHING"))
    with refused("it must begin with -----BEGIN X509 CRL-----"):
        load(files)
    files.revoked.write_bytes(good)
    short_crl(folder, datetime.now(UTC) - timedelta(days=1))
    shutil.copy(folder / "crl.pem", files.revoked)
    with refused(
        "ask the authority's operator to run `blindfit certs crl DIR`, and copy the new list over this file"
    ) as told:
        load(files)
    certs(folder, told)
    shutil.copy(folder / "crl.pem", files.revoked)
    load(files)


def test_a_certificate_that_has_expired(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        builder = authority._builder

        def old(*given: Any, **named: Any) -> Any:
            made = builder(*given, **named)
            then = datetime.now(UTC) - timedelta(days=1)
            made._not_valid_before, made._not_valid_after = then - timedelta(days=9), then
            return made

        patch.setattr(authority, "_builder", old)
        files = issue(folder, "alice")
    with refused("`blindfit certs renew DIR PARTY`, run by the authority's operator, makes a new one") as told:
        load(files)
    certs(folder, told)
    load(files)


def test_a_certificate_that_names_no_party(folder: Path) -> None:
    files = issue(folder, "alice")
    signer = authority._open(folder, None)
    leaf = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    builder = x509.CertificateBuilder().issuer_name(leaf.issuer).serial_number(leaf.serial_number)
    builder = builder.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bob")]))
    builder = builder.public_key(leaf.public_key()).not_valid_before(leaf.not_valid_before_utc)  # type: ignore[arg-type]
    builder = builder.not_valid_after(leaf.not_valid_after_utc)
    for extension in leaf.extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    write_pem(files.certificate, builder.sign(signer.key, leaf.signature_hash_algorithm))  # type: ignore[arg-type]
    with refused("`blindfit certs issue DIR PARTY` makes such a certificate") as told:
        load(files)
    certs(folder, told, PARTY="carol")
    load(PartyFiles.in_folder(folder / "carol"))


def test_a_key_on_another_curve(folder: Path) -> None:
    files = issue(folder, "alice")
    files.key.write_bytes(on_another_curve(files.key.read_bytes(), "PRIVATE KEY"))
    with refused("use a key on the curve P-256; `blindfit certs issue DIR PARTY` makes such a key") as told:
        load(files)
    certs(folder, told, PARTY="carol")
    load(PartyFiles.in_folder(folder / "carol"))


def test_a_key_that_others_can_read(tmp_path: Path) -> None:
    folder = demo_authority(tmp_path / "of mine")
    files = issue(folder, "alice")
    files.key.chmod(0o644)
    with refused("chmod 600 {}") as told:
        load(files)
    _, mode, path = shlex.split(told.text.splitlines()[-1])
    Path(path).chmod(int(mode, 8))
    load(files)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the hint is a command of OpenSSL")
def test_a_passphrase_for_a_key_that_has_none(folder: Path) -> None:
    files = issue(folder, "alice")
    with refused("remove passphrase_file, or lock the key: openssl pkey -aes256 -in KEY -out NEW") as told:
        read_private_key(files.key, WORDS)
    read_private_key(files.key, None)
    command = shlex.split(told.text.partition("lock the key: ")[2])
    words = {"KEY": str(files.key), "NEW": str(folder / "new.pem")}
    asked = ["-passout", f"pass:{WORDS.decode()}"]  # otherwise it would ask
    subprocess.run([words.get(word, word) for word in command] + asked, check=True, capture_output=True)
    (folder / "new.pem").chmod(0o600)
    read_private_key(folder / "new.pem", WORDS)


def test_a_folder_that_may_not_be_written_into(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    text = "its folder (a party's data_dir or output_dir, or --out) must be one that this user may write into"
    with refused("its folder (a party's data_dir or output_dir, or --out) must be one that this user may write into"):
        write_new(tmp_path / "file/key.pem", b"", mode=0o600)
    led_past(Told(text), lambda: write_new(tmp_path / "key.pem", b"", mode=0o600))
    check_private(tmp_path / "key.pem")


# --- what a party keeps secret -----------------------------------------------------------------------------------


@pytest.fixture
def locked(tmp_path: Path) -> World:
    """A party with a passphrase that locks its secrets."""
    project = bank_and_shops(tmp_path)
    for name, words in (("words", WORDS), ("others", b"four other words, quite others")):
        (tmp_path / name).write_bytes(words)
        (tmp_path / name).chmod(0o600)
    with_passphrase(project, "words")
    assert blindfit(tmp_path, "lock", "bank.toml").returncode == 0
    return project


def with_passphrase(project: World, file: str | None) -> None:
    path = project.root / "bank.toml"
    text = path.read_text().partition("\n[secrets]")[0]
    path.write_text(text + (f"\n[secrets]\npassphrase_file = {json.dumps(file)}\n" if file else ""))


def test_secrets_under_another_passphrase(locked: World) -> None:
    with_passphrase(locked, "others")
    told = refused_command(
        "set secrets.passphrase_file to the passphrase that it was made with, or change the passphrase: "
        "`blindfit lock PARTY.TOML --old-passphrase-file FILE`",
        blindfit(locked.root, "lock", "bank.toml"),
    )
    names = {"PARTY.TOML": "bank.toml", "FILE": "words"}
    assert blindfit(locked.root, *(names.get(word, word) for word in told.commands[0])).returncode == 0
    open_vault(locked.root / "state/bank", (locked.root / "others").read_bytes())
    with_passphrase(locked, "others")
    assert blindfit(locked.root, "lock", "bank.toml").returncode == 0


def test_secrets_that_are_locked_need_their_passphrase(locked: World) -> None:
    with refused("set secrets.passphrase_file to a file with the party's passphrase"):
        open_vault(locked.root / "state/bank", None)
    open_vault(locked.root / "state/bank", WORDS)


def test_secrets_that_were_kept_before_there_was_a_passphrase(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    data_dir = tmp_path / "state/bank"
    secret = open_vault(data_dir, None)
    project.publish("bank")
    (tmp_path / "words").write_bytes(WORDS)
    (tmp_path / "words").chmod(0o600)
    unconnected(load_party(tmp_path / "bank.toml"), tmp_path).secret.derive("a use", b"")
    assert secret is not None
    with_passphrase(project, "words")
    with refused("run `blindfit lock PARTY.TOML`, which locks the files from before there was a passphrase") as told:
        unconnected(load_party(tmp_path / "bank.toml"), tmp_path).secret.derive("a use", b"")
    assert told.commands[0] == ["lock", "PARTY.TOML"]
    assert blindfit(tmp_path, "lock", "bank.toml").returncode == 0
    unconnected(load_party(tmp_path / "bank.toml"), tmp_path).secret.derive("a use", b"")
