"""The release file of a server that summed rows which it could not read, and changes to the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, insecure_private_key
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.export import export
from blindfit.parties.walr.release_document import EncryptedSum
from tests.export.tampering import Change, changes_noticed, flat, odd_parts
from tests.export.two_servers import RANDOM, Trained
from tests.quick_keys import quick_keys
from tests.walr_encrypted.house import house_in

ALL_CHECKS = 1 + len([*checks.CHECKS, *checks.SERVER_CHECKS, *checks.BELONGING, *checks.TOGETHER, *checks.INPUTS])


@pytest.fixture(autouse=True, scope="module")
def _quick_keys() -> Iterator[None]:
    with quick_keys():
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, insecure_test_key: PrivateKey) -> Trained:
    made = Trained(house_in(tmp_path_factory.mktemp("house"), insecure_test_key))
    made.train("hidden", job="hidden.toml")
    made.train("again", 'privacy.release="again"', job="hidden.toml")
    made.train("trusted", job="trusted.toml")
    return made


# --- what passes ------------------------------------------------------------------------------------------


def test_all_passes_and_the_model_is_fitted_again_bit_for_bit(trained: Trained) -> None:
    verified = trained.verify(trained.file("hidden"), trained.refit("hidden"))
    assert [(r.name, r.why) for r in verified.results if r.why] == []
    assert len(verified.results) == ALL_CHECKS + 2
    lines = {result.name for result in verified.results}
    assert 'servers: whole, walr.trust = "encrypted-rows"' in lines
    assert "noisy sum: 3 numbers, as the signed ciphertexts hold them" in lines
    assert "whole: range of the answer: a sum that labels can give" in lines
    assert "epsilon: 1 against shop, if its rows were as short as it states, which no server could check" in lines
    assert (
        "features: hash of the rows: 92 rows, as charged; no server could see that they are the rows which came "
        "encrypted" in lines
    )
    assert "features: model fitted again: the same weights, bit for bit" in lines


def test_under_a_key_of_full_size(tmp_path: Path, real_key: PrivateKey) -> None:
    made = Trained(house_in(tmp_path, real_key))
    made.train("hidden", job="hidden.toml")
    out = tmp_path / "release.blindfit"
    told = io.StringIO()
    export(made.directories["hidden"], out).show(Console(file=told))
    assert "Keep it from the operator of whole" in told.getvalue()
    assert made.verify(out.read_bytes(), made.refit("hidden")).passed


def test_a_remembered_answer_is_opened_again(trained: Trained) -> None:
    """The rows may have been encrypted again since: the server gives the same ciphertexts, so the same roots."""
    trained.train("once more", job="hidden.toml")
    assert trained.verify(trained.file("once more")).passed
    (old,), (new,) = (trained.parts(name)["servers"] for name in ("hidden", "once more"))
    assert (new["encrypted"], new["release"], new["entry"]) == (old["encrypted"], old["release"], old["entry"])


# --- changes to the file ----------------------------------------------------------------------------------


def test_every_changed_byte_is_noticed(trained: Trained) -> None:
    assert changes_noticed(trained.file("hidden"), 100, seed=3) == 100


@pytest.mark.soak
def test_ten_thousand_changed_bytes_are_noticed(trained: Trained) -> None:
    assert changes_noticed(trained.file("hidden"), 10_000, seed=4) == 10_000


def opened_under(change: Callable[[dict[str, Any], PublicKey], object]) -> Callable[[Trained], Change]:
    def of(_trained: Trained) -> Change:
        def changed(parts: dict[str, Any]) -> None:
            encrypted = parts["servers"][0]["encrypted"]
            change(encrypted, PublicKey.from_bytes(bytes.fromhex(encrypted["public_key"])))

        return changed

    return of


def rerandomised(encrypted: dict[str, Any], key: PublicKey) -> None:
    """Replace the ciphertext by another one of the same sum, which the server never signed."""
    kernel = key.kernel
    residues = kernel.residues([int(encrypted["ciphertexts"], 16)])
    (integer,) = kernel.integers(kernel.products(residues, FullExponent(key).draw(1)))
    encrypted["ciphertexts"] = integer.to_bytes(key.ciphertext_bytes, "big").hex()


def summed(add: int) -> Callable[[Trained], Change]:
    """Replace the active party's own sum, and the model that was fitted to it."""

    def of(_trained: Trained) -> Change:
        def change(parts: dict[str, Any]) -> None:
            parts["sum"]["sums"][0] += add

        return change

    return of


def of_another_key(_trained: Trained) -> Change:
    def change(parts: dict[str, Any]) -> None:
        other = insecure_private_key(512).public_key
        parts["servers"][0]["encrypted"]["public_key"] = other.to_bytes().hex()

    return change


def without_proof(encrypted: dict[str, Any], key: PublicKey) -> None:
    encrypted["public_key"] = PublicKey(key.n, None).to_bytes().hex()


def of_trusted(trained: Trained) -> Change:
    return lambda parts: parts["servers"].__setitem__(0, trained.parts("trusted")["servers"][0])


def of_again(trained: Trained) -> Change:
    """Return the opening of another draw's ciphertexts, with its sum."""

    def change(parts: dict[str, Any]) -> None:
        other = trained.parts("again")
        parts["servers"][0]["encrypted"] = other["servers"][0]["encrypted"]
        parts["sum"]["sums"] = other["sum"]["sums"]

    return change


