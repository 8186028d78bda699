"""The jitter of numeric labels: one draw in the label's units, for any splits and scales of trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.parties.vertical import training
from tests.vertical.in_process import Seated, seated
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops, with_numbers

ROWS = 120
CHANGED = 30  # people whose labels change, and all scales with them
SPLITS = (0.1, 0.15, 0.2, 0.25, 0.3)
LINEAR = ("taylor.model=linear", 'taylor.unsafe=["label-bits"]')  # as if the account had room for every training


class Shown:
    """Inputs of the gradients, back in the label's units: a passive party knows mean and scale well."""

    def __init__(self, project: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._project, self._prepare = project, training.prepare
        monkeypatch.setattr(training, "prepare", self._note)

    def _note(self, rows: Any, *rest: Any, **options: Any) -> Any:
        made = self._prepare(rows, *rest, **options)
        if options["active"]:
            self._prepared = made
        return made

    def labels(self, session: str, *overrides: str) -> dict[str, float]:
        """Run a job until training would begin, and return each person's label as gradients show it."""
        made = seated(self._project, *LINEAR, *overrides, session=session)
        found, terms = self._prepared, terms_of(made)
        shown = found.labels.mean - found.labels.scale * terms
        return dict(zip(found.rows.ids.to_pylist(), shown.tolist(), strict=True))


def terms_of(made: Seated) -> np.ndarray:
    terms: np.ndarray = made.seats["bank"].label_terms * 2.0**-made.parameters.grid.residual_bits
    return terms


def bank_of_numbers(root: Path, label_range: tuple[float, float] | None = None) -> tuple[World, np.ndarray]:
    """Return the world and the labels, in the order of the bank's file."""
    project = bank_and_shops(root, rows=ROWS)
    labels = 50.0 + 10.0 * np.random.default_rng(8).normal(size=ROWS)
    with_numbers(project, labels, label_range)
    return project, labels


def test_many_trainings_on_other_splits_and_scales_show_the_same_number_of_each_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If each scale had its own draw, they would average out: a quarter of a deviation becomes a twelfth after ten."""
    project, labels = bank_of_numbers(tmp_path)
    shown, seen, unit = Shown(project, monkeypatch), [], labels.std()
    for number, fraction in enumerate(2 * SPLITS):
        if number == len(SPLITS):
            labels = np.where(np.arange(ROWS) < CHANGED, labels + 5, labels)
            project.columns("bank", bought=labels)
            project.publish("bank")
        seen.append(shown.labels(f"s{number}", f"split.test_fraction={fraction}"))
    people = project.table("bank")["id"][CHANGED:]
    numbers = np.array([[one[person] for person in people] for one in seen])
    assert np.allclose(numbers, numbers[0], atol=1e-3)
    error = np.sqrt(np.mean((numbers.mean(axis=0) - labels[CHANGED:]) ** 2)) / unit
    assert 0.15 < error < 0.35  # a quarter, within six standard deviations


def test_two_people_whose_ids_look_alike_do_not_share_a_draw(tmp_path: Path) -> None:
    """With one draw both would show the same number exactly if their labels are equal."""
    project, half = bank_and_shops(tmp_path, rows=ROWS), ROWS // 2
    for name in DATA_PARTIES:
        table = project.table(name)
        ids = np.array([f"p{place}" for place in range(half)] + [f"P{place}" for place in range(half)])
        label = {"bought": (np.arange(ROWS) > 0).astype(np.int64)} if name == "bank" else {}
        project.write_table(name, table | {"id": ids, "name": ids} | label)
    assert len(set(terms_of(seated(project)))) > 0.9 * ROWS


def test_another_size_has_other_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw in two sizes gives the label: twice the one less the other."""
    project, labels = bank_of_numbers(tmp_path)
    shown = Shown(project, monkeypatch)
    one, other = (shown.labels(session, f"taylor.jitter={size}") for session, size in (("s1", 0.25), ("s2", 0.5)))
    people = project.table("bank")["id"]
    solved = np.array([2 * one[person] - other[person] for person in people])
    assert np.isclose(solved, labels, atol=0.01).sum() <= ROWS / 10


def test_the_unit_is_half_of_the_declared_range_and_stays_when_the_range_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = bank_of_numbers(tmp_path, (-100.0, 300.0))
    shown = Shown(project, monkeypatch)
    first = shown.labels("s1")
    with project.store("bank") as store:
        assert store.reader().label_unit("people", "bought") == 200.0
    project.set("datasets.rows.label_range", [-200.0, 600.0], "bank")
    project.publish("bank")
    with capture_logs() as logged:
        second = shown.labels("s2")
    assert [entry["factor"] for entry in logged if "vary more" in entry["event"]] == [2.0]
    within = [person for person, number in first.items() if -99.9 < number < 299.9]  # the others are clipped
    assert len(within) > ROWS / 2
    assert np.allclose([first[person] for person in within], [second[person] for person in within], atol=0.01)


def test_a_label_beyond_its_range_is_clipped_after_its_jitter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label clipped before would show its jitter, and in a wider range the label."""
    project, labels = bank_of_numbers(tmp_path, (45.0, 55.0))
    numbers = np.array(list(Shown(project, monkeypatch).labels("s1").values()))
    assert (labels > 60).any()
    assert numbers.min() > 45 - 1e-3
    assert numbers.max() < 55 + 1e-3


def test_bits_are_those_of_a_label_of_the_units_variance(tmp_path: Path) -> None:
    project, _ = bank_of_numbers(tmp_path)
    made = seated(project, *LINEAR)
    columns, batches = sum(made.parameters.columns[1:]), len(made.plan.batches)
    with project.store("bank") as store:
        (entry,) = store.reader().disclosures(subject="labels")
    assert entry.bits == pytest.approx(batches * columns / 2 * np.log2(1 + 1 / 0.25**2))
