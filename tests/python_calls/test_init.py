"""`blindfit.init`: from tables to a job, as the command does it."""

from __future__ import annotations

from pathlib import Path

import pytest

import blindfit
from blindfit import ConfigError, Job

ROWS = 300


@pytest.fixture
def tables() -> list[str]:
    """A shop's features, a clinic's labels; one of the labels' columns is a number."""
    Path("shop.csv").write_text("id,x,z\n" + "".join(f"p{i},{i % 13},{i % 11}\n" for i in range(ROWS)))
    Path("clinic.csv").write_text("id,visits\n" + "".join(f"p{i},{i % 7}\n" for i in range(ROWS)))
    return ["shop.csv", "clinic.csv"]


def test_the_job_runs_as_it_is(tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    job = blindfit.init(tables, system="label-dp", label="visits", label_range=(0, 6), out="study")
    assert isinstance(job, Job)
    assert "blindfit run study/job.toml" in capsys.readouterr().out
    assert not blindfit.check(job).refuses
    assert blindfit.run(job, out="out", progress=False).report.privacy.epsilon == 1.0


def test_every_argument_is_that_of_the_command(tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    table = Path("shop.csv")
    table.write_text(table.read_text().replace("id,x,z", "id,x,label").replace(",11\n", ",1\n"))
    one = {"row_id": "id", "positive": "1", "hosts": {"shop": "shop.example:7200"}, "show": False}
    job = blindfit.init([table], system="dp-lr", label="label", bounds={"x": (-0.5, 13)}, out="study", **one)
    assert capsys.readouterr().out == ""
    assert job.parameters.dp_lr.feature_bounds == ("x:-0.5:13",)
    assert job.parties["shop"].address == "shop.example:7200"


def test_nobody_is_asked(tables: list[str]) -> None:
    with pytest.raises(ConfigError, match="which range do all values of visits lie in"):
        blindfit.init(tables, system="label-dp", label="visits", out="study")
    assert not Path("study").exists()
