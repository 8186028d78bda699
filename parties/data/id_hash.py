"""A keyed 128-bit hash of ids, over whole arrays.

Source: Lemire and Kaser, "Strongly universal string hashing is fast" (2014), Multilinear. With 32-bit words
w_1..w_m of the zero-padded text, w_0 its length in bytes, and random 64-bit keys k,

    h = (k_init + k_0 w_0 + k_1 w_1 + ... + k_m w_m  mod 2^64) div 2^32

is strongly universal: two different texts collide with probability 2^-32 over the keys, and four independent instances
make 2^-128. It is not a cryptographic hash: anyone who knows the keys can make collisions, so only their owner has
them.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError

MAX_TEXT_BYTES = 256
N_INSTANCES = 4
N_KEYS = 2 + MAX_TEXT_BYTES // 4  # k_init, k_0 and one for each word
_KEY_BYTES = 8 * N_INSTANCES * N_KEYS
CHUNK = 1 << 15  # texts at a time, so that the temporaries stay in the processor's cache

_LOW_WORD = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
#: _FIRST_BYTES[b] keeps the first b bytes of a little-endian 8-byte word.
_FIRST_BYTES = np.array([(1 << 8 * b) - 1 for b in range(9)], np.uint64)

Words = NDArray[np.uint64]


@dataclass(frozen=True, repr=False, eq=False)
class HashKeys:
    """uint64 (4, 66); secret."""

    keys: Words

    @classmethod
    def random(cls) -> HashKeys:
        return cls.from_bytes(secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def of_split(cls, split_id: str) -> HashKeys:
        """Return the keys that both servers of a split have. Nobody can compute them without the id of the split."""
        return cls.from_bytes(hashlib.shake_256(b"blindfit ids of split " + split_id.encode()).digest(_KEY_BYTES))

    @classmethod
    def from_bytes(cls, data: bytes) -> HashKeys:
        return cls(np.frombuffer(data, "<u8").reshape(N_INSTANCES, N_KEYS))

    def to_bytes(self) -> bytes:
        return self.keys.astype("<u8").tobytes()


def hash_texts(texts: list[str] | pa.Array, keys: HashKeys) -> tuple[Words, Words]:
    """Return the high and the low 64 bits of each text's hash, uint64 (n,) each.

    Args:
        texts: A list or a `pyarrow.StringArray` without nulls, each text of at most 256 bytes of UTF-8.
        keys: The keys, secret.

    Raises:
        DataError: A text is longer; the message has its position.
    """
    h = _instances(texts, keys.keys)
    return (h[0] << _32) | h[1], (h[2] << _32) | h[3]


def hash_texts_64(texts: list[str] | pa.Array, keys: HashKeys) -> Words:
    """Return only the high 64 bits, at half the cost."""
    h = _instances(texts, keys.keys[:2])
    high: Words = (h[0] << _32) | h[1]
    return high


def _instances(texts: list[str] | pa.Array, keys: Words) -> Words:
    """Return hashes, uint64 (instances, n), each value below 2^32."""
    if isinstance(texts, list):
        texts = pa.array(texts, pa.string())
    offsets, data = _buffers(texts)
    result = np.empty((len(keys), len(texts)), np.uint64)
    for start in range(0, len(texts), CHUNK):
        stop = min(start + CHUNK, len(texts))
        result[:, start:stop] = _multilinear(offsets[start : stop + 1], data, keys, start)
    return result


def _buffers(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start of each text, n + 1 positions, and the bytes of all texts."""
    large = texts.cast(pa.large_string())
    _, offsets, data = large.buffers()
    if not len(large):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    starts = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    return starts, np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def _multilinear(offsets: NDArray[np.int64], data: NDArray[np.uint8], keys: Words, first: int) -> Words:
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    if longest > MAX_TEXT_BYTES:
        position = first + int(np.argmax(lengths > MAX_TEXT_BYTES))
        raise DataError(f"id number {position + 1} is longer than {MAX_TEXT_BYTES} bytes")
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    # Overlapping 8-byte words: words[i] is the eight bytes from byte i on.
    words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    sums = keys[:, :1] + keys[:, 1:2] * lengths.astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    for at in range(0, longest, 8):
        # A padding word adds nothing, so only the texts that reach this far matter.
        reach = np.flatnonzero(lengths > at)
        everyone = len(reach) == len(lengths)
        left = np.minimum((lengths if everyone else lengths[reach]) - at, 8)
        pair = words[(starts if everyone else starts[reach]) + at] & _FIRST_BYTES[left]
        part = _times(keys, 2 + at // 4, pair & _LOW_WORD) + _times(keys, 3 + at // 4, pair >> _32)
        if everyone:
            sums += part
        else:
            sums[:, reach] += part
    top: Words = sums >> _32
    return top


def _times(keys: Words, index: int, words: Words) -> Words:
    product: Words = keys[:, index : index + 1] * words
    return product
