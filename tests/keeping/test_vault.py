"""Secrets at rest are locked under the operator's passphrase, found again, and never confused with unlocked files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.operator import deciding as operator
from blindfit.parties.files import secret
from blindfit.parties.files import vault as vault_
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.files.vault import (
    FILE,
    LOCKED,
    MODEL_KEY,
    PARTY_KEY,
    PLAIN,
    Vault,
    change_passphrase,
    open_vault,
    vault_of,
)
from blindfit.parties.systems import load_party
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.world.vertical import bank_and_shops

PASSPHRASE, OTHER = b"four random words here", b"four other words there"
SECRET = b"a secret of some length"
QUESTION = b"who with whom about what"
COST = vault_.STRETCH


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_, "STRETCH", {"n": 2, "r": 1, "p": 1})


def kept(vault: Vault, directory: Path, name: str = "base.json") -> Path:
    (directory / name).write_bytes(vault.seal(name, SECRET))
    return directory / name


def test_what_is_locked_opens_with_the_passphrase_in_another_process(tmp_path: Path) -> None:
    path = kept(open_vault(tmp_path, PASSPHRASE), tmp_path)
    assert SECRET not in path.read_bytes()
    assert open_vault(tmp_path, PASSPHRASE).read(path) == SECRET
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_the_passphrase_is_stretched_once_for_a_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stretched = []

    def counted(*arguments: object, **cost: int) -> Scrypt:
        stretched.append(cost)
        return Scrypt(*arguments, **cost)

    monkeypatch.setattr(vault_, "Scrypt", counted)
    open_vault(tmp_path, PASSPHRASE)
    stretched.clear()
    vault = open_vault(tmp_path, PASSPHRASE)
    for number in range(5):
        vault.read(kept(vault, tmp_path, f"epoch-{number}.json"))
        vault.signing_key(tmp_path / MODEL_KEY)
    assert len(stretched) == 1


def test_the_stretching_costs_what_is_recommended() -> None:
    """32 MiB for each guess at least, three passes: OWASP's lower memory setting of scrypt."""
    assert 128 * COST["n"] * COST["r"] >= 32 << 20
    assert COST["p"] >= 3


def test_a_wrong_passphrase_is_one_line(tmp_path: Path) -> None:
    open_vault(tmp_path, PASSPHRASE)
    with pytest.raises(ConfigError, match=r"vault\.json does not open with this passphrase( \(|$)") as caught:
        open_vault(tmp_path, OTHER)
    assert "secrets.passphrase_file" in caught.value.hint
    assert not any(text.decode() in f"{caught.value} {caught.value.hint}" for text in (PASSPHRASE, OTHER))


def test_no_passphrase_for_a_locked_party_is_one_line(tmp_path: Path) -> None:
    path = kept(open_vault(tmp_path, PASSPHRASE), tmp_path)
    with pytest.raises(ConfigError, match=r"vault\.json is locked and no passphrase was given( \(|$)"):
        open_vault(tmp_path, None)
    with pytest.raises(ConfigError, match=r"base\.json is locked and no passphrase was given( \(|$)"):
        PLAIN.read(path)


def test_a_short_passphrase_makes_no_vault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shorter than 12 bytes"):
        open_vault(tmp_path, b"short")
    assert not list(tmp_path.iterdir())


# --- the secret of a party ---------------------------------------------------------------------------------


def test_a_secret_that_two_processes_make_at_once_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write_new, theirs = tmp_path / PARTY_KEY, secret.write_new, []

    def after_another(given: Path, content: bytes, mode: int) -> None:
        monkeypatch.setattr(secret, "write_new", write_new)
        theirs.append(PartySecret.load_or_create(path, PLAIN))
        write_new(given, content, mode)

    monkeypatch.setattr(secret, "write_new", after_another)
    assert PartySecret.load_or_create(path, PLAIN).key == theirs[0].key


