"""Keyed Bloom filters of records (cryptographic long-term keys): alike where the records are alike.

A record's quasi-identifiers are normalised and cut into tokens; each token sets `hashes` bits of one filter for the
whole record, at places that only a holder of the secret can compute.

Source: Schnell, Bachteler, Reiher 2011 (one filter for a record); Schnell, Borgs 2016 (folding).
Departures: the places of a token are independent, cut from one keyed hash. The usual double hashing puts place i at
h1 + i h2, so every token is an arithmetic progression. There are few progressions, they are recognised in a filter
without the secret, and names were read off in that way (Niedermeyer, Steinmetzer, Kroll, Schnell 2014).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, DataError

if TYPE_CHECKING:
    from blindfit.algorithms.messages import ParameterValue

Filters = npt.NDArray[np.uint8]  # (n_records, filter_bits / 8)
FieldKind = Literal["text", "date"]

SECRET_BYTES = 32
DEFAULT_HASHES = 15
MAX_HASHES = 32  # of 16 bits: what one BLAKE2b digest gives
MIN_FILTER_BITS, MAX_FILTER_BITS = 256, 4096
BLOCK_RECORDS = 4096  # unpacked at a time, one octet a bit
DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """One quasi-identifier.

    Args:
        name: column, the same at both parties; fields of different names share no token.
        kind: "text" is cut into bigrams; "date", written YYYY-MM-DD, into digits, each with its place.
        hashes: bits that each token sets, 1 to 32: the weight of the field.
    """

    name: str
    kind: FieldKind = "text"
    hashes: int = DEFAULT_HASHES

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("a field of the linkage has no name")
        if self.kind not in get_args(FieldKind):
            raise ConfigError(f"field {self.name}: kind {self.kind!r} is none of {', '.join(get_args(FieldKind))}")
        if not 1 <= self.hashes <= MAX_HASHES:
            raise ConfigError(f"field {self.name}: hashes = {self.hashes} is not between 1 and {MAX_HASHES}")


@dataclass(frozen=True, slots=True)
class Encoding:
    """The rule that makes a filter of a record; it is public, and both parties have the same.

    Args:
        filter_bits: bits of a filter as a party sends it, a power of two.
        fold: make filters of twice as many bits and XOR their halves, which blurs how often each bit is set.
    """

    fields: tuple[Field, ...]
    filter_bits: int = 1024
    fold: bool = False

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if not names:
            raise ConfigError("the linkage names no field")
        if len({*names}) < len(names):
            raise ConfigError("the linkage names a field twice")
        bits = self.filter_bits
        if bits & (bits - 1) or not MIN_FILTER_BITS <= bits <= MAX_FILTER_BITS:
            raise ConfigError(
                f"filter_bits = {bits} is not a power of two between {MIN_FILTER_BITS} and {MAX_FILTER_BITS}"
            )

    @property
    def width_bytes(self) -> int:
        return self.filter_bits // 8

    def parameters(self) -> dict[str, ParameterValue]:
        """Return the values that the handshake compares between the parties."""
        fields = tuple(f"{field.name}/{field.kind}/{field.hashes}" for field in self.fields)
        return {"linkage_fields": fields, "linkage_filter_bits": self.filter_bits, "linkage_fold": self.fold}


# --- records to filters -----------------------------------------------------------------------------


def encode(records: Mapping[str, Sequence[str]], encoding: Encoding, secret: bytes) -> Filters:
    """Return one filter for each record; a record without any value gets an empty one, which is like no other.

    Args:
        records: a column of texts for each field, all of one length; "" where a value is missing. In a field of dates,
            a text that is not a date counts as missing too. The proposer of a job chooses columns and kinds, so a
            refusal would reveal the contents of rows.
        secret: 32 bytes that only the two parties hold.

    Raises:
        DataError: a column is missing or of another length.
    """
    n_records = count_records(records, encoding)
    filters = np.empty((n_records, encoding.width_bytes), np.uint8)
    writers = [(_FieldWriter(field, secret), records[field.name]) for field in encoding.fields]
    for start in range(0, n_records, BLOCK_RECORDS):
        block = filters[start : start + BLOCK_RECORDS]
        bits = np.zeros((len(block), encoding.filter_bits << encoding.fold), np.bool_)
        for writer, column in writers:
            writer.write(column[start : start + BLOCK_RECORDS], bits)
        if encoding.fold:
            bits = bits[:, : encoding.filter_bits] ^ bits[:, encoding.filter_bits :]
        block[:] = np.packbits(bits, axis=1)
    return filters


def count_records(records: Mapping[str, Sequence[str]], encoding: Encoding) -> int:
    """Return the number of records, the same in every column.

    Raises:
        DataError: a column is missing, the columns differ in length, or they are empty.
    """
    for field in encoding.fields:
        if field.name not in records:
            raise DataError(f"the linkage needs a column {field.name}, which these records do not have")
    lengths = {field.name: len(records[field.name]) for field in encoding.fields}
    if len({*lengths.values()}) > 1:
        raise DataError(f"the columns of the linkage are not of one length: {lengths}")
    n_records = lengths[encoding.fields[0].name]
    if n_records == 0:
        raise DataError("there are no records to link")
    return n_records


class _FieldWriter:
    """A writer of the bits of one field; it hashes every token once, however many records have the token."""

    def __init__(self, field: Field, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ConfigError(f"the secret of a linkage has {SECRET_BYTES} bytes, not {len(secret)}")
        self._field = field
        self._key = hashlib.blake2b(field.name.encode(), key=secret, person=b"blindfit field").digest()
        self._index: dict[str, int] = {}
        self._digests = bytearray()

    def write(self, values: Sequence[str], bits: npt.NDArray[np.bool_]) -> None:
        tokens = [tokens_of(value, self._field.kind) for value in values]
        records = np.repeat(np.arange(len(tokens)), [len(of_record) for of_record in tokens])
        indices = [self._index_of(token) for of_record in tokens for token in of_record]
        # Both are powers of two, so that the remainder is uniform.
        places = np.frombuffer(bytes(self._digests), "<u2").reshape(-1, MAX_HASHES) % bits.shape[1]
        bits[records[:, None], places[indices, : self._field.hashes]] = True

    def _index_of(self, token: str) -> int:
        index = self._index.setdefault(token, len(self._index))
        if index * 2 * MAX_HASHES == len(self._digests):
            self._digests += hashlib.blake2b(token.encode(), key=self._key).digest()
        return index


def count_unreadable(records: Mapping[str, Sequence[str]], encoding: Encoding) -> dict[str, int]:
    """Count, for the owner, the values of each field of dates that are present but are not dates."""
    dates = [field.name for field in encoding.fields if field.kind == "date"]
    return {name: sum(bool(date.strip()) and not date_tokens(date) for date in records[name]) for name in dates}


# --- values to tokens -------------------------------------------------------------------------------


def tokens_of(value: str, kind: FieldKind) -> list[str]:
    return date_tokens(value) if kind == "date" else bigrams(normalise(value))


def normalise(text: str) -> str:
    """Keep only letters and digits: no case, accents, spaces or punctuation."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if character.isalnum())


def bigrams(text: str) -> list[str]:
    """Return the pairs of neighbouring characters, with a mark at each end of the text; an empty text has no pairs."""
    padded = f"_{text}_" if text else ""
    return [padded[i : i + 2] for i in range(len(padded) - 1)]


def date_tokens(date: str) -> list[str]:
    """Return each digit of YYYYMMDD with its place; an empty list if the text is not a calendar date.

    Placeholders such as 0000-00-00 would otherwise make strangers alike.
    """
    written = DATE.fullmatch(date.strip())
    if written is None:
        return []
    try:
        dt.date(*map(int, written.groups()))
    except ValueError:
        return []
    return [f"{place}:{digit}" for place, digit in enumerate("".join(written.groups()))]
