"""`blindfit simulate` as a person types it: all systems on one table, kept run by run."""

from __future__ import annotations

import csv
import json
import signal
import time
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from blindfit.algorithms.errors import TransportError
from blindfit.coordinator.simulate import command, kept, runs
from blindfit.coordinator.simulate.asked import Asked
from tests.command import Done, Piped, blindfit
from tests.simulate.patients import write_patients

SYSTEMS = ("taylor", "falcon", "walr", "label-dp", "dp-lr")
TABLE = ("simulate", "patients.csv", "--label", "ill", "--out", "out")
QUICK = ("--systems", "dp-lr", "--epsilon", "0.5,2")


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A folder with a table and the simulation of all systems on it, and the command's output."""
    folder = tmp_path_factory.mktemp("study")
    write_patients(folder)
    return folder, blindfit(folder, *TABLE, "--set", "taylor.epochs=3", "--set", "falcon.epochs=3", pictures=True)


@pytest.fixture
def no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise AssertionError("a run that is kept was run again")

    monkeypatch.setattr(runs, "run_here", run)


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out/simulation.json").read_text())
    return found


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_system_has_its_figures(studied: tuple[Path, Done]) -> None:
    folder, done = studied
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["system"]: row for row in document(folder)["rows"]}
    assert tuple(rows) == SYSTEMS
    for system, row in rows.items():
        assert 0.5 < row["quality"]["auc"]["mean"] <= 1, system
        assert row["epsilon"] == (None if system in ("taylor", "falcon") else 1.0)
        assert row["seconds"]["mean"] > 0
        assert row["forecast_s"] > row["seconds"]["mean"] / 2
        assert all(mib > 0 for mib in row["peak_memory_mib"].values())
        assert (row["bytes_sent"] > 0) == (row["messages_sent"] > 0) == (system != "dp-lr")
        assert row["protects"]
    assert rows["taylor"]["bits"]["labels"] > 0
    assert rows["label-dp"]["bits"] == {"labels": 0.0, "scores": 0.0, "columns": 0.0}
    assert rows["walr"]["bits"]["columns"] > 0
    assert {len(rows[system]["peak_memory_mib"]) for system in ("taylor", "falcon")} == {4}


def test_the_page_the_sheet_and_the_terminal_show_all_of_them(studied: tuple[Path, Done]) -> None:
    folder, done = studied
    page = (folder / "out/simulation.html").read_text()
    with (folder / "out/simulation.csv").open() as sheet:
        lines = list(csv.DictReader(sheet))
    assert [line["system"] for line in lines] == ["joined, no privacy", "active party only", "constant", *SYSTEMS]
    for system in SYSTEMS:
        assert system in page
        assert system in done.stdout
    assert page.count("<svg") == 3
    for sentence in document(folder)["recommendation"]:
        assert sentence in " ".join(done.stdout.split())
    assert "nothing may be released from it" in page


def test_what_is_large_is_removed(studied: tuple[Path, Done]) -> None:
    folder, _ = studied
    assert names_in(folder / "out") == ["asked.json", "runs", "simulation.csv", "simulation.html", "simulation.json"]
    assert all(path.suffix == ".json" for path in (folder / "out/runs").iterdir())
    assert names_in(folder) == ["out", "patients.csv"]


@pytest.mark.usefixtures("no_run")
def test_what_is_finished_is_not_run_again(studied: tuple[Path, Done]) -> None:
    folder, before = studied
    again = blindfit(folder, *TABLE, "--set", "taylor.epochs=3", "--set", "falcon.epochs=3")
    assert (again.returncode, again.stdout) == (0, before.stdout)


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--overlap", "0.8"), "another --overlap"),
        (("--seed", "3"), "another --seed"),
        (("--parties", "2"), "another --parties or --party"),
        (("--set", "dp-lr.iterations=5"), "another --set"),
    ],
)
def test_a_folder_of_another_simulation_is_refused(
    studied: tuple[Path, Done], words: tuple[str, ...], what: str
) -> None:
    folder, _ = studied
    options = {} if "--set" in words else {"--set": "taylor.epochs=3"}
    more = [word for option in options.items() for word in option]
    sets = [] if "--set" in words else ["--set", "falcon.epochs=3"]
    done = blindfit(folder, *TABLE, *more, *sets, *words)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: --out out has a simulation of {what}\nhint: name another folder with --out, or remove this one\n"
    )


