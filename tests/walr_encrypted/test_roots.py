"""The n-th root of an answer could reveal labels: the sender of the rows knows each row's root.

A product of the roots of label 1 would name the rows. Two whole jobs differ in one label, with the server's randomisers
and without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress, product
from pathlib import Path

import pytest

from blindfit.algorithms.paillier.ciphertexts import FreshCiphertext
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.protocols.walr import encrypted_rows
from blindfit.algorithms.protocols.walr.encrypted_rows import EncryptedRows, HiddenRows
from tests.quick_keys import quick_keys
from tests.walr_encrypted.house import house_in
from tests.world.split_labels import Split

UNKNOWN = 8  # labels; the shop knows the labels of all other rows


@dataclass
class Ones:
    """Stand-in for the server's randomisers that hides nothing."""

    public_key: PublicKey

    def draw(self, count: int) -> Residues:
        return self.public_key.kernel.residues([1] * count)


@dataclass
class Shop:
    """A shop that keeps the ciphertexts that it sends, and opens all of them with its own key."""

    key: PrivateKey
    sent: dict[str, int] = field(default_factory=dict)

    def roots(self) -> dict[str, int]:
        residues = self.key.public_key.kernel.residues(self.sent.values())
        return dict(zip(self.sent, self.key.roots(residues), strict=True))

    def labels_from(self, root: int, labels: dict[str, int]) -> list[tuple[int, ...]]:
        """Return the labels of the first rows under which the answer is the product of the rows of label 1."""
        n, roots = self.key.public_key.n, self.roots()
        guessed, known = list(roots)[:UNKNOWN], list(roots)[UNKNOWN:]
        of_known = 1
        for name in known:
            of_known = of_known * roots[name] % n if labels[name] else of_known
        found = []
        for guess in product((0, 1), repeat=UNKNOWN):
            value = of_known
            for name in compress(guessed, guess):
                value = value * roots[name] % n
            if value == root:
                found.append(guess)
        return found


@pytest.fixture
def shop(insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    one, batches = Shop(insecure_test_key), HiddenRows.batches

    def kept(rows: HiddenRows) -> Iterator[EncryptedRows]:
        for batch in batches(rows):
            assert isinstance(batch.rows, FreshCiphertext)
            width, octets = batch.rows.to_wire()
            numbers = [int.from_bytes(octets[i : i + width], "big") for i in range(0, len(octets), width)]
            one.sent.update(zip(batch.ids, numbers, strict=True))
            yield batch

    monkeypatch.setattr(HiddenRows, "batches", kept)
    with quick_keys():
        yield one


def trained(house: Split) -> int:
    """Return the root in the job's file."""
    session = house.run(job="hidden.toml")
    file = json.loads((house.root / "state/shop/models" / session.id / "release.json").read_bytes())
    (root,) = file["parts"]["servers"][0]["encrypted"]["roots"]
    return int(root, 16)


@pytest.mark.parametrize("hides", [True, False])
def test_whoever_sent_the_rows_reads_no_label_from_the_root(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hides: bool
) -> None:
    """A root is a product of rows' roots by chance once in n / 2^8."""
    if not hides:
        monkeypatch.setattr(encrypted_rows, "FullExponent", Ones)
    found, labels = [], []
    for world in ("one", "other"):
        (tmp_path / world).mkdir()
        house = house_in(tmp_path / world, shop.key)
        if world == "other":
            first = next(iter(shop.sent))  # the same rows go in both, as the seed is the same
            house.write_labels([label ^ (name == first) for name, label in house.labels.items()])
            shop.sent.clear()
        root = trained(house)
        found.append(shop.labels_from(root, house.labels))
        labels.append(tuple(house.labels[name] for name in list(shop.sent)[:UNKNOWN]))
    assert labels[0] != labels[1]
    assert found == ([[], []] if hides else [labels[:1], labels[1:]])
