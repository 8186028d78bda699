"""The coordinator and the active party of a linked training may learn how many rows match, and which rows."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols.taylor import DataSeat
from blindfit.algorithms.statistics.quality.metrics import auc
from blindfit.algorithms.statistics.vertical import gradient_leaks, optimiser
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity.authority import create_authority
from blindfit.parties.taylor.key_node import tell_of_few_matches
from blindfit.parties.taylor.settings import TaylorJob
from tests.interference import systems, world
from tests.interference.world import Case as World
from tests.taylor.seats import Case, case_of

Floats = NDArray[np.float64]
HELD_OUT = 19  # slots of 64
JOB = TaylorJob.model_validate({"align": {"method": "linkage", "fields": ["name"]}})  # all defaults


# --- the coordinator, from the losses that it receives -------------------------------------------------------------


def linked(strangers: int) -> World:
    """Return a training that hardly moves, in which one party has this many names that nobody else has."""
    case = systems.taylor_linkage().with_job(taylor__learning_rate=1e-6, taylor__epochs=1)
    data = {party: {row: dict(values) for row, values in rows.items()} for party, rows in case.data.items()}
    for number, values in enumerate(list(data["shop-a"].values())[:strangers]):
        values["name"] = f"somebody else {number}"
    return case.with_job(taylor__validation_fraction=0.3).with_data(data)


def told(root: Path, strangers: int, monkeypatch: pytest.MonkeyPatch, **job: Any) -> tuple[str, ...]:
    """Return all losses, as the coordinator has them in the end."""
    summaries: list[dict[str, Any]] = []
    run = JobSession.run

    async def run_and_look(session: JobSession) -> object:
        ended = await run(session)
        summaries.append(session.summaries["notary"])
        return ended

    root.mkdir()
    create_authority(root / "ca", "an authority")
    (root / "world").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(JobSession, "run", run_and_look)
        assert world.begin(linked(strangers).with_job(**job), root / "ca", root / "world").error == ""
    losses: tuple[str, ...] = summaries[0]["fit.losses"]
    return losses


def test_the_coordinator_is_not_told_how_many_hold_out_slots_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tmp_path / "all", 0, monkeypatch) == told(tmp_path / "few", 25, monkeypatch) == ("1.000000",)


def test_where_it_is_told_means_over_all_slots_it_has_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights near 0 each slot that matches has a loss of log 2, and each other slot a loss of 0."""
    begin = optimiser.Patience.__init__

    def of_all(patience: optimiser.Patience, epochs: int, tolerance: float, *, relative: bool = False) -> None:
        begin(patience, epochs, tolerance)

    monkeypatch.setattr(optimiser.Patience, "__init__", of_all)
    for strangers in (0, 25):
        (loss,) = told(tmp_path / str(strangers), strangers, monkeypatch)
        matches = float(loss) / math.log(2) * HELD_OUT
        assert matches == pytest.approx(round(matches), abs=1e-3)
        assert (round(matches) == HELD_OUT) == (strangers == 0)


