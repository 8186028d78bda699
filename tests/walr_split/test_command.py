"""`blindfit split-labels` writes two private files or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.algorithms.protocols.walr.two_servers import P
from blindfit.coordinator.operator import split_labels as command
from blindfit.parties.systems import load_party
from tests.world.split_labels import Split


def split(house: Split, *names: str) -> tuple[Path, Path]:
    out = house.root / names[0], house.root / names[1]
    command.split_labels(load_party(house.root / "whole.toml"), house.root, "rows", out)
    return out


def columns(path: Path) -> dict[str, list[object]]:
    return pq.read_table(path).to_pydict()


@pytest.mark.parametrize("persons", [False, True])
def test_both_tables_add_up_to_the_labels_and_are_private(tmp_path: Path, persons: bool) -> None:
    house = Split(tmp_path, persons=persons)
    umask = os.umask(0)
    try:
        first, second = (columns(path) for path in split(house, "a.parquet", "b.parquet"))
    finally:
        os.umask(umask)
    assert first["id"] == second["id"] == sorted(house.labels)
    assert [(a + b) % P for a, b in zip(first["share"], second["share"], strict=True)] == [
        house.labels[str(row)] for row in first["id"]
    ]
    assert len({*first["split_id"], *second["split_id"]}) == 1
    assert ("person" in first) == persons
    assert all((tmp_path / name).stat().st_mode & 0o777 == 0o600 for name in ("a.parquet", "b.parquet"))


def test_every_split_is_fresh_in_all_rows(house: Split) -> None:
    one, other = (columns(split(house, f"{i}a", f"{i}b")[0]) for i in range(2))
    assert one["split_id"] != other["split_id"]
    assert all(a != b for a, b in zip(one["share"], other["share"], strict=True))


def test_the_order_of_the_table_is_not_that_of_its_rows(house: Split) -> None:
    """The table lists converters first: shares in that order would reveal who they are."""
    one = columns(split(house, "1a", "1b")[0])["id"]
    ordered = sorted(house.labels.items(), key=lambda item: -item[1])
    table = pa.table({"id": [row for row, _ in ordered], "label": [label for _, label in ordered]})
    pyarrow.csv.write_csv(table, house.root / "labels.csv")
    assert columns(split(house, "2a", "2b")[0])["id"] == one


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("row 1,2", r"row 2.*label.*neither 0 nor 1"), ("row 1,", r"row 2"), ("row 0,1", r"row 2.*again")],
)
def test_a_bad_row_is_named_and_nothing_is_written(house: Split, line: str, wanted: str) -> None:
    (house.root / "labels.csv").write_text(f"id,label\nrow 0,1\n{line}\n")
    with pytest.raises(DataError, match=wanted):
        split(house, "a.parquet", "b.parquet")
    assert not [*house.root.glob("*a.parquet*"), *house.root.glob("*b.parquet*")]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("a.parquet", "a.parquet"), "named twice"),
        (("a.parquet", "east.parquet"), "exists already"),
        (("a.parquet", "labels.csv/b.parquet"), "labels.csv"),
    ],
)
def test_a_file_that_cannot_be_made_leaves_neither(house: Split, names: tuple[str, str], wanted: str) -> None:
    before = sorted(path.name for path in house.root.iterdir())
    with pytest.raises(BlindfitError, match=wanted):
        split(house, *names)
    assert sorted(path.name for path in house.root.iterdir()) == before


def test_a_second_file_that_appears_meanwhile_takes_the_first_away(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_check_files", lambda _out: None)
    with pytest.raises(ConfigError, match="cannot be written"):
        split(house, "a.parquet", "east.parquet")
    assert not list(house.root.glob("*a.parquet*"))


@pytest.mark.parametrize(
    ("party", "dataset", "wanted"),
    [
        ("whole", "none", "no dataset named none"),
        ("east", "rows", "only labels that are 0 or 1"),
        ("shop", "rows", "label"),
    ],
)
def test_only_labels_of_two_values_are_split(house: Split, party: str, dataset: str, wanted: str) -> None:
    out = house.root / "a.parquet", house.root / "b.parquet"
    with pytest.raises(ConfigError, match=wanted):
        command.split_labels(load_party(house.root / f"{party}.toml"), house.root, dataset, out)


def test_a_server_refuses_shares_that_were_rounded(house: Split) -> None:
    """Floats round them, and so does a spreadsheet."""
    table = pq.read_table(house.root / "east.parquet")
    place = table.column_names.index("share")
    rounded = pa.array([float(share) for share in table["share"].to_pylist()])
    pq.write_table(table.set_column(place, "share", rounded), house.root / "east.parquet")
    with pytest.raises(DataError, match="not whole numbers"):
        house.publish("east")


@pytest.mark.parametrize("share", [-1, P, None])
def test_a_server_refuses_what_is_no_share(house: Split, share: int | None) -> None:
    table = pq.read_table(house.root / "east.parquet")
    shares = [*table["share"].to_pylist()[:-1], share]
    broken = table.set_column(table.column_names.index("share"), "share", pa.array(shares))
    pq.write_table(broken, house.root / "east.parquet")
    with pytest.raises(DataError, match="share"):
        house.publish("east")


@pytest.mark.parametrize("line", ['label_kind = "share"', 'split = "split_id"'])
def test_a_dataset_of_shares_is_described_wholly(house: Split, line: str) -> None:
    path = house.root / "east.toml"
    path.write_text(path.read_text().replace(line + "\n", ""))
    with pytest.raises(ConfigError, match=r"split (does nothing without|is missing)"):
        load_party(path)


def test_shares_are_for_measurement_servers(house: Split) -> None:
    path = house.root / "shop.toml"
    path.write_text(path.read_text() + 'label = "share"\nlabel_kind = "share"\nsplit = "split_id"\n')
    with pytest.raises(ConfigError, match="only for measurement servers"):
        load_party(path)
