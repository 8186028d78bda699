"""Filters of records: alike if records are alike, unrelated under another secret, and made as the format specifies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from blindfit.algorithms.alignment import clk
from blindfit.algorithms.alignment.clk import (
    Encoding,
    Field,
    Filters,
    bigrams,
    count_unreadable,
    date_tokens,
    encode,
    normalise,
)
from blindfit.algorithms.errors import ConfigError, DataError
from examples.linkage.dirty_records import registers
from tests.each_case import each_case

SECRET, OTHER_SECRET = b"s" * 32, b"t" * 32
FIELDS = (Field("first_name"), Field("last_name"), Field("birth_date", "date", 20), Field("postcode", hashes=10))
ENCODING = Encoding(FIELDS)
PERSON = {"first_name": "José", "last_name": "O'Brien", "birth_date": "1987-03-14", "postcode": "1000 AB"}


def one(encoding: Encoding = ENCODING, secret: bytes = SECRET, **changes: str) -> Filters:
    """Return the filter of PERSON with some values changed."""
    return encode({name: [value] for name, value in (PERSON | changes).items()}, encoding, secret)[0]


def dice(first: Filters, second: Filters) -> float:
    both, bits = np.bitwise_count(first & second).sum(), np.bitwise_count(first).sum() + np.bitwise_count(second).sum()
    return 2 * float(both) / float(bits)


# --- values to tokens -------------------------------------------------------------------------------


@each_case(
    ("text", "normal"),
    [
        *[("José", "jose"), (" O'Brien ", "obrien"), ("Jean-Luc", "jeanluc"), ("STRASSE", "strasse")],
        *[("Straße", "strasse"), ("1000 AB", "1000ab"), ("Łukasz", "łukasz"), ("李 雷", "李雷"), ("", ""), (" - ", "")],
    ],
)
def test_letters_and_digits_remain(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(st.text(alphabet=st.characters(codec="latin-1"), max_size=12), st.sampled_from(["upper", "lower", "title"]))
def test_case_and_spaces_make_no_difference(text: str, way: str) -> None:
    assert normalise(f" {getattr(text, way)()}. ") == normalise(text)


def test_both_ends_of_a_text_count() -> None:
    assert bigrams("anna") == ["_a", "an", "nn", "na", "a_"]
    assert bigrams("a") == ["_a", "a_"]
    assert bigrams("") == []


def test_a_digit_of_a_date_has_its_place() -> None:
    written = ["0:1", "1:9", "2:8", "3:7", "4:0", "5:3", "6:1", "7:4"]
    assert date_tokens("1987-03-14") == date_tokens(" 19870314 ") == written
    assert date_tokens(" ") == []
    assert date_tokens("2000-02-29") != []


@each_case("date", ["0000-00-00", "1900-02-30", "1900-02-29", "1987-31-14", "1987-00-14", "1987-03-00", "99999999"])
def test_a_day_that_no_calendar_has_is_like_nothing(date: str) -> None:
    """Many strangers have the same placeholders."""
    assert date_tokens(date) == []
    records = {"born": [date, date, "1987-03-14"]}
    filters = encode(records, Encoding((Field("born", "date"),)), SECRET)
    assert not filters[:2].any()
    assert filters[2].any()
    assert count_unreadable(records, Encoding((Field("born", "date"),))) == {"born": 2}


@each_case("date", ["14/03/1987", "14-03-1987", "1987-3-14", "1987", "1987-03-14T00:00", "١٩٨٧-٠٣-١٤"])
def test_a_date_in_another_format_counts_as_missing(date: str) -> None:
    """A refusal would reveal what a party's rows hold to the party that chose the fields."""
    records = {name: [value] * 4 for name, value in PERSON.items()} | {"birth_date": ["", date, "1987-03-14", " "]}
    missing, unreadable, written, blank = encode(records, ENCODING, SECRET)
    assert (unreadable == missing).all()
    assert (blank == missing).all()
    assert (written != missing).any()
    assert clk.count_unreadable(records, ENCODING) == {"birth_date": 1}


# --- records to filters -----------------------------------------------------------------------------


def places_by_definition(encoding: Encoding, secret: bytes) -> Iterator[int]:
    """Yield the bits of PERSON, one at a time, as docs/explanation/linkage.md describes them."""
    for field in encoding.fields:
        key = hashlib.blake2b(field.name.encode(), key=secret, person=b"blindfit field").digest()
        for token in clk.tokens_of(PERSON[field.name], field.kind):
            digest = hashlib.blake2b(token.encode(), key=key).digest()
            for i in range(field.hashes):
                yield int.from_bytes(digest[2 * i : 2 * i + 2], "little") % encoding.filter_bits


@each_case("bits", [256, 1024, 4096])
def test_a_filter_is_what_the_format_says(bits: int) -> None:
    encoding = Encoding(FIELDS, bits)
    set_bits = np.flatnonzero(np.unpackbits(one(encoding)))
    assert set(set_bits.tolist()) == set(places_by_definition(encoding, SECRET))


