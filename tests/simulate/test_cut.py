"""A cut writes tables without held-out rows, and jobs that differ from those of `init` only where they must."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.jobs.check import check
from blindfit.coordinator.simulate.asked import ALL, Asked
from blindfit.coordinator.simulate.command import notes
from blindfit.coordinator.simulate.cut import Cut, cut
from blindfit.coordinator.simulate.table import read_table
from tests.command import blindfit
from tests.quick_keys import quick_keys
from tests.simulate.frames import births, people, titanic, tumours

PARTIES = {"shop": ("age", "region"), "bank": ("income", "since", "smokes"), "web": ("spent", "visits", "amount")}
COMMON = {"label": "churned", "row_id": "client", "parties": PARTIES}


def cut_people(folder: Path, repeat: int = 0, frame: pd.DataFrame | None = None, **asked: Any) -> Cut:
    wanted = Asked(**{**COMMON, **asked})
    return cut(read_table(people() if frame is None else frame, wanted), wanted, folder, repeat)


def rows_of(path: Path) -> pd.DataFrame:
    return pq.read_table(path).to_pandas()


def test_no_table_has_a_held_out_row_and_each_has_its_own_columns(tmp_path: Path) -> None:
    found, source = cut_people(tmp_path / "cut", overlap=0.8, missing=0.1), people().set_index("client")
    held_out = set(found.held_out.ids.to_pylist())
    assert len(held_out) == 175
    emptied = 0
    for path in (tmp_path / "cut").rglob("*.parquet"):
        table = rows_of(path)
        assert table.client.is_unique
        assert not held_out & set(table.client)
        has_label = "churned" in table
        is_active = (path.parent.name, path.stem) == ("columns-by-party", "shop")
        assert has_label == (path.stem in ("label-server", "single-party") or is_active)
        if has_label:
            assert np.array_equal(table.churned == 1, source.churned[table.client] == "yes")
        for name in set(table) - {"client", "churned"} if path.parent.name != "columns-together-without-gaps" else ():
            there, expected = table[name].notna().to_numpy(), source[name][table.client].to_numpy()
            assert np.array_equal(table[name].to_numpy()[there].astype(object), expected[there].astype(object))
            emptied += int(path.parent.name == "columns-together" and name != "age") * int((~there).sum())
    joined = rows_of(tmp_path / "cut/columns-together/single-party.parquet")
    assert found.common == len(joined)
    assert abs(emptied / 2 / (7 * len(joined)) - 0.1) < 0.02  # share of two tables with all columns
    assert not rows_of(tmp_path / "cut/columns-together-without-gaps/single-party.parquet").isna().any(axis=None)
    assert list(found.held_out.rows.column_names) == [name for columns in PARTIES.values() for name in columns]
    assert found.held_out.rows.column("income").null_count == 0
    for party, columns in PARTIES.items():
        table = rows_of(tmp_path / f"cut/columns-by-party/{party}.parquet")
        assert set(table) == {"client", *columns, *(["churned"] if party == "shop" else [])}
        assert abs(found.common / len(table) - 0.8) < 0.01


def test_all_of_a_cut_follows_from_seed_and_repeat(tmp_path: Path) -> None:
    def content(name: str, repeat: int, **asked: Any) -> dict[str, bytes]:
        found = cut_people(tmp_path / name / "cut", repeat, overlap=0.9, missing=0.05, parties=3, **asked)
        files = {
            str(path.relative_to(found.folder)): path.read_bytes()
            for path in found.folder.rglob("*")
            if path.is_file() and path.name != "job.toml"  # its first lines name the folder
        }
        return files | {"held out": "".join(found.held_out.ids.to_pylist()).encode()}

    first, again, second = content("a", 0), content("b", 0), content("c", 1)
    assert first == again
    assert first["held out"] != second["held out"]
    assert [name for name in first if name.endswith("toml")] == [name for name in second if name.endswith("toml")]
    tables = [name for name in first if name.startswith("columns-by-party/")]
    read = {name: set(rows_of(tmp_path / f"a/cut/{name}")) for name in tables}
    assert read == {name: set(rows_of(tmp_path / f"c/cut/{name}")) for name in tables}


def test_party_files_are_those_of_init(tmp_path: Path) -> None:
    """A taylor job in the same tables differs only in scores, the test split, and where parties listen."""
    found = cut_people(tmp_path / "cut")
    tables = [f"cut/columns-by-party/{party}.parquet" for party in PARTIES]
    made = blindfit(tmp_path, "init", "--system", "taylor", *tables, "--label", "churned", "--out", "cut/init")
    assert made.returncode == 0, made.stderr

    def content(folder: str, name: str) -> dict[str, Any]:
        return tomllib.loads((tmp_path / "cut" / folder / f"{name}.toml").read_text())

    for party in (*PARTIES, "notary"):
        ours, its = content("taylor", party), content("init", party)
        assert its.pop("listen")
        assert its["policy"].pop("systems") == ["taylor", "predict"]
        assert ours["policy"].pop("systems") == ["taylor"]
        if party in ("bank", "web"):
            assert ours["datasets"]["rows"].pop("models_per_row") == 0
        if party == "bank":  # the age of the shop has gaps, and nothing of the bank
            assert "missing" not in ours["datasets"]["rows"]
        assert ours == its
    ours, its = content("taylor", "job"), content("init", "job")
    assert [party.pop("address") for party in its["parties"].values()]
    assert (ours.pop("split"), its.pop("split")) == ({"test_fraction": 0}, {"test_fraction": 0.2})
    assert ours == its
    assert found.jobs["taylor"] == tmp_path / "cut/taylor/job.toml"


def test_a_budget_pays_for_every_epsilon(tmp_path: Path) -> None:
    found = cut_people(tmp_path / "cut", epsilons=(2.0, 9.5))
    assert found.private == {"walr", "label-dp", "dp-lr"}
    for system, server in {"walr": "label-server", "label-dp": "label-server", "dp-lr": "single-party"}.items():
        party = tomllib.loads((tmp_path / f"cut/{system}/{server}.toml").read_text())
        assert party["populations"]["people"]["epsilon"] == 9.5
        for path in (tmp_path / "cut" / system).glob("*.toml"):
            assert path.name == "job.toml" or tomllib.loads(path.read_text())["policy"]["max_epsilon"] == 9.5
        assert load_job(found.jobs[system]).parameters.required_privacy.epsilon == 2.0


def test_all_parties_of_walr_hold_columns_and_a_server_the_label(tmp_path: Path) -> None:
    cut_people(tmp_path / "cut", overlap=0.9)
    job = tomllib.loads((tmp_path / "cut/walr/job.toml").read_text())
    assert {name: party["role"] for name, party in job["parties"].items()} == {
        "shop": "active",
        "bank": "passive",
        "web": "passive",
        "label-server": "measurement",
    }
    server = tomllib.loads((tmp_path / "cut/walr/label-server.toml").read_text())["datasets"]["rows"]
    assert (server["active_parties"], server["passive_parties"]) == (["shop"], ["bank", "web"])
    known = set(rows_of(tmp_path / "cut/columns-by-party-without-label/label-server.parquet").client)
    assert set(rows_of(tmp_path / "cut/columns-by-party-without-label/shop.parquet").client) <= known


@pytest.mark.parametrize("label", ["amount", "churned"])
def test_a_system_that_does_not_fit_the_label_is_named_and_the_others_are_cut(tmp_path: Path, label: str) -> None:
    found = cut_people(tmp_path / "cut", label=label, parties=3)
    reason = "not for this label: {} fits labels 0 and 1, and amount is a number"
    wrong = ("walr", "dp-lr") if label == "amount" else ()
    assert found.not_for == {system: reason.format(system) for system in wrong}
    assert set(found.jobs) == set(ALL) - set(wrong)
    assert found.is_linear == (label == "amount")


def test_a_system_that_cannot_have_so_many_parties_is_named(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    wide = people().assign(**{f"x{i}": draw.normal(size=700) for i in range(13)})
    found = cut_people(tmp_path / "a", frame=wide, parties=18)
    says = "not for this table: {} takes at most {} parties with columns, not 18"
    most = {"taylor": 17, "falcon": 8, "walr": 17}
    assert found.not_for == {system: says.format(system, most[system]) for system in ("taylor", "falcon", "walr")}
    assert set(found.jobs) == {"label-dp", "dp-lr"}


def test_what_one_system_cannot_take_stops_no_other(tmp_path: Path) -> None:
    found = cut_people(tmp_path / "cut", epsilons=(40.0,))
    assert set(found.jobs) == {"taylor", "falcon", "walr", "dp-lr"}
    assert f"{tmp_path}/cut/label-dp/job.toml: privacy.epsilon of one label" in found.not_for["label-dp"]
    assert {path.name for path in (tmp_path / "cut").iterdir() if not path.name.startswith("columns")} == set(
        found.jobs
    )


def test_what_is_public_only_here_is_said(tmp_path: Path) -> None:
    own = cut_people(tmp_path / "a", missing=0.1).remarks
    assert "bounds of features and levels of texts are those of the table" in own["dp-lr"]
    assert "a missing value is the middle of the bounds" in own["dp-lr"]
    assert "the range of the labels is that of the table" in own["label-dp"]
    assert "learnt as values from 0 to 1" in own["label-dp"]
    bounds = {"*": (-100.0, 100.0), "since": (18000.0, 21000.0)}
    given = cut_people(tmp_path / "b", bounds=bounds, label_range=(0.0, 1.0)).remarks
    assert "levels of texts are those of the table" in given["dp-lr"]
    assert "bounds of features" not in given["dp-lr"]
    assert "range" not in given["label-dp"]
    job = tomllib.loads((tmp_path / "b/dp-lr/job.toml").read_text())
    assert "age:-100.0:100.0" in job["dp_lr"]["feature_bounds"]
    assert "since:18000.0:21000.0" in job["dp_lr"]["feature_bounds"]


def test_a_text_that_stands_for_no_value_may_be_a_level_already(tmp_path: Path) -> None:
    frame = people().replace({"region": {"west": "(no value)"}})
    frame.loc[::9, "region"] = None
    found = cut_people(tmp_path / "cut", frame=frame)
    assert "dp-lr" in found.jobs
    levels = tomllib.loads((tmp_path / "cut/dp-lr/single-party.toml").read_text())["datasets"]["rows"]["categories"]
    assert levels == {"region": ["(no value)", "north", "south"]}


def test_an_id_that_stands_twice_is_left_out_by_its_party(tmp_path: Path) -> None:
    found = cut_people(tmp_path / "cut", duplicates=0.1)
    assert found.twice == dict.fromkeys(PARTIES, 52)
    assert found.rows == dict.fromkeys(PARTIES, 473)
    assert found.common < 473


def test_columns_that_nobody_is_given_are_named(tmp_path: Path) -> None:
    found = cut_people(tmp_path / "cut", parties={"shop": ("age",), "bank": ("income",)})
    assert found.left_out["spent"] == "not given to any party"
    assert "same value" in found.left_out["planet"]


@pytest.mark.parametrize(
    ("frame", "asked", "systems"),
    [
        (titanic, {"label": "survived", "parties": 2}, ALL),
        (births, {"label": "mbsmoke", "positive": "smoker", "overlap": 0.8, "duplicates": 0.02}, ALL),
        (tumours, {"label": "count", "missing": 0.02, "parties": 2}, ("taylor", "falcon", "label-dp")),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_jobs_of_public_tables_pass_the_check(
    tmp_path: Path, frame: Any, asked: dict[str, Any], systems: tuple[str, ...]
) -> None:
    wanted = Asked(**asked)
    found = cut(read_table(frame(), wanted), wanted, tmp_path / "cut", 0)
    assert set(found.jobs) == set(systems)
    with quick_keys():
        findings = {system: check(load_job(job)) for system, job in found.jobs.items()}
    refused = {system: [one.text for one in each if one.refuses] for system, each in findings.items()}
    assert refused == {system: [] for system in systems}


def test_held_out_rows_that_a_party_trains_on_are_counted(tmp_path: Path) -> None:
    """Copies of a row have other ids, so one may be held out and another one not."""
    frame = people()
    twice = pd.concat([frame, frame.assign(client=frame.client + "b")], ignore_index=True)
    for name, table in {"once": frame, "twice": twice}.items():
        found = cut_people(tmp_path / name, frame=table)
        columns = [column for own in found.columns.values() for column in own]
        rows = table.set_index("client")[[*columns, "churned"]].map(repr).agg("|".join, axis=1)
        held_out = rows.loc[found.held_out.ids.to_pylist()]
        assert found.known == held_out.isin(rows.drop(held_out.index)).sum()
        assert (found.known > 200) is (name == "twice")


def test_the_notes_warn_of_figures_that_are_too_good(tmp_path: Path) -> None:
    frame = people().assign(region=lambda table: table.churned.map({"yes": "gone", "no": "here"}))
    twice = pd.concat([frame, frame.assign(client=frame.client + "b")], ignore_index=True)
    said = " ".join(notes(cut_people(tmp_path / "twice", frame=twice)))
    assert "Label 1 is 'yes' in the column churned" in said
    assert "The column region is the label in another form" in said
    assert "held-out rows are equal to a training row in every column" in said
    plain = " ".join(notes(cut_people(tmp_path / "plain")))
    assert "in another form" not in plain
    assert "equal to a training row" not in plain


def test_the_notes_warn_of_values_outside_what_is_said_to_be_public(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"label_range": (0.5, 1.0), "bounds": {"age": (-1e6, 40.0), "income": (-1e9, 1e9)}}
    made = cut_people(tmp_path / "narrow", **asked)
    source = people()
    assert made.clipped["churned"] == pytest.approx((source.churned == "no").mean(), abs=0.02)
    assert made.clipped["age"] == pytest.approx((source.age > 40).mean(), abs=0.02)
    assert set(made.clipped) == {"churned", "age"}
    said = " ".join(notes(made))
    assert "of the values of churned lie outside --label-range: label-dp clips them" in said
    assert "of the values of age lie outside --bounds: dp-lr clips them" in said
    assert "outside" not in " ".join(notes(cut_people(tmp_path / "plain")))
