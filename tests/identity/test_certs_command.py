from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.cli.certs import app
from blindfit.coordinator.operator.certificates import COPY
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity.authority import PartyFiles, issue
from blindfit.parties.identity.identity import load_identity
from tests.certificates import load

PASSPHRASE = "correct horse battery staple"
TODAY = re.compile(r"\d{4}-\d\d-\d\d")


def run(*words: object, answers: str | None = None) -> str:
    """Return what the command prints, without dates; raise its error as the main command would see it."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=answers)
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return TODAY.sub("DATE", result.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # A long name in brackets: output must not be wrapped, nor read as markup.
    return tmp_path / "certs [of the long-named consortium of several organisations]"


def test_the_life_of_a_certificate(folder: Path) -> None:
    alice = folder / "alice"
    assert run("authority", folder) == f"{folder}: Blindfit authority until DATE; its key is not locked\n"
    assert (
        run("issue", folder, "alice", "--host", "a.example", "--host", "::1", "--days", 10)
        == f"{alice}: alice until DATE, with all files that alice needs; its key is not locked\n"
    )
    load(PartyFiles.in_folder(alice))
    serial = read_certificate(alice / "certificate.pem").serial_number
    shown = f"{alice}/certificate.pem: alice, serial {serial:x}, DATE to DATE, 9 days left\n"
    assert run("show", alice) == run("show", alice / "certificate.pem") == shown
    assert (
        run("renew", folder, "alice", "--days", 20)
        == f"{alice}/certificate.pem: alice until DATE; copy this one file to alice\n"
    )
    assert run("show", alice).endswith("19 days left\n")
    assert run("revoke", folder, "alice") == f"{folder}/crl.pem: alice is revoked; {COPY}\n"
    assert run("crl", folder, "--days", 7) == (f"{folder}/crl.pem: 2 revoked, until DATE, 6 days left; {COPY}\n")
    assert run("show", folder / "crl.pem") == f"{folder}/crl.pem: 2 revoked, until DATE, 6 days left\n"


def test_a_certificate_carries_a_role_and_keeps_it(folder: Path) -> None:
    run("authority", folder)
    meter = folder / "meter"
    issued = run("issue", folder, "meter", "--role", "measurement", "--host", "a.example")
    assert (
        issued == f"{meter}: meter (measurement) until DATE, with all files that meter needs; its key is not locked\n"
    )
    assert load(PartyFiles.in_folder(meter)).role == "measurement"
    run("renew", folder, "meter", "--days", 20)
    assert "certificate.pem: meter (measurement), serial" in run("show", meter)
    assert json.loads(run("show", meter, "--json"))["role"] == "measurement"
    run("issue", folder, "alice")
    assert load(PartyFiles.in_folder(folder / "alice")).role is None
    with pytest.raises(ConfigError, match="'server' is not a role"):
        run("issue", folder, "bob", "--role", "server")
    assert not (folder / "bob").exists()


def test_errors_are_the_authoritys_own(folder: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        run("issue", folder, "alice")
    run("authority", folder, "--name", "Ours")
    with pytest.raises(ConfigError, match="is never overwritten"):
        run("authority", folder)
    with pytest.raises(ConfigError, match="is not a certificate in PEM"):
        run("show", folder / "index.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        run("show", folder / "nothing.pem")
    assert run("show", folder / "authority.pem").startswith(f"{folder}/authority.pem: CN=Ours, serial ")


def test_a_revocation_list_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "crl.pem").write_text("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")
    with pytest.raises(ConfigError, match=r"crl\.pem is not a revocation list in PEM$"):
        run("show", tmp_path / "crl.pem")


def test_what_expired_says_so(folder: Path) -> None:
    run("authority", folder)
    issue(folder, "alice", days=2, starts=datetime.now(UTC) - timedelta(days=5))
    assert run("show", folder / "alice").endswith(", expired 3 days ago\n")


def test_passphrases_are_asked_for(folder: Path) -> None:
    twice = f"{PASSPHRASE}\n{PASSPHRASE}\n"
    assert run("authority", folder, "--protect", answers=twice).endswith("its key is locked\n")
    printed = run("issue", folder, "alice", "--protect", answers=f"{PASSPHRASE}\n{twice}")
    assert printed.endswith("its key is locked\n")
    assert PASSPHRASE not in printed
    files = PartyFiles.in_folder(folder / "alice")
    load_identity(files.certificate, files.key, files.authority, passphrase=PASSPHRASE.encode())
    with pytest.raises(ConfigError, match="does not open with this passphrase"):
        run("renew", folder, "alice", answers="another passphrase\n")


def test_passphrases_come_from_files_and_from_the_environment(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "passphrase"
    file.write_text(PASSPHRASE + "\n")
    assert run("authority", folder, "--passphrase-file", file).endswith("its key is locked\n")
    run("issue", folder, "alice", "--passphrase-file", file)
    monkeypatch.setenv("BLINDFIT_AUTHORITY_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("BLINDFIT_KEY_PASSPHRASE", "another passphrase")
    assert run("issue", folder, "bob").endswith("its key is locked\n")
    for words in (["renew", folder, "alice"], ["revoke", folder, "alice"], ["crl", folder]):
        run(*words)
    file.write_text("\n")
    with pytest.raises(ConfigError, match=r"passphrase holds no passphrase( \(|$)"):
        run("crl", folder, "--passphrase-file", file)
