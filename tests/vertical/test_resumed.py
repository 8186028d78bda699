"""A training under label DP that stops after an epoch and goes on: to the same weights, for one charge."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from blindfit.algorithms.errors import BlindfitError, DataError, PolicyRefused
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.postgres import PostgresServer
from tests.world import World
from tests.world.vertical import ROLES, bank_and_shops, weights

DATA_PARTIES = [name for name, role in ROLES.items() if role != "key-node"]
JOB = ("privacy.epsilon=2", "taylor.epochs=2", "align.min_common=30", "timeouts.step_s=20")
COLUMN_TYPES = {"string": "TEXT", "int64": "BIGINT", "double": "DOUBLE PRECISION"}


@pytest.fixture(params=["csv", "postgresql"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    project = bank_and_shops(tmp_path, rows=60)
    if request.param == "postgresql":
        for name in DATA_PARTIES:
            move_to_table(project, name, request.getfixturevalue("postgres"))
    return project


def move_to_table(project: World, name: str, server: PostgresServer) -> None:
    """Move the party's rows into a table of the server, and remove the file."""
    path, table = project.root / f"{name}.csv", name.replace("-", "_")
    rows = pyarrow.csv.read_csv(path)
    declared = ", ".join(f'"{field.name}" {COLUMN_TYPES[str(field.type)]}' for field in rows.schema)
    server.run(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} ({declared})")
    with server.connect() as connection, connection.cursor() as cursor:
        marks = ", ".join(["%s"] * rows.num_columns)
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", [tuple(row.values()) for row in rows.to_pylist()])
    path.unlink()
    project.edit(f"{name}.toml", f"csv:{name}.csv", server.url(f"public.{table}"))


def stopped_after(epoch: int, project: World) -> str:
    """Interrupt a training when a party has kept this epoch; return its session."""
    keep, sessions = Checkpoints.keep, set()

    def lost(self: Checkpoints, kept: int, go_on: bool, state: Any) -> None:
        keep(self, kept, go_on, state)
        sessions.add(self.session)
        if kept == epoch and "shop-a" in str(self.directory):
            raise DataError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "keep", lost)
        with pytest.raises(BlindfitError):
            project.run(*JOB)
    (session,) = sessions
    return session


def test_it_ends_in_the_weights_of_one_that_ran_through_and_is_charged_once(project: World) -> None:
    begun = stopped_after(1, project)
    (charged,) = project.ledger("bank")
    for name in ROLES:
        kept = project.root / f"state/{name}/checkpoints"
        shutil.copytree(kept, project.root / "begun" / name)
        for epoch in (project.root / "begun" / name).glob("*/epoch-*.json"):
            epoch.unlink()  # only the secrets remain: the training will run through
    resumed = project.run(*JOB, f"taylor.resume={begun}", "timeouts.step_s=30").id
    for name in ROLES:
        shutil.rmtree(project.root / f"state/{name}/checkpoints")
        shutil.copytree(project.root / "begun" / name, project.root / f"state/{name}/checkpoints")
    through = project.run(*JOB, f"taylor.resume={begun}").id
    found, expected = (np.concatenate([*weights(project, one).values()]) for one in (resumed, through))
    assert np.abs(found).max() > 0.01
    assert np.abs(found - expected).max() <= 1e-9
    assert project.ledger("bank") == [charged]


def test_it_does_not_go_on_among_other_parties(tmp_path: Path) -> None:
    """Two answers to the same epoch would then differ by a party's columns."""
    project = bank_and_shops(tmp_path, rows=60)
    begun = stopped_after(1, project)
    first, _, rest = (tmp_path / "job.toml").read_text().partition("[parties.shop-b]")
    (tmp_path / "fewer.toml").write_text(first + rest[rest.index("[parties.notary]") :])
    with pytest.raises(PolicyRefused, match=f"the training {begun} was of another job: a job is resumed with"):
        project.run(*JOB, f"taylor.resume={begun}", job="fewer.toml")
    assert [one.text for one in project.check(*JOB, f"taylor.resume={begun}") if one.refuses] == []
    assert project.run(*JOB, f"taylor.resume={begun}").state == "DONE"
