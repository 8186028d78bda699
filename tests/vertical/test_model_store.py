"""The store of model parts reads what was signed, and refuses what was changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.files import written
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.vertical.model_store import ModelStore
from tests.predict.parts import part_of

SESSION = "taylor-1a2b3c4d"


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    store = ModelStore(tmp_path)
    store.keep(part_of(), SESSION)
    return store


def refused(store: ModelStore, session: str = SESSION) -> str:
    with pytest.raises(DataError) as caught:
        store.read(session)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change(path: Path, how: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text())
    how(content)
    path.write_text(json.dumps(content))


def test_what_was_kept_is_read(store):
    assert store.has(SESSION)
    assert store.read(SESSION).to_dict() == part_of().to_dict()
    assert store.path(SESSION).stat().st_mode & 0o777 == 0o600
    assert not store.has("taylor-99999999")


def test_the_form_of_the_file_does_not_matter_its_content_does(store):
    path = store.path(SESSION)
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    assert store.read(SESSION).to_dict() == part_of().to_dict()


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a weight": lambda c: c["weights"].update(c0=c["weights"]["c0"] + 2.0**-52),
    "a mean": lambda c: c["standardiser"]["mean"].update(c0=0.0),
    "the intercept": lambda c: c.update(intercept=0.125),
    "another field": lambda c: c.update(extra=1),
    "the session": lambda c: c.update(session="taylor-99999999"),
    "no signature": lambda c: c.pop("signature"),
    "an empty signature": lambda c: c.update(signature={}),
    "a signature of another kind": lambda c: c.update(signature="ab"),
    "a signature that is no hex": lambda c: c["signature"].update(ed25519="xyz"),
    "a short signature": lambda c: c["signature"].update(ed25519=c["signature"]["ed25519"][:-2]),
    "not a number": lambda c: c.update(intercept=float("nan")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_was_changed_is_noticed(store, what):
    change(store.path(SESSION), CHANGES[what])
    assert "does not have this party's signature" in refused(store)


def test_a_key_that_is_in_the_file_is_not_believed(store, tmp_path):
    """An attacker who can write the file can sign it again, with another key."""
    part = part_of(seed=9).to_dict()
    key = SigningKey.load_or_create(tmp_path / "x")
    content = written.encode_signed_json({**part, "session": SESSION}, key)
    store.path(SESSION).write_bytes(content)
    assert "does not have this party's signature" in refused(store)


def test_a_model_of_another_session_is_not_this_ones(store):
    store.path("other").parent.mkdir()
    store.path("other").write_bytes(store.path(SESSION).read_bytes())
    assert refused(store, "other").endswith("is the model of another session")


def test_a_signed_file_that_is_no_model_is_named(store, tmp_path):
    """A party of another version may have written it."""
    key = SigningKey.load_or_create(tmp_path / "model_key.pem")
    content = written.encode_signed_json({**part_of().to_dict(), "weights": 3, "session": SESSION}, key)
    store.path(SESSION).write_bytes(content)
    assert refused(store).startswith(f"{store.path(SESSION)}: ")


def test_without_its_key_nothing_is_believed_and_no_key_is_made(store, tmp_path):
    (tmp_path / "model_key.pem").unlink()
    assert "model_key.pem does not exist" in refused(store)
    assert not (tmp_path / "model_key.pem").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{", b"\xff", b'{"signature": {}}', b"[" * 99999])
def test_a_file_that_is_no_model_is_refused(store, content):
    store.path(SESSION).write_bytes(content)
    assert str(store.path(SESSION)) in refused(store)


@pytest.mark.parametrize("session", ["..", ".", "", "../x", "a/b", "/etc", "a\n", "a\0", "é"])
def test_a_session_is_never_a_path(store, session):
    with pytest.raises(DataError):
        store.path(session)
