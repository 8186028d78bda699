"""Whole jobs: a refusal without a charge has estimated nothing, and a charged release that was lost is
not drawn again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import CannotAnswer, PolicyRefused
from blindfit.algorithms.privacy.label_mechanisms import fitting
from blindfit.coordinator.systems import VIEWS, view
from blindfit.parties.measurement import release_labels
from blindfit.parties.measurement.release_labels import LOST
from tests.label_dp.conftest import N_ROWS
from tests.world import World

RP = ("label_dp.mechanism=rp-with-prior", "privacy.epsilon=2.0")


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    estimate = fitting.estimate_prior
    monkeypatch.setattr(fitting, "estimate_prior", lambda *asked: made.append(asked) or estimate(*asked))
    return made


def paid_for(project: World) -> list[set[str]]:
    """Return what each system reports about each entry of the ledger, without empty reports."""
    with project.store("meter") as store:
        labels = {stored.position: stored for stored in store.reader().label_releases()}
        entries = store.reader().ledger()
    return [{view(name).released(entry, labels.get(entry.position)) for name in VIEWS} - {""} for entry in entries]


def with_persons(path: Path, rows_each: int) -> None:
    head, *rows = path.read_text().splitlines()
    persons = np.arange(N_ROWS) // rows_each
    path.write_text("\n".join([f"{head},person", *(f"{row},{p}" for row, p in zip(rows, persons, strict=True))]) + "\n")


def test_a_job_of_which_too_few_rows_count_estimates_no_prior(project: World, estimates: list[Any]) -> None:
    """This holds for any number of tries, and under any name."""
    with_persons(project.path("labels.csv"), 2)
    project.edit("meter.toml", 'label = "spend"\n', 'label = "spend"\nperson = "person"\nmax_rows_per_person = 1\n')
    project.edit("meter.toml", "min_rows = 500", "min_rows = 1501")
    nodes = World(project.root)
    for name in ("first", "second"):
        with pytest.raises(CannotAnswer):
            nodes.run(*RP, f"privacy.release={name}")
    assert (len(project.ledger("meter")), estimates) == (0, [])
    project.edit("meter.toml", "min_rows = 1501", "min_rows = 1500")
    nodes.run(*RP)
    assert (len(project.ledger("meter")), len(estimates)) == (1, 1)


def test_a_job_whose_labels_were_lost_says_so_and_another_name_begins_anew(
    project: World, estimates: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    nodes = World(project.root)
    with monkeypatch.context() as patched:
        patched.setattr(release_labels, "freeze", no_room)
        with pytest.raises(PolicyRefused) as first:
            nodes.run(*RP)
    with pytest.raises(PolicyRefused) as again:
        nodes.run(*RP)
    assert first.value.reason == again.value.reason == LOST
    assert (len(project.ledger("meter")), len(estimates)) == (1, 1)
    nodes.run(*RP, "privacy.release=second")
    assert (len(project.ledger("meter")), len(estimates)) == (2, 2)
    shown = project.blindfit("ledger", "meter.toml").stdout
    assert 'under way, or lost, rp-with-prior, "first"' in shown
    assert 'every label, rp-with-prior, "second"' in shown
    assert [len(found) for found in paid_for(project)] == [1, 1]  # no other system claims it
