"""Public facts about the columns of a private fit: `blindfit init` takes them from a person or from public rows."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import Done, blindfit

ROWS = 600


def table(rows: int, seed: int, *, gaps: bool = False, levels: str = "abc") -> str:
    draw = np.random.default_rng(seed)
    age, dose = draw.integers(18, 90, rows), draw.normal(size=rows).round(3)
    ill = age / 20 + dose + draw.logistic(size=rows) > 2.7
    lines = (
        f"p{seed}-{i},{age[i]},{dose[i]},{levels[i % len(levels)]},20{10 + i % 9}-03-04,"
        f"{'' if gaps and i == 5 else i % 5},"
        f"{'yes' if ill[i] else 'no'}"
        for i in range(rows)
    )
    return "\n".join(["id,age,dose,ward,since,visits,ill", *lines]) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hospital.csv").write_text(table(ROWS, 1))
    return tmp_path


def init(folder: Path, *words: str) -> Done:
    return blindfit(folder, "init", "--system", "dp-lr", "hospital.csv", "--label", "ill", *words)


def files(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    job, party = (tomllib.loads((folder / f"joint/{name}.toml").read_text()) for name in ("job", "hospital"))
    return job, party


def runs(folder: Path) -> str:
    checked = blindfit(folder, "check", "joint/job.toml")
    assert checked.returncode == 0, checked.stdout
    done = blindfit(folder, "run", "joint/job.toml", "--out", "joint/run")
    assert done.returncode == 0, done.stderr
    return " ".join(checked.stdout.split())


def test_bounds_leave_out_texts_whose_levels_only_the_rows_know(folder: Path) -> None:
    made = init(folder, "--bounds", "age:0:110", "--bounds", "since:10000:25000", "--bounds", "*:-5:5")
    assert made.returncode == 0, made.stderr
    job, party = files(folder)
    assert job["dp_lr"]["feature_bounds"] == ["age:0:110", "since:10000:25000", "*:-5:5"]
    assert party["datasets"]["rows"]["except"] == ["ward"]
    assert "hospital: the choice of columns comes from the rows" in made.stdout
    assert "its levels are known only from the private rows" in (folder / "joint/hospital.toml").read_text()
    assert "mapped by declared bounds" in runs(folder)


def test_public_rows_give_levels_and_scale(folder: Path) -> None:
    (folder / "archive.csv").write_text(table(300, 2, levels="ab"))
    made = init(folder, "--public", "archive.csv")
    assert made.returncode == 0, made.stderr
    job, party = files(folder)
    assert job["dp_lr"] == {"public_dataset": "public"}
    assert party["datasets"]["rows"]["categories"] == party["datasets"]["public"]["categories"] == {"ward": ["a", "b"]}
    assert party["datasets"]["public"]["public"] is True
    assert "standardised by public rows" in runs(folder)


def test_public_rows_may_be_written_in_another_form(folder: Path) -> None:
    (folder / "archive.csv").write_text(table(300, 2).replace(",", ";").replace(".", ","))
    made = init(folder, "--public", "archive.csv")
    assert made.returncode == 0, made.stderr
    public = files(folder)[1]["datasets"]["public"]
    assert (public["separator"], public["decimal"], public["categories"]) == (";", ",", {"ward": ["a", "b", "c"]})
    runs(folder)


def test_bounds_and_public_rows_go_together(folder: Path) -> None:
    (folder / "archive.csv").write_text(table(300, 2))
    made = init(folder, "--public", "archive.csv", "--bounds", "*:-5:30000")
    assert made.returncode == 0, made.stderr
    assert files(folder)[0]["dp_lr"]["feature_bounds"][1:] == [f"ward={level}:0:1" for level in "abc"]
    runs(folder)


@pytest.mark.parametrize("whose", ["hospital", "archive"])
def test_a_column_with_a_gap_is_left_out_of_both(folder: Path, whose: str) -> None:
    (folder / "archive.csv").write_text(table(300, 2))
    (folder / f"{whose}.csv").write_text(table(ROWS, 3, gaps=True))
    made = init(folder, "--public", "archive.csv")
    assert made.returncode == 0, made.stderr
    datasets = files(folder)[1]["datasets"]
    assert datasets["rows"]["except"] == datasets["public"]["except"] == ["visits"]
    assert "missing" not in datasets["rows"]
    runs(folder)


def test_a_column_that_only_one_of_the_tables_has_is_left_out(folder: Path) -> None:
    header, *lines = table(300, 2).splitlines()
    without = [",".join(word for at, word in enumerate(line.split(",")) if at != 1) for line in (header, *lines)]
    (folder / "archive.csv").write_text(
        "\n".join(f"{line},{i % 3 if i else 'more'}" for i, line in enumerate(without)) + "\n"
    )
    assert init(folder, "--public", "archive.csv").returncode == 0
    datasets = files(folder)[1]["datasets"]
    assert datasets["rows"]["except"] == ["age"]
    assert datasets["public"]["except"] == ["more"]
    runs(folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which bounds do the columns have"),
        (("--bounds", "age:0:110"), "dose has none"),
        (("--bounds", "age:110:0"), "must have finite bounds"),
        (
            ("--bounds", "age:0:110", "--bounds", "dose:-5:5"),
            "since has none, and bounds of a date are days since 1970",
        ),
        (("--bounds", "age:0:110", "--bounds", "dose:-5:5"), "--bounds since:-14610:21915"),
        (("--bounds", "ward:0:1", "--bounds", "*:0:1"), "--bounds ward: the job leaves this column out"),
        (("--bounds", "ward:0:1", "--bounds", "*:0:1"), "its levels are known only from the private rows"),
        (("--bounds", "wage:0:1", "--bounds", "*:0:1"), "wage: it is not a column of numbers or dates"),
        (("--public", "hospital.csv"), "names the private table"),
        (("--public", "none.csv"), "none.csv"),
        (("--public", "other.csv"), "there is no column ill"),
        (("--public", "few.csv"), "no label is"),
    ],
)
def test_what_is_not_public_is_asked_for(folder: Path, words: tuple[str, ...], said: str) -> None:
    (folder / "other.csv").write_text(table(300, 2).replace("ill", "sick", 1))
    (folder / "few.csv").write_text(table(300, 2).replace("yes", "ja").replace("no", "nein"))
    refused = init(folder, *words)
    assert refused.returncode in (1, 2)
    assert said in refused.stderr
    assert not (folder / "joint").exists()


@pytest.mark.parametrize("column", ["visits", "paid"])
def test_labels_released_with_noise_may_be_0_and_1(tmp_path: Path, column: str) -> None:
    rows = range(300)
    (tmp_path / "shop.csv").write_text("id,x\n" + "".join(f"p{i},{i % 13}\n" for i in rows))
    (tmp_path / "clinic.csv").write_text("id,visits,paid\n" + "".join(f"p{i},{i % 9},{i % 2}\n" for i in rows))
    words = ("init", "--system", "label-dp", "shop.csv", "clinic.csv", "--label", column, "--label-range", "0:8")
    made = blindfit(tmp_path, *words)
    assert made.returncode == 0, made.stderr
    party = tomllib.loads((tmp_path / "joint/clinic.toml").read_text())
    assert party["datasets"]["rows"]["label_kind"] == "number"
    assert party["datasets"]["rows"]["label_range"] == [0, 8]
    done = blindfit(tmp_path, "run", "joint/job.toml", "--out", "joint/run")
    assert done.returncode == 0, done.stderr
