from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.id_hash import CHUNK, MAX_TEXT_BYTES, HashKeys, hash_texts, hash_texts_64

KEYS = HashKeys.from_bytes(np.random.default_rng(1).bytes(len(HashKeys.random().to_bytes())))
TEXTS = st.lists(st.text(max_size=MAX_TEXT_BYTES // 4), max_size=20)


def oracle(text: str, keys: HashKeys) -> list[int]:
    """Return the formula of the module's docstring, in Python's integers: the four instances."""
    data = text.encode()
    padded = data + bytes(-len(data) % 4)
    words = [len(data)] + [int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4)]
    instances = [[int(key) for key in row] for row in keys.keys]
    return [(init + sum(k * w for k, w in zip(ks, words, strict=False))) % 2**64 >> 32 for init, *ks in instances]


@given(TEXTS)
def test_it_is_the_formula(texts):
    high, low = hash_texts(texts, KEYS)
    for text, h, lo in zip(texts, high.tolist(), low.tolist(), strict=True):
        a, b, c, d = oracle(text, KEYS)
        assert (h, lo) == (a << 32 | b, c << 32 | d)
    assert np.array_equal(hash_texts_64(texts, KEYS), high)


@given(TEXTS, st.data())
def test_lists_arrays_and_slices_agree(texts, data):
    start = data.draw(st.integers(0, len(texts)))
    whole = hash_texts(pa.array(texts, pa.string()), KEYS)
    part = hash_texts(pa.array(texts, pa.string())[start:], KEYS)
    assert np.array_equal(np.stack(whole), np.stack(hash_texts(texts, KEYS)))
    assert np.array_equal(np.stack(part), np.stack(whole)[:, start:])


@settings(max_examples=20)
@given(st.binary(min_size=1, max_size=20))
def test_padding_is_not_content(content):
    text = content.decode("latin-1")
    high, low = hash_texts([text, text + "\0", text + "\0" * 4], KEYS)
    assert len(set(zip(high.tolist(), low.tolist(), strict=True))) == 3


def test_chunks_do_not_matter():
    texts = [f"{i:x}" * (1 + i % 5) for i in range(CHUNK + 100)]
    whole = np.stack(hash_texts(texts, KEYS))
    assert np.array_equal(whole[:, CHUNK - 50 :], np.stack(hash_texts(texts[CHUNK - 50 :], KEYS)))


def test_each_bit_of_one_id_is_a_fair_coin_over_the_keys():
    """2,000 independent keys and 128 bits: 6 standard deviations are passed by chance once in 4e6 runs. (Over many
    ids of one key the bits are independent only pair by pair, so there the tails are heavier.)"""
    n = 2_000
    hashes = np.stack([np.stack(hash_texts(["py000123"], HashKeys.random())) for _ in range(n)], axis=1)
    bits = (hashes >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    z = np.abs(bits.mean(axis=1) - 0.5) / (0.5 / n**0.5)
    assert z.max() < 6


def test_keys_survive_writing_and_are_not_shown():
    keys = HashKeys.random()
    assert np.array_equal(HashKeys.from_bytes(keys.to_bytes()).keys, keys.keys)
    assert str(int(keys.keys[0, 0])) not in repr(keys)
    assert not np.array_equal(HashKeys.random().keys, keys.keys)


def test_too_long_a_text_is_named_by_its_position():
    with pytest.raises(DataError, match=r"^id number 2 is longer than 256 bytes$"):
        hash_texts(["a", "x" * (MAX_TEXT_BYTES + 1)], KEYS)
    hash_texts(["x" * MAX_TEXT_BYTES], KEYS)