@pytest.mark.usefixtures("no_run")
def test_a_folder_of_another_table_is_refused(tmp_path: Path) -> None:
    write_patients(tmp_path)
    (tmp_path / "out/runs").mkdir(parents=True)
    (tmp_path / "out/runs/taylor-1.json").write_text("{}")
    (tmp_path / "out/asked.json").write_text('{"table": "of somebody else"}')
    done = blindfit(tmp_path, *TABLE, *QUICK)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: --out out has a simulation of another table")
    (tmp_path / "out/asked.json").unlink()
    done = blindfit(tmp_path, *TABLE, *QUICK)
    assert done.stderr.splitlines()[0] == "error: --out out holds runs, and no simulation"


@pytest.mark.usefixtures("no_run")
def test_a_folder_of_another_program_stays_as_it_is(tmp_path: Path) -> None:
    write_patients(tmp_path)
    files = {"asked.json": '{"who": "somebody"}', "runs/repeat-notes.txt": "mine", "work/mine.txt": "mine"}
    for name, text in files.items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(text)
    done = blindfit(tmp_path, *TABLE, *QUICK)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "error: out/asked.json does not come from a simulation",
    )
    assert {name: (tmp_path / "out" / name).read_text() for name in files} == files


def test_only_what_a_simulation_made_is_removed(tmp_path: Path) -> None:
    runs_of = [kept.Run(system, epsilon, 11) for system in SYSTEMS for epsilon in (None, 0.5, 1e-05, 1e2)]
    ours, theirs = [*(run.name for run in runs_of), "cut-1"], ["mine.txt", "cut-of-mine", "taylor", "walr-notes"]
    (tmp_path / "runs").mkdir()
    for name in (*ours, *theirs):
        (tmp_path / "work" / name).mkdir(parents=True)
    for name in ("repeat-1.json", "repeat-notes.txt"):
        (tmp_path / "runs" / name).write_text("{}")
    (tmp_path / "asked.json").write_text('{"table": "another"}')
    kept.Kept(tmp_path, {"table": "this one"}).open()
    assert names_in(tmp_path / "work") == sorted(theirs)
    assert names_in(tmp_path / "runs") == ["repeat-notes.txt"]


def test_a_run_that_fails_is_a_row_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_patients(tmp_path)
    run_here = runs.run_here

    def fail_at_2(job: Any, *arguments: Any, **more: Any) -> Any:
        if job.parameters.privacy.epsilon == 2:
            raise TransportError("joined was lost", peer="joined", step="run")
        return run_here(job, *arguments, **more)

    monkeypatch.setattr(runs, "run_here", fail_at_2)
    done = blindfit(tmp_path, *TABLE, *QUICK, "--jobs", "2")
    assert done.returncode == 1
    assert "dp-lr, epsilon 2: joined was lost" in done.stdout
    assert "dp-lr, epsilon 2" in (tmp_path / "out/simulation.html").read_text()
    kept = (tmp_path / "out/runs/dp-lr-epsilon-0.5-1.json").stat().st_mtime_ns
    monkeypatch.setattr(runs, "run_here", run_here)
    again = blindfit(tmp_path, *TABLE, *QUICK, "--jobs", "1")
    assert again.returncode == 0, again.stderr
    assert "was lost" not in again.stdout
    assert any("Up to 2 runs went at once" in sentence for sentence in document(tmp_path)["about"])
    assert (tmp_path / "out/runs/dp-lr-epsilon-0.5-1.json").stat().st_mtime_ns == kept


def test_a_system_that_fits_only_one_repeat_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_patients(tmp_path)
    make = command.cut

    def cut_with_one_job(table: Any, asked: Asked, folder: Path, repeat: int) -> Any:
        made = make(table, asked, folder, repeat)
        return made if repeat == 0 else replace(made, jobs={}, not_for={"dp-lr": "not for this table: too small"})

    monkeypatch.setattr(command, "cut", cut_with_one_job)
    for _ in range(2):
        done = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--repeat", "2")
        assert (done.returncode, done.stderr) == (1, "")
        said = " ".join(done.stdout.split())
        assert "1 of 2 repeats ended without a result: not for this table: too small" in said


def test_the_network_is_named(tmp_path: Path) -> None:
    write_patients(tmp_path)
    done = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--network", "1ms 1gbit")
    assert done.returncode == 0, done.stderr
    assert "The network was simulated: " in " ".join(done.stdout.split())
    assert any("1 Gbit/s" in sentence for sentence in document(tmp_path)["about"])


