"""Questions of `blindfit init` at a terminal, and the files that stay when it is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from tests.command import Done, blindfit
from tests.init.tables import write_tables


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Answers of a person at a terminal, in this order; the fixture returns the questions."""

    def answer(*answers: str) -> list[str]:
        left, heard = list(answers), list[str]()

        def prompt(question: str, **_options: Any) -> str:
            heard.append(question)
            return left.pop(0)

        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(typer, "prompt", prompt)
        return heard

    return answer


def test_everything_is_asked(tmp_path: Path, at_a_terminal: Callable[..., list[str]]) -> None:
    write_tables(tmp_path, rows=300)
    heard = at_a_terminal("vertical", "label-dp", "shop.csv 'clinic.csv'", "visit", "visits", "0:8")
    done = blindfit(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    assert [question.split("?")[0].split("; ")[-1] for question in heard] == [
        "which system computes the model",
        "which system computes the model",
        "which tables",
        "which column is to be learnt",
        "no table has a column visit: the nearest name is visits",
        "which range do all values of visits lie in, LOW:HIGH, as far as the public knows",
    ]
    assert "label_range = [0.0, 8.0]" in (tmp_path / "joint/clinic.toml").read_text()


def test_bounds_ids_and_positive_are_asked(tmp_path: Path, at_a_terminal: Callable[..., list[str]]) -> None:
    rows = "".join(f"p{i},q{i},{i % 7},{'ab'[i % 2]}\n" for i in range(300))
    (tmp_path / "bank.csv").write_text(f"one,two,x,label\n{rows}")
    heard = at_a_terminal("one", "b", "two:0:1 x:0:7", "x:0:7")
    done = blindfit(tmp_path, "init", "--system", "dp-lr", "bank.csv", "--label", "label")
    assert done.returncode != 0  # two is not a column of numbers: bounds of another column are an error
    assert len(heard) == 3
    heard = at_a_terminal("one", "b", "x:0:7")
    done = blindfit(tmp_path, "init", "--system", "dp-lr", "bank.csv", "--label", "label")
    assert done.returncode == 0, done.stderr
    assert 'feature_bounds = ["x:0:7"]' in (tmp_path / "joint/job.toml").read_text()
    assert 'positive = "b"' in (tmp_path / "joint/bank.toml").read_text()


def _init(folder: Path) -> Done:
    return blindfit(
        folder, "init", "--system", "walr", "shop.csv", "clinic.csv", "--label", "visited", "--out", "deep/er/joint"
    )


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("load_party", ValueError("a bug")),
        ("load_job", OSError(28, "No space left on device")),
        ("tempfile.mkdtemp", PermissionError(13, "Permission denied")),
    ],
)
def test_nothing_half_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: Exception
) -> None:
    write_tables(tmp_path, rows=300)
    before = sorted(tmp_path.rglob("*"))

    def fail(*_words: Any, **_options: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(f"blindfit.coordinator.init.command.{function}", fail)
        refused = _init(tmp_path)
    assert refused.returncode != 0
    if isinstance(error, OSError):
        assert f"cannot be made: {error.strerror}" in refused.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert _init(tmp_path).returncode == 0


def test_a_long_name_does_not_run_into_the_words_after_it(tmp_path: Path) -> None:
    write_tables(tmp_path, rows=300)
    (tmp_path / "my bank.csv").rename(tmp_path / "bank_dates_german.csv")
    made = blindfit(tmp_path, "init", "--system", "taylor", "bank_dates_german.csv", "shop.csv", "--label", "churned")
    assert made.stdout.splitlines()[0].startswith("bank-dates-german  active: bank_dates_german.csv, 300 rows")