def not_opened(_trained: Trained) -> Change:
    return lambda parts: parts["servers"][0].__setitem__("encrypted", None)


def as_trusted(_trained: Trained) -> Change:
    return lambda parts: parts["fit"]["settings"].__setitem__("trust", "trusted")


def next_root(encrypted: dict[str, Any], key: PublicKey) -> None:
    encrypted["roots"][0] = f"{int(encrypted['roots'][0], 16) + 1:0{len(encrypted['roots'][0])}x}"


def root_past_n(encrypted: dict[str, Any], key: PublicKey) -> None:
    """Replace a root by an equal one mod n: one root has one spelling."""
    root = int(encrypted["roots"][0], 16) + key.n
    encrypted["roots"][0] = root.to_bytes((root.bit_length() + 7) // 8, "big").hex()


def twice_opened(encrypted: dict[str, Any], key: PublicKey) -> None:
    encrypted["roots"] *= 2


def spare_bytes(encrypted: dict[str, Any], key: PublicKey) -> None:
    encrypted["roots"][0] = "00" + encrypted["roots"][0]


def with_hs(encrypted: dict[str, Any], key: PublicKey) -> None:
    """Add an hs, which no server signed: free bytes."""
    encrypted["public_key"] = PublicKey(key.n, 4, key.proof).to_bytes().hex()


def huge_key(encrypted: dict[str, Any], key: PublicKey) -> None:
    """Use a key under which a power takes for ever."""
    encrypted["public_key"] = PublicKey(3**5000, None, key.proof).to_bytes().hex()


def two_servers(_trained: Trained) -> Change:
    return lambda parts: parts["servers"].append(parts["servers"][0])


LIES: list[tuple[Callable[[Trained], Change], str, str]] = [
    (summed(1), "noisy sum", "it is not what the ciphertexts of whole hold"),
    (summed(2**80), "whole: range of the answer", "no labels give this sum"),
    (summed(2**62), "whole: range of the answer", "no labels give this sum"),
    (opened_under(next_root), "noisy sum", "it is not what the ciphertexts of whole hold"),
    (opened_under(root_past_n), "noisy sum", "it is not what the ciphertexts of whole hold"),
    (opened_under(twice_opened), "noisy sum", "it is not what the ciphertexts of whole hold"),
    (opened_under(rerandomised), "servers", "not the statement of a WALR release"),
    (of_another_key, "noisy sum", "is not the fingerprint of the public key"),
    (opened_under(without_proof), "noisy sum", "nothing proves that r^n hides under it"),
    (opened_under(spare_bytes), "servers", "a root of an encrypted sum has more bytes than it needs"),
    (opened_under(with_hs), "noisy sum", "it is not what the ciphertexts of whole hold"),
    (opened_under(huge_key), "noisy sum", "is not the fingerprint of the public key"),
    (two_servers, "servers", '"encrypted-rows" needs 1 servers, and the file has 2'),
    (of_trusted, "servers", 'whole got another request than walr.trust = "encrypted-rows" makes'),
    (of_again, "servers", "not the statement of a WALR release"),
    (not_opened, "servers", "not the statement of a WALR release"),
    (as_trusted, "servers", 'whole got another request than walr.trust = "trusted" makes'),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_a_sealed_lie_is_noticed(trained: Trained, lie: int) -> None:
    change, check, why = LIES[lie]
    failed = trained.lied("hidden", change(trained))
    assert why in failed.get(check, ""), failed


@pytest.mark.parametrize("garbage", ["public_key", "ciphertexts", "roots"])
def test_garbage_is_one_line(trained: Trained, garbage: str) -> None:
    def change(parts: dict[str, Any]) -> None:
        parts["servers"][0]["encrypted"][garbage] = ["00"] if garbage == "roots" else "00"

    assert trained.lied("hidden", change)


def test_whatever_is_sealed_is_refused_in_a_line(trained: Trained) -> None:
    odd_parts(trained.file("hidden"), trained.house.root / "state/shop", 300, seed=5)


# --- contents of the file ------------------------------------------------------------------------------------


def test_two_worlds_that_differ_in_a_label_differ_in_what_is_random_or_released_alone(
    trained: Trained, tmp_path: Path, insecure_test_key: PrivateKey
) -> None:
    other = Trained(house_in(tmp_path, insecure_test_key))
    labels = list(other.house.labels.values())
    other.house.write_labels([1 - labels[0], *labels[1:]])
    other.train("hidden", job="hidden.toml")
    ours, theirs = flat(trained.parts("hidden")), flat(other.parts("hidden"))
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    opened = {
        "/servers/0/encrypted/ciphertexts",
        "/servers/0/encrypted/roots/0",
        "/servers/0/release/ciphertexts_sha256",
    }
    assert {path for path in differing - opened if not RANDOM.fullmatch(path)} == set()
    assert opened <= differing


def test_the_private_key_is_not_in_the_file(trained: Trained, insecure_test_key: PrivateKey) -> None:
    text = json.dumps(trained.parts("hidden"))
    assert EncryptedSum.model_validate(trained.parts("hidden")["servers"][0]["encrypted"]).opening.roots
    for secret in (insecure_test_key.p, insecure_test_key.q):
        assert f"{secret:x}" not in text
        assert str(secret) not in text
    assert trained.refit("hidden").sent.salt.hex() not in text
