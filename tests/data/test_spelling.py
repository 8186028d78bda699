"""Two ids that look alike are one, at every party: in one dataset, in a server's join, in a private intersection."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.algorithms.errors import DataError, DuplicateId
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.training.rows import read_rows
from tests.data.tables import read, refused, source_of, write, write_text
from tests.each_case import each_case
from tests.measurement.house import ONE, House, make_dataset, one_hot
from tests.measurement.indexes import built
from tests.vertical.in_process import seated
from tests.walr_split.released import without_noise
from tests.world.vertical import ROWS, bank_and_shops

E_ACUTE, COMBINING = "\u00e9", "e\u0301"
ALIKE = [f" {E_ACUTE}va", f"{COMBINING}va\t", f"\ufeff{E_ACUTE}va", f"{E_ACUTE}\u200bva\u00a0", f"{COMBINING}v\x00a"]
APART = ["eva", f"{E_ACUTE}Va", f"{E_ACUTE}va1", f"{E_ACUTE} va", f"0{E_ACUTE}va", "\uff45va"]

ODD = " \t\u00a0\u200b\ufeff\x00\u0301e"
texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(ODD)))


def spelt(*values: str) -> list[str]:
    spellings: list[str] = one_spelling(pa.array(values, pa.string())).to_pylist()
    return spellings


def test_what_looks_alike_is_one_and_all_else_stays() -> None:
    assert spelt(*ALIKE) == [f"{E_ACUTE}va"] * len(ALIKE)
    assert spelt(*APART) == APART
    assert spelt("00123", "x y", "x") == ["00123", "x y", "x"]
    assert one_spelling(pa.array([None, " a"], pa.string())).to_pylist() == [None, "a"]


@given(st.lists(texts, max_size=4))
def test_its_law(values: list[str]) -> None:
    """Python's own tables agree except for invisible characters, and applying the law once is enough."""
    found = spelt(*values)
    assert spelt(*found) == found
    assert all(text == text.strip() == unicodedata.normalize("NFC", text) for text in found)
    unseen = re.compile("[\x00-\x08\x0e-\x1b\x7f\u00ad\u200b-\u200f\u2060-\u206f\ufeff]")
    for value, text in zip(values, found, strict=True):
        assert not unseen.search(text)
        if set(value) <= set(ODD):
            assert text == unicodedata.normalize("NFC", unseen.sub("", value)).strip()
        assert spelt(f" {value}\u200b") == [text]


@each_case("kind", ["csv", "parquet", "sqlite"])
def test_every_kind_of_source_has_it(tmp_path: Path, kind: str) -> None:
    url = write(tmp_path, kind, {"id": ["a ", f"\u200b{COMBINING}"], "who": [" x", "x\u00a0"]})
    (batch,) = read(tmp_path, url, person="who")
    assert batch.ids.to_pylist() == ["a", E_ACUTE]
    assert batch.persons is not None
    assert batch.persons.to_pylist() == ["x", "x"]


def test_an_id_of_nothing_that_is_seen_is_missing(tmp_path: Path) -> None:
    write_text(tmp_path, "id\n\u200b \n")
    refused("visits: DIR/rows.csv, row 1 (line 2), column id: the value is missing", "", tmp_path, "rows.csv")


@each_case("other", ALIKE)
def test_two_spellings_of_one_id_are_two_rows_of_it(tmp_path: Path, other: str) -> None:
    url = write(tmp_path, "parquet", {"id": [f"{E_ACUTE}va", "b", other], "x": [1.0, 2.0, 3.0], "y": [0, 1, 1]})
    source = source_of(tmp_path, url, features=["x"], label="y")
    message = r"row 3, column id: the id is that of row 1 again( \(|$)"
    with pytest.raises(DataError, match=message) as caught:
        read_rows(source, labels=False, report=lambda *_: None)
    assert "white space" in caught.value.hint
    with pytest.raises(DataError, match=message):
        built(source, tmp_path / "index")


# --- one person, one cap ---------------------------------------------------------------------------------


def test_a_person_of_four_spellings_has_one_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    names = [f"row-{i}" for i in range(5)]
    dataset = make_dataset(tmp_path, dict.fromkeys(names, 1), [*ALIKE[:4], "bob"])
    house = House(tmp_path, {"visits": dataset})
    rows = one_hot(names)
    _, kept = house.send(rows, house.request(rows))
    house.close()
    assert kept.tolist() == [True, False, False, False, True]


# --- joins -----------------------------------------------------------------------------------------------


def test_a_servers_join_finds_every_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The join also finds spellings of a foreign client, which sends ids as they stand."""
    without_noise(monkeypatch)
    dataset = make_dataset(tmp_path, {f" {COMBINING}va": 1, "bob": 1, "carl\u200b": 0})
    house = House(tmp_path, {"visits": dataset}, Budget(5.0, 1e-6))
    rows = one_hot([f"{E_ACUTE}va\ufeff", "bob ", "carl"])
    answer, kept = house.send(rows, house.request(rows))
    assert kept.all()
    assert answer.sums.tolist() == [ONE, ONE, 0]
    twice = one_hot(["bob", "bob "])
    with pytest.raises(DuplicateId):
        house.send(twice, house.request(twice, release="twice"))
    house.close()


def test_a_private_intersection_finds_every_spelling(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    for party, change in (("shop-a", " {}"), ("shop-b", "{}\u200b\u00a0")):
        path = tmp_path / f"{party}.csv"
        header, *rows = (line.partition(",") for line in path.read_text().splitlines())
        changed = [f"{change.format(name.strip(chr(34)))},{rest}" for name, _, rest in rows]
        path.write_text("\n".join(["".join(header), *changed]) + "\n")
    made = seated(project, f"align.min_common={ROWS}")
    assert {len(seat.features) for seat in made.seats.values()} == {ROWS}