def test_a_secret_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        PartySecret.load_or_create(tmp_path / "nowhere" / PARTY_KEY, PLAIN)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_secret_of_another_length_is_not_used(tmp_path: Path, length: int) -> None:
    path = tmp_path / PARTY_KEY
    path.write_bytes(b"k" * length)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"is not 32 bytes long( \(|$)") as caught:
        PartySecret.load_or_create(path, PLAIN)
    assert caught.value.hint == "restore it from a backup"


# --- what is not locked ------------------------------------------------------------------------------------


def test_a_file_that_is_not_locked_is_not_taken_for_one_that_is(tmp_path: Path) -> None:
    """Otherwise an attacker who can write to the disk could put another key in the place of a locked one."""
    vault = open_vault(tmp_path, PASSPHRASE)
    PLAIN.signing_key(tmp_path / MODEL_KEY)
    for read in (lambda: vault.read(kept(PLAIN, tmp_path)), lambda: vault.signing_key(tmp_path / MODEL_KEY)):
        with pytest.raises(ConfigError, match="is not locked, though this party has a passphrase") as caught:
            read()
        assert "blindfit lock" in caught.value.hint


@pytest.mark.parametrize("place", [0, len(LOCKED), len(LOCKED) + 5, -1])
def test_a_changed_byte_is_noticed(tmp_path: Path, place: int) -> None:
    vault = open_vault(tmp_path, PASSPHRASE)
    path = kept(vault, tmp_path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is damaged|is not locked"):
        vault.read(path)


def test_a_file_does_not_stand_for_one_of_another_name(tmp_path: Path) -> None:
    vault = open_vault(tmp_path, PASSPHRASE)
    path = kept(vault, tmp_path, "epoch-1.json").rename(tmp_path / "epoch-9.json")
    with pytest.raises(ConfigError, match="is damaged"):
        vault.read(path)


def test_a_damaged_vault_is_one_line(tmp_path: Path) -> None:
    open_vault(tmp_path, PASSPHRASE)
    for content in ("", "[]", json.dumps({"format": "other"}), json.dumps({"format": vault_.FORMAT, "salt": "x"})):
        (tmp_path / FILE).write_text(content)
        with pytest.raises(ConfigError, match="is not a blindfit vault 1"):
            open_vault(tmp_path, PASSPHRASE)


def test_a_lost_vault_is_not_made_anew_while_something_is_locked(tmp_path: Path) -> None:
    """Another key would open nothing of it, and would lock only new files."""
    open_vault(tmp_path, PASSPHRASE).signing_key(tmp_path / MODEL_KEY)
    (tmp_path / FILE).unlink()
    with pytest.raises(
        ConfigError, match=rf"vault\.json is missing, though {tmp_path}/model_key\.pem is locked( \(|$)"
    ):
        open_vault(tmp_path, PASSPHRASE)
    assert not (tmp_path / FILE).exists()


def test_two_that_start_at_once_have_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second party looked before the first made the key."""
    first, exists = open_vault(tmp_path, PASSPHRASE), Path.exists
    looked = iter([False])
    monkeypatch.setattr(Path, "exists", lambda path: next(looked, True) if path.name == FILE else exists(path))
    second = open_vault(tmp_path, PASSPHRASE)
    assert second.read(kept(first, tmp_path)) == SECRET


def test_signing_keys_are_locked_with_more_than_the_passphrase(tmp_path: Path) -> None:
    """PEM stretches a passphrase with 2048 rounds: it would be found there."""
    vault = open_vault(tmp_path, PASSPHRASE)
    key = vault.signing_key(tmp_path / MODEL_KEY)
    assert open_vault(tmp_path, PASSPHRASE).signing_key(tmp_path / MODEL_KEY).public_bytes == key.public_bytes
    with pytest.raises(ConfigError, match="does not open with this passphrase"):
        vault_.read_private_key(tmp_path / MODEL_KEY, PASSPHRASE)


# --- checkpoints, and the commands of an operator ------------------------------------------------------


def test_checkpoints_are_locked_and_come_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "s", "taylor.resume", open_vault(tmp_path, PASSPHRASE))
    checkpoints.begin(QUESTION, {"private_key": "c0ffee"})
    checkpoints.keep(1, True, {"weights": [0.123456789]})
    for path in (tmp_path / "checkpoints").rglob("*.json"):
        assert path.read_bytes().startswith(LOCKED)
    again = Checkpoints(tmp_path, "s", "taylor.resume", open_vault(tmp_path, PASSPHRASE))
    assert again.base(QUESTION)["private_key"] == "c0ffee"
    assert again.at(1) == {"weights": [0.123456789]}


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    bank_and_shops(tmp_path, rows=4)
    (tmp_path / "words").write_bytes(PASSPHRASE + b"\n")
    (tmp_path / "others").write_bytes(OTHER + b"\n")
    return tmp_path / "bank.toml"


def lock(bank: Path, words: str = "words", old: str = "") -> str:
    console = Console(record=True, width=200, file=io.StringIO())
    settings = load_party(bank, [f"secrets.passphrase_file={words}"])
    operator.lock(settings, bank.parent, bank.parent / old if old else None).show(console)
    return console.export_text()


def test_what_was_kept_before_there_was_a_passphrase_is_locked_by_the_command(bank: Path) -> None:
    state = bank.parent / "state/bank"
    Checkpoints(state, "s", "taylor.resume").begin(QUESTION, {"private_key": "c0ffee"})
    (state / "snapshots" / "5eed").mkdir(parents=True)
    (state / "snapshots" / "5eed" / "header.json").write_bytes(SECRET)
    public = PLAIN.signing_key(state / MODEL_KEY).public_bytes
    said = lock(bank)
    assert [line.rpartition("/")[2] for line in said.splitlines()] == ["base.json", "model_key.pem", "header.json"]
    vault = open_vault(state, PASSPHRASE)
    assert vault.signing_key(state / MODEL_KEY).public_bytes == public
    assert vault.read(state / "snapshots" / "5eed" / "header.json") == SECRET
    assert Checkpoints(state, "s", "taylor.resume", vault).base(QUESTION)["private_key"] == "c0ffee"
    assert lock(bank) == ""  # nothing is locked twice
    assert {path.stat().st_mode & 0o777 for path in state.rglob("*.*") if path.is_file()} == {0o600}


def test_a_passphrase_is_changed_and_everything_opens_with_the_new_one(bank: Path) -> None:
    state = bank.parent / "state/bank"
    path = kept(open_vault(state, PASSPHRASE), state)
    assert "are encrypted with the passphrase of others" in lock(bank, "others", old="words")
    assert open_vault(state, OTHER).read(path) == SECRET
    with pytest.raises(ConfigError, match="does not open with this passphrase"):
        open_vault(state, PASSPHRASE)
    with pytest.raises(ConfigError, match="does not open with this passphrase"):
        change_passphrase(state, PASSPHRASE, OTHER)


def test_without_a_passphrase_there_is_nothing_to_lock_with(bank: Path) -> None:
    with pytest.raises(ConfigError, match=r"bank has no passphrase( \(|$)"):
        operator.lock(load_party(bank), bank.parent, None)


def test_the_passphrase_is_that_of_the_identity_unless_there_is_another(bank: Path) -> None:
    identity = 'identity={certificate="-", key="-", authority="-", passphrase_file="words"}'
    assert load_party(bank).passphrase_file is None
    assert load_party(bank, [identity]).passphrase_file == Path("words")
    assert load_party(bank, [identity, "secrets.passphrase_file=others"]).passphrase_file == Path("others")
    vault_of(load_party(bank, [identity]), bank.parent)
    with pytest.raises(ConfigError, match="does not open with this passphrase"):
        vault_of(load_party(bank, [identity, "secrets.passphrase_file=others"]), bank.parent)