def test_a_limit_of_the_account_ends_a_run_or_warns(tmp_path: Path) -> None:
    write_patients(tmp_path, 400)
    words = ("--systems", "walr")
    refused = blindfit(tmp_path, *TABLE, *words)
    assert refused.returncode == 1
    assert "more bits" in refused.stdout
    warned = blindfit(tmp_path, *TABLE, *words, "--warn-only")
    assert (warned.returncode, warned.stderr) == (0, "")
    assert "more bits" in " ".join(warned.stdout.split())
    assert "more bits" in (tmp_path / "out/simulation.html").read_text()
    assert document(tmp_path)["rows"][0]["quality"]["auc"]["mean"] > 0.5
    again = blindfit(tmp_path, *TABLE, *words)
    assert (again.returncode, "more bits" in again.stdout) == (1, True)


def test_a_full_disk_ends_it_with_one_line_and_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_patients(tmp_path)
    run_here, usage = runs.run_here, SimpleNamespace(free=4096)
    begun = []

    def fail_the_second(*arguments: Any, **more: Any) -> Any:
        begun.append(arguments)
        if len(begun) == 2:
            monkeypatch.setattr(runs.shutil, "disk_usage", lambda _: usage)
            raise OSError(28, "No space left on device")
        return run_here(*arguments, **more)

    monkeypatch.setattr(runs, "run_here", fail_the_second)
    done = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--epsilon", "0.5,1,2", "--jobs", "1")
    assert done.returncode == 1
    assert done.stderr == (
        "error: --out out: the disk is full, 4 KiB are left; what is finished stays there\n"
        "hint: free some space, then give the same command again: it goes on with the missing runs\n"
    )
    assert len(begun) == 2
    assert names_in(tmp_path / "out/runs") == ["dp-lr-epsilon-0.5-1.json", "repeat-1.json"]
    assert not (tmp_path / "out/work").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_goes_on_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    write_patients(tmp_path)
    words = (*TABLE, "--systems", "dp-lr", "--epsilon", ",".join(str(e) for e in range(1, 9)))
    running = Piped(["python", "-m", "blindfit", *words], cwd=tmp_path)
    first = tmp_path / "out/runs/dp-lr-epsilon-1.0-1.json"
    while not first.exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    _, said = running.communicate(60)
    assert running.returncode == 130
    assert said.startswith("stopped: ")
    assert said.endswith("hint: the same command goes on with the other runs\n")
    assert not (tmp_path / "out/work").exists()
    made = first.stat().st_mtime_ns
    done = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--epsilon", "1,2", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["epsilon"] for row in json.loads(done.stdout)["rows"]] == [1.0, 2.0]
    assert first.stat().st_mtime_ns == made


BAD = [
    (("--label", "cured"), "patients.csv", "cured"),
    (("--label", "ill", "--parties", "10"), "patients.csv", "9"),
    (("--label", "constant"), "constant.csv", "constant"),
    (("--label", "ill", "--id", "twice"), "twice.csv", "twice"),
    (("--label", "ill", "--epsilon", "0"), "patients.csv", "--epsilon 0"),
    (("--label", "ill", "--epsilon", "one"), "patients.csv", "--epsilon: 'one' is not a number"),
    (("--label", "ill", "--systems", "magic"), "patients.csv", "--systems: 'magic' is not a system"),
    (("--label", "ill", "--repeat", "0"), "patients.csv", "--repeat 0"),
    (("--label", "ill", "--jobs", "0"), "patients.csv", "--jobs 0: 1 to 64 runs go at once"),
    (("--label", "ill", "--set", "l2=3"), "patients.csv", "--set l2: the option does not begin with a system"),
    (("--label", "ill", "--set", "walr.l2=3", "--systems", "taylor"), "patients.csv", "--set walr.l2"),
    (
        ("--label", "ill", "--set", "taylor.magic=3", "--systems", "taylor"),
        "patients.csv",
        "the taylor job: taylor.magic",
    ),
    (
        ("--label", "ill", "--network", "far"),
        "patients.csv",
        "the taylor job: network: 'far' is not a number and a unit",
    ),
    (
        ("--label", "ill", "--systems", "walr", "--set", 'walr.network.latency="40ms"'),
        "patients.csv",
        "--set walr.network.latency: all systems are compared on one network",
    ),
    (("--label", "ill", "--set", "walr.network=40ms"), "patients.csv", "--set walr.network: all systems"),
    (
        ("--label", "ill", "--systems", "taylor", "--set", "taylor.privacy.epsilon=1"),
        "patients.csv",
        "--set taylor.privacy: a simulation gives taylor no budget",
    ),
    (
        ("--label", "ill", "--systems", "dp-lr", "--epsilon", "0.5,1", "--set", "dp-lr.privacy.epsilon=0.7"),
        "patients.csv",
        "--set dp-lr.privacy.epsilon: runs would have another epsilon than the table shows",
    ),
    (("--label", "ill", "--parties", "2", "--party", "a: x0"), "patients.csv", "--parties and --party both"),
    (("--label", "ill", "--label-range", "3"), "patients.csv", "--label-range: '3' is not LOW:HIGH"),
    (("--label", "ill", "--bounds", "x0"), "patients.csv", "--bounds 'x0' is not NAME:LOW:HIGH"),
    (
        ("--label", "ill", "--bounds", "x0:0:1", "--bounds", "x0:0:2"),
        "patients.csv",
        "--bounds: the column x0 is named",
    ),
    (("--label", "ill"), "nowhere.csv", "nowhere.csv"),
]


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize(("words", "table", "what"), BAD)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], table: str, what: str) -> None:
    text = write_patients(tmp_path, 400).read_text().splitlines()
    (tmp_path / "constant.csv").write_text("\n".join([f"{text[0]},constant", *(f"{row},1" for row in text[1:])]))
    (tmp_path / "twice.csv").write_text("\n".join([f"{text[0]},twice", *(f"{row},a" for row in text[1:])]))
    done = blindfit(tmp_path, "simulate", table, *words, "--out", "out")
    assert done.returncode in (1, 2)
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert what in first
    assert all(line.startswith("hint: ") for line in rest)
    assert len(rest) <= 1
    assert not (tmp_path / "out/work").exists()