def test_only_half_of_the_slots_of_a_batch_hide_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may reveal a quarter of a bit for half of its slots, and for no other slot."""
    half = (64 - HELD_OUT) // 2
    limit = half * gradient_leaks.MOST_BITS_PER_ROW
    told(tmp_path / "below", 0, monkeypatch, taylor__jitter=jitter_that_reveals(0.99 * limit))
    with pytest.raises(AssertionError, match=f"about the {half} labels of a batch"):
        told(tmp_path / "above", 0, monkeypatch, taylor__jitter=jitter_that_reveals(1.01 * limit))


def jitter_that_reveals(bits: float) -> float:
    """Return the jitter with which the two columns of the passive party reveal this many bits of a batch."""
    return 0.5 / math.sqrt(2**bits - 1)


@pytest.mark.parametrize(("matches", "is_told"), [(50, False), (49, True)])
def test_the_key_nodes_operator_is_told_where_fewer_match_than_the_job_says(matches: int, is_told: bool) -> None:
    linked: Any = SimpleNamespace(sizes=(100, 80), n_matches=matches)
    with capture_logs() as logs:
        tell_of_few_matches(linked, JOB.align.match_rate)
    assert [line["log_level"] for line in logs] == ["warning"] * is_told


# --- the active party, from its own gradients ------------------------------------------------------------------------


class Watched(Optimiser):
    """An optimiser whose owner keeps what it sees: batch, weights and gradient of each step."""

    def watch(self, optimiser: Optimiser) -> Watched:
        for name in Optimiser.__slots__:
            if hasattr(optimiser, name):
                setattr(self, name, getattr(optimiser, name))
        self.seen: list[tuple[int, Floats, Floats]] = []
        return self

    def step(self, gradient: Floats, epoch: int, batch: int) -> None:
        self.seen.append((batch, self.weights.copy(), gradient.copy()))
        Optimiser.step(self, gradient, epoch, batch)


def parts(case: Case, seat: DataSeat, batch: int, weights: Floats) -> Floats:
    """(rows, columns): what each row of a batch adds to the active party's gradient if it matches, without the others'
    part of its score.
    """
    rows = case.plan.batches[batch]
    terms = case.grid.score_terms(case.grid.scores(seat.features[rows], weights))
    assert seat.label_terms is not None
    residuals = (terms + seat.label_terms[rows]) / 2.0**case.grid.residual_bits
    return case.grid.reals(seat.features[rows]) * residuals[:, None]


def guessed(case: Case, seat: DataSeat, seen: list[tuple[int, Floats, Floats]]) -> tuple[float, Floats]:
    """Return the share of slots that match, by least squares, and each slot's chance of matching.

    Ridge regression gives the chances, starting from the share.
    """
    equations: dict[int, list[tuple[Floats, Floats]]] = {}
    above = below = 0.0
    for batch, weights, gradient in seen:
        one, total = parts(case, seat, batch, weights), gradient * len(case.plan.batches[batch])
        above, below = above + one.sum(axis=0) @ total, below + one.sum(axis=0) @ one.sum(axis=0)
        equations.setdefault(batch, []).append((one, total))
    share, found = above / below, []
    for batch in sorted(equations):
        a = np.concatenate([one.T for one, _ in equations[batch]])
        b = np.concatenate([total for _, total in equations[batch]])
        spread = 0.25 * a @ a.T + np.eye(len(b)) * case.parameters.noise_std**2
        found.append(share + 0.25 * a.T @ np.linalg.solve(spread, b - share * a.sum(axis=1)))
    return share, np.concatenate(found)


def test_the_active_party_reads_from_its_gradients_how_many_rows_match_and_more_of_which_than_it_should(
    insecure_test_key: PrivateKey,
) -> None:
    """Every defence of a job is on by default; docs/explanation/linkage.md and the warnings report the rest."""
    case = case_of(
        insecure_test_key,
        masked=True,
        settings=JOB.taylor.optimiser_settings(),
        n_batches=2,
        batch_rows=128,
        held_out_rows=20,
        columns=(21, 2),
        noise_std=JOB.taylor.gradient_noise,
        jitter=JOB.taylor.jitter,
        epochs=3,
    )
    assert gradient_leaks.rows_for_features(21, JOB.align.match_rate) <= 128
    seats = case.seats()
    seat = seats[0]
    seat.optimiser = watched = Watched.__new__(Watched).watch(seat.optimiser)
    case.run_locally(seats, case.key_seat())
    share, found = guessed(case, seat, watched.seen)
    rows = np.concatenate(case.plan.batches[:2])
    assert case.mask is not None
    matches = case.mask[rows] > 0
    assert share == pytest.approx(float(matches.mean()), abs=0.08)
    assert auc(matches, found) > 0.65
