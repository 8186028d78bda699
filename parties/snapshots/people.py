"""Keyed digests of ids, by which a party recognises the same people in every snapshot that it makes.

An account of what was revealed about people belongs to the people. A table with an additional row, or with ids in upper
case, must not begin a new account. The digest of an id is 64 bits: AES under the party's secret of a keyed hash of the
folded id. The secret is in the party's vault, the digests are in its database and in its snapshots' folders, and
neither ever leaves the party. Ids that were hashed or renumbered between two tables are not recognised.
"""

from __future__ import annotations

import hashlib
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.id_hash import MAX_TEXT_BYTES, HashKeys, hash_texts
from blindfit.parties.files.private_files import make_private, write_new
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.files.vault import PARTY_KEY, vault_of
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Writes

FILE = "people.u64"  # in a snapshot's folder: the digest of each row's id, in the order of its rows

Digests = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class PeopleKey:
    """The secret under which this party digests ids."""

    hashing: HashKeys
    block_key: bytes

    @classmethod
    def of(cls, secret: PartySecret, *purpose: str) -> PeopleKey:
        """Return the party's key of digests; with a purpose, a key of its own for numbers of people."""
        stream = hashlib.shake_256(secret.derive("digests of people", *(part.encode() for part in purpose)))
        size = len(HashKeys.random().to_bytes())
        octets = stream.digest(size + 16)
        return cls(HashKeys.from_bytes(octets[:size]), octets[size:])

    @classmethod
    def of_party(cls, settings: PartySettings, base_dir: Path) -> PeopleKey:
        """Return the party's key of digests; a party without a secret draws one."""
        data_dir = base_dir / settings.data_dir
        make_private(data_dir)
        return cls.of(PartySecret.load_or_create(data_dir / PARTY_KEY, vault_of(settings, base_dir)))

    def digests(self, ids: Any) -> Digests:
        """Return a digest of each id, uint64 (n,). Two ids that look alike have the same one.

        Args:
            ids: a `pyarrow.StringArray` in one spelling.
        """
        high, low = hash_texts(_shorten(fold(ids)), self.hashing)
        return self._encrypt(high, low)[:, 0]

    def digests_of(self, parts: Iterable[Any]) -> Digests:
        """Return the digests of one table's ids, which come part by part.

        Two ids of one table are two people, even where they look alike. One of them keeps the digest that they share,
        and each other one has the digest of its spelling; the order of the rows does not matter.
        """
        found = [np.zeros((2, 0), np.uint64)]
        for ids in parts:
            found.append(np.stack([self.digests(ids), self._digest_spellings(ids)]))
        folded, spelled = np.concatenate(found, axis=1)
        order = np.lexsort((spelled, folded))
        again = order[1:][folded[order[1:]] == folded[order[:-1]]]
        folded[again] = spelled[again]
        return np.asarray(folded)

    def _digest_spellings(self, ids: Any) -> Digests:
        """Return a digest of each id in its own spelling, uint64 (n,). A folded id has the same digest only by
        chance.
        """
        high, low = hash_texts(_shorten(ids), self.hashing)
        return self._encrypt(low, high)[:, 1]

    def uniforms(self, digests: Digests, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a number between 0 and 1 for each person and value, float64 (n,).

        The same person and value have the same number; nobody without the key can distinguish it from random.
        """
        drawn = self._encrypt(digests, values.astype("<f8").view(np.uint64))[:, 0]
        return ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def _encrypt(self, high: Digests, low: Digests) -> Digests:
        blocks = np.stack([high, low], axis=1).astype("<u8")
        encryptor = Cipher(algorithms.AES128(self.block_key), modes.ECB()).encryptor()  # noqa: S305 - a PRP of blocks
        return np.frombuffer(encryptor.update(blocks.tobytes()), "<u8").reshape(-1, 2).astype(np.uint64)


def fold(ids: Any) -> Any:
    """Return ids without the features that a copy of a table often changes: case, spaces, Unicode forms, leading
    zeros.
    """
    if not pc.all(pc.string_is_ascii(ids), min_count=0).as_py():
        ids = pa.array([unicodedata.normalize("NFKC", text).casefold() for text in ids.to_pylist()], pa.string())
    spaceless = pc.replace_substring_regex(pc.utf8_lower(ids), r"\s+", "")
    return pc.utf8_ltrim(spaceless, "0")


def _shorten(ids: Any) -> Any:
    """Replace ids that are too long for the hash by their SHA-256."""
    if not pc.any(pc.greater(pc.binary_length(ids), MAX_TEXT_BYTES), min_count=0).as_py():
        return ids
    return pa.array(
        [
            text if len(text.encode()) <= MAX_TEXT_BYTES else hashlib.sha256(text.encode()).hexdigest()
            for text in ids.to_pylist()
        ],
        pa.string(),
    )


def write_digests(directory: Path, digests: Digests) -> None:
    """Write the digests. Raise ConfigError if the file exists already."""
    write_new(directory / FILE, digests.astype("<u8").tobytes(), mode=0o600)


def read_digests(directory: Path, rows: int) -> Digests:
    """Return the digests. Raise DataError if the file is missing or has another number of rows."""
    path = directory / FILE
    try:
        found = np.fromfile(path, "<u8").astype(np.uint64)
    except OSError:
        found = np.empty(0, np.uint64)
    if len(found) != rows:
        raise DataError(f"{path} is missing or damaged", hint="restore it from a backup, or publish the dataset again")
    return found


def join(chunks: Iterable[bytes]) -> Digests:
    """Return the people of a population in the order in which they were first published."""
    return np.frombuffer(b"".join(chunks), "<u8").astype(np.uint64)


def add_people(transaction: Writes, population: str, label: str | None, digests: Digests) -> None:
    """Add the people of a new snapshot that the population does not have yet, and the people whose labels are
    published.
    """
    known = join(transaction.people(population))
    if len(new := np.setdiff1d(digests, known)):
        transaction.add_people(population, new.astype("<u8").tobytes())
        known = np.concatenate([known, new])
    if label is not None:
        labelled = unpack(transaction.people_with_labels(population, label), len(known))
        labelled[places(known, digests)] = True
        transaction.put_labelled_people(population, label, pack(labelled))


def places(known: Digests, digests: Digests) -> NDArray[np.int64]:
    """Return the place of each digest among the people of a population.

    Raises:
        DataError: the population does not have one of them.
    """
    order = np.argsort(known, kind="stable")
    found = np.searchsorted(known, digests, sorter=order)
    if len(digests) and (not len(known) or (known[order[np.minimum(found, len(known) - 1)]] != digests).any()):
        raise DataError("a snapshot has people that the party's database does not know", hint="publish it again")
    return order[found].astype(np.int64) if len(digests) else np.zeros(0, np.int64)


def pack(people: NDArray[np.bool_]) -> bytes:
    """Compress a bitmap of people, in the order of their places in the population."""
    return zlib.compress(np.packbits(people).tobytes(), 1)


def unpack(people: bytes, count: int | None = None) -> NDArray[np.bool_]:
    """Return a bitmap of `count` people; it does not have people that were published later."""
    bits = np.unpackbits(np.frombuffer(zlib.decompress(people), np.uint8)) if people else np.zeros(0, np.uint8)
    if count is None:
        return bits.astype(np.bool_)
    return np.pad(bits[:count], (0, max(0, count - len(bits)))).astype(np.bool_)
