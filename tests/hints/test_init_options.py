"""The hints of `blindfit init` about options that a person must answer, followed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.command import Done, blindfit
from tests.hints.following import refused_command, says
from tests.init.tables import WORDS, write_tables


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    write_tables(tmp_path, rows=300)
    return tmp_path


def init(folder: Path, system: str, *words: str) -> Done:
    return blindfit(folder, "init", "--system", system, *words)


def without(words: tuple[str, ...], option: str) -> tuple[str, ...]:
    at = words.index(option)
    return (*words[:at], *words[at + 2 :])


def test_the_range_of_labels(tables: Path) -> None:
    words = without(WORDS["label-dp"], "--label-range")
    told = refused_command("give it: --label-range LOW:HIGH", init(tables, "label-dp", *words))
    assert "everybody learns it" in told.text
    told = refused_command("write it as in --label-range 0:8", init(tables, "label-dp", *words, "--label-range", "8:0"))
    assert init(tables, "label-dp", *words, *told.text.split()[-2:]).returncode == 0


def test_bounds_of_features(tables: Path) -> None:
    words = without(WORDS["dp-lr"], "--bounds")
    hint = says(
        "give bounds, such as --bounds {}, or bounds of all other columns, such as --bounds '*:-1:1'; or name a table "
        "of "
        "public "
        "rows: --public TABLE"
    )
    told = refused_command(hint, init(tables, "dp-lr", *words))
    assert "x0 has none" in told.text
    one = ("--bounds", shlex.split(told.parts[0])[0])
    assert "x1 has none" in refused_command(hint, init(tables, "dp-lr", *words, *one)).text
    assert init(tables, "dp-lr", *words, *one, "--bounds", "*:-1:1").returncode == 0
    (tables / "old.csv").write_text((tables / "my bank.csv").read_text().replace("\nc", "\nold"))
    assert init(tables, "dp-lr", *words, "--public", "old.csv", "--out", "other").returncode == 0


def test_hosts_of_parties(tables: Path) -> None:
    told = refused_command(
        "write --host NAME=HOST[:PORT]; the parties are {}",
        init(tables, "walr", *WORDS["walr"], "--host", "bank=a.org"),
    )
    assert told.parts == ("shop, clinic",)
    assert init(tables, "walr", *WORDS["walr"], "--host", "shop=a.org", "--host", "clinic=b.org:7200").returncode == 0
    assert 'address = "a.org:7101"' in (tables / "joint/job.toml").read_text()
    assert 'listen = "0.0.0.0:7200"' in (tables / "joint/clinic.toml").read_text()


def test_a_label_that_is_the_same_in_every_row(tables: Path) -> None:
    words, bank = WORDS["taylor"], tables / "my bank.csv"
    head, *rows = bank.read_text().splitlines()
    bank.write_text("\n".join([f"{head},same", *(f"{row},yes" for row in rows)]) + "\n")
    told = init(tables, "taylor", *without(words, "--label"), "--label", "same")
    refused_command("name another column, --label COLUMN, or add rows with another label", told)
    assert init(tables, "taylor", *words).returncode == 0
