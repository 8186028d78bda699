"""`blindfit run`, `party` and `snapshot` make the first snapshot of a dataset, and `check` agrees."""

from __future__ import annotations

import pytest

from tests.hints.following import refused_command
from tests.processes.reading import error_line
from tests.world import World

MADE = "meter: labels is published as snapshot 1, 1,500 rows"
TO_BE_MADE = "labels is not published: `blindfit run` and the party's next start publish it"
NOT_PUBLISHED = "labels is not published: the party's operator runs `blindfit snapshot PARTY.TOML labels`"
WAITS = "labels waits for `blindfit snapshot`: the party also has the population visitors"
TWO_POPULATIONS = """
[populations.visitors]
epsilon = 2.0
delta = 1e-5
[datasets.visits]
url = "csv:visits.csv"
id = "id"
label = "label"
population = "visitors"
active_parties = ["shop"]
[datasets.labels]"""


def words_of(text: str) -> str:
    """Return the text without line breaks."""
    return " ".join(text.split())


def test_a_run_publishes_what_its_job_reads_and_says_so(project: World) -> None:
    before = project.blindfit("check", "job.toml")
    assert before.returncode == 0
    assert TO_BE_MADE in words_of(before.stdout)
    assert "not published" in project.blindfit("snapshot", "meter.toml").stdout
    first = project.blindfit("run", "job.toml", "--out", "out")
    assert first.returncode == 0, first.stderr
    assert MADE in first.stdout.splitlines()
    assert "shop: rows is published as snapshot 1, 1,500 rows" in first.stdout.splitlines()
    again = project.blindfit("run", "job.toml", "--out", "out")
    assert again.returncode == 0, again.stderr
    assert "is published" not in again.stdout
    assert "not published" not in project.blindfit("check", "job.toml").stdout


def test_a_run_publishes_no_dataset_that_its_job_does_not_read(project: World) -> None:
    project.edit("shop.toml", "[datasets.rows]", '[datasets.more]\nurl = "csv:rows.csv"\nid = "id"\n[datasets.rows]')
    done = project.blindfit("run", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    (row,) = [
        line
        for line in project.blindfit("snapshot", "shop.toml").stdout.splitlines()
        if line.strip().startswith("more")
    ]
    assert "not published" in row


@pytest.mark.parametrize("name", ["labels", "rows"])
def test_a_run_prints_what_is_wrong_with_rows_and_starts_nothing(project: World, name: str) -> None:
    file = project.path(f"{name}.csv")
    file.write_text(file.read_text() + file.read_text().splitlines()[-1] + "\n")
    done = project.blindfit("run", "job.toml", "--out", "out")
    assert done.returncode != 0
    assert f"{name}.csv, row 1501 (line 1502), column id" in error_line(done)
    assert not project.path("out/meter/port").exists()


def test_a_second_population_waits_and_check_says_what_run_says(project: World) -> None:
    project.path("visits.csv").write_text(project.path("labels.csv").read_text())
    project.edit("meter.toml", "[datasets.labels]", TWO_POPULATIONS)
    checked = project.blindfit("check", "job.toml")
    assert checked.returncode != 0
    assert WAITS in words_of(checked.stdout)
    done = project.blindfit("run", "job.toml", "--out", "out")
    assert WAITS in error_line(done)
    told = refused_command("run `blindfit snapshot {} {}`, with --other-people if these are other people", done)
    command = ["snapshot", "meter.toml", "labels"]
    assert command in told.commands
    assert project.blindfit(*command).returncode == 0
    assert project.blindfit("check", "job.toml").returncode == 0
    assert project.blindfit("run", "job.toml", "--out", "out").returncode == 0


def test_a_job_for_parties_that_are_up_publishes_nothing(project: World) -> None:
    project.edit("meter.toml", "[datasets.labels]", TWO_POPULATIONS)
    project.path("visits.csv").write_text("id,label\na,1\n")
    project.edit("job.toml", 'config = "shop.toml"\n', "")
    project.edit("job.toml", 'config = "meter.toml"\n', "")
    project.start("shop", "meter")
    assert "visits" in project.log("meter")
    for command in (("check", "job.toml"), ("submit", "job.toml", "--out", "out")):
        refused = project.blindfit(*command)
        assert refused.returncode != 0
        assert NOT_PUBLISHED in words_of(refused.stdout + refused.stderr)
    published = project.blindfit("snapshot", "meter.toml", "labels")
    assert published.returncode == 0, published.stderr
    for command in (("check", "job.toml"), ("submit", "job.toml", "--out", "out")):
        assert project.blindfit(*command).returncode == 0