def test_a_filter_does_not_depend_on_the_other_records(monkeypatch: pytest.MonkeyPatch) -> None:
    records = registers(50, 50, 10, seed=1).first
    alone = [encode({name: column[i : i + 1] for name, column in records.items()}, ENCODING, SECRET) for i in range(50)]
    together = encode(records, ENCODING, SECRET)
    monkeypatch.setattr(clk, "BLOCK_RECORDS", 7)
    np.testing.assert_array_equal(together, np.concatenate(alone))
    np.testing.assert_array_equal(together, encode(records, ENCODING, SECRET))


def test_folding_is_the_xor_of_both_halves() -> None:
    whole = np.unpackbits(one(Encoding(FIELDS, 2048)))
    np.testing.assert_array_equal(np.unpackbits(one(Encoding(FIELDS, 1024, fold=True))), whole[:1024] ^ whole[1024:])


def test_a_record_without_values_has_an_empty_filter() -> None:
    assert not one(first_name="", last_name=" ", birth_date="", postcode="-").any()
    missing = one(last_name="")
    assert missing.any()
    assert not (missing & ~one()).any()


@each_case(
    "changes",
    [{"first_name": "Jose"}, {"last_name": "OBrein"}, {"birth_date": "1987-03-15"}, {"postcode": "1001AB"}],
)
def test_one_typing_error_leaves_a_record_alike(changes: dict[str, str]) -> None:
    assert dice(one(), one(**changes)) > 0.8


def test_strangers_and_other_secrets_are_alike_by_chance_alone() -> None:
    stranger = one(first_name="Mary", last_name="Smith", birth_date="1950-12-30", postcode="9876XY")
    fill = np.unpackbits(one()).mean()
    for other in (stranger, one(secret=OTHER_SECRET)):
        assert dice(one(), other) < fill + 0.2
    renamed = Encoding((Field("first_name"), Field("surname"), *FIELDS[2:]))
    moved = encode({name: [PERSON.get(name, "O'Brien")] for name in [f.name for f in renamed.fields]}, renamed, SECRET)
    assert dice(one(), moved[0]) < 0.85


def test_a_heavier_field_sets_more_bits() -> None:
    light, heavy = (one(Encoding((Field("last_name", hashes=h),))) for h in (5, 25))
    assert 3 < np.bitwise_count(heavy).sum() / np.bitwise_count(light).sum() <= 5


# --- independent places ------------------------------------------------------------------------------


def places_of_many_tokens() -> np.ndarray[Any, Any]:
    writer = clk._FieldWriter(Field("name", hashes=32), SECRET)
    for number in range(4000):
        writer._index_of(str(number))
    return np.frombuffer(bytes(writer._digests), "<u2").reshape(-1, 32) % 1024


def test_places_are_uniform() -> None:
    assert chisquare(np.bincount(places_of_many_tokens().ravel(), minlength=1024)).pvalue > 1e-3


def test_places_of_a_token_are_no_progression() -> None:
    """Double hashing has one step between all places of a token; here two steps are equal only by chance."""
    steps = np.diff(places_of_many_tokens(), axis=1) % 1024
    equal = (steps[:, 1:] == steps[:, :-1]).mean()
    assert equal < 3 / 1024
    assert chisquare(np.bincount(steps[:, ::2].ravel(), minlength=1024)).pvalue > 1e-3


# --- what is refused ---------------------------------------------------------------------------------


@each_case(
    ("wrong", "message"),
    [
        (lambda: Field(""), "no name"),
        (lambda: Field("a", "number"), "kind 'number'"),
        (lambda: Field("a", hashes=0), "hashes = 0"),
        (lambda: Field("a", hashes=33), "hashes = 33"),
        (lambda: Encoding(()), "names no field"),
        (lambda: Encoding((Field("a"), Field("a", "date"))), "twice"),
        (lambda: Encoding(FIELDS, 1000), "filter_bits = 1000"),
        (lambda: Encoding(FIELDS, 128), "filter_bits = 128"),
        (lambda: Encoding(FIELDS, 8192), "filter_bits = 8192"),
        (lambda: Encoding(FIELDS, 0), "filter_bits = 0"),
        (lambda: one(secret=b"short"), "32 bytes"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wrong()


def test_columns_that_do_not_fit_are_refused() -> None:
    columns = {name: [value] for name, value in PERSON.items()}
    with pytest.raises(DataError, match="column postcode"):
        encode({name: column for name, column in columns.items() if name != "postcode"}, ENCODING, SECRET)
    with pytest.raises(DataError, match="not of one length"):
        encode(columns | {"postcode": ["1", "2"]}, ENCODING, SECRET)
    with pytest.raises(DataError, match="no records"):
        encode({name: [] for name in PERSON}, ENCODING, SECRET)


def test_the_handshake_compares_all_that_makes_a_filter() -> None:
    others = [
        Encoding(FIELDS[:3]),
        Encoding((*FIELDS[:3], Field("postcode", hashes=11))),
        Encoding((*FIELDS[:3], Field("postcode", "date", 10))),
        Encoding(FIELDS, 2048),
        Encoding(FIELDS, fold=True),
    ]
    assert Encoding(FIELDS).parameters() == ENCODING.parameters()
    assert all(other.parameters() != ENCODING.parameters() for other in others)