def test_a_command_that_is_mended_takes_the_same_folder(tmp_path: Path) -> None:
    write_patients(tmp_path)
    wrong = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--set", "dp-lr.magic=1")
    assert wrong.returncode == 2
    done = blindfit(tmp_path, *TABLE, "--systems", "dp-lr", "--set", "dp-lr.iterations=3")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_help_ends_with_three_examples(tmp_path: Path) -> None:
    done = blindfit(tmp_path, "simulate", "--help")
    examples = " ".join(done.stdout.split()).rpartition("Examples:")[2]
    assert examples.count("blindfit simulate ") == 3


def kept_as(**more: Any) -> dict[str, Any]:
    """Return the settings that decide figures, as a folder keeps them and as a second command compares them."""
    wish = command.Wish(Asked("y", parties=more.pop("parties", 3)), **more)
    found: dict[str, Any] = json.loads(json.dumps(wish.deciding(pa.table({"y": [0, 1]}))))
    return found


def test_another_active_party_is_another_simulation() -> None:
    one, other = {"shop": ("a",), "bank": ("b",)}, {"bank": ("b",), "shop": ("a",)}
    assert kept_as(parties=one) == kept_as(parties=dict(one)) != kept_as(parties=other)


def test_options_in_another_order_are_another_simulation() -> None:
    """If two options set the same value, the last one counts."""
    words = ("taylor.epochs=1", "taylor.epochs=5")
    assert kept_as(overrides=words) != kept_as(overrides=words[::-1])


def test_options_are_typed_in_the_document(studied: tuple[Path, Done]) -> None:
    folder, _ = studied
    sets = ["taylor.epochs=3", "falcon.epochs=3"]
    assert document(folder)["asked"] == {
        "label": "ill",
        "row_id": None,
        "parties": 3,
        "positive": None,
        "label_range": None,
        "bounds": {},
        "overlap": 1.0,
        "duplicates": 0.0,
        "missing": 0.0,
        "shuffle": True,
        "test_fraction": 0.25,
        "seed": 0,
        "systems": list(SYSTEMS),
        "epsilons": [1.0],
        "repeats": 1,
        "network": None,
        "set": sets,
        "warn_only": False,
    }
    page = (folder / "out/simulation.html").read_text()
    assert "<td>not set</td>" in page
    assert f"<td>{', '.join(sets)}</td>" in page


def test_a_changed_value_is_another_table() -> None:
    tables = [pa.table({"y": [0, 1, last]}) for last in (0, 0, 1)]
    first, same, other = (command.Wish(Asked("y")).deciding(table)["table"] for table in tables)
    assert first == same != other


def test_only_what_adds_runs_may_differ() -> None:
    """An option that is added later decides figures, until somebody declares that it does not."""
    decides = command.Wish(Asked("y")).deciding(pa.table({"y": [0, 1]}))
    options = {field.name for field in fields(Asked)} - {"systems", "epsilons", "repeats"}
    assert len(decides) == len(options) + len(("table", "--network", "--set", "version"))
