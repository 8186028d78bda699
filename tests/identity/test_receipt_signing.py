from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.signing import SigningKey, verify
from blindfit.parties.identity.authority import issue
from tests.certificates import demo_authority


def test_a_signature_verifies_with_the_public_key_alone(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "key")
    signature = key.sign(b"receipt")
    assert verify(key.public_bytes, b"receipt", signature)
    assert not verify(key.public_bytes, b"Receipt", signature)
    assert not verify(SigningKey.load_or_create(tmp_path / "other").public_bytes, b"receipt", signature)


@given(public=st.binary(max_size=40), signature=st.binary(max_size=70))
def test_bytes_that_are_no_key_or_signature_do_not_verify(public: bytes, signature: bytes) -> None:
    assert not verify(public, b"receipt", signature)


def test_the_key_is_made_once_privately_and_shown_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with ThreadPoolExecutor(4) as pool:
        keys = list(pool.map(lambda _: SigningKey.load_or_create(path), range(8)))
    assert len({key.public_bytes for key in keys}) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]
    assert repr(keys[0]) == f"SigningKey(public={keys[0].public_bytes.hex()})"


def test_a_passphrase_locks_it(tmp_path: Path) -> None:
    path, secret = tmp_path / "key", b"correct horse battery staple"
    key = SigningKey.load_or_create(path, secret)
    assert SigningKey.load_or_create(path, secret).public_bytes == key.public_bytes
    with pytest.raises(ConfigError, match="is locked and no passphrase was given"):
        SigningKey.load_or_create(path)


def test_what_is_not_its_key_is_refused(tmp_path: Path) -> None:
    tls_key = issue(demo_authority(tmp_path), "alice").key
    with pytest.raises(ConfigError, match=f"^{tls_key} is not an Ed25519 key( \\(|$)"):
        SigningKey.load_or_create(tls_key)
    tls_key.chmod(0o644)
    with pytest.raises(ConfigError, match="others can use this secret"):
        SigningKey.load_or_create(tls_key)
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        SigningKey.load_or_create(tmp_path / "no" / "key")
