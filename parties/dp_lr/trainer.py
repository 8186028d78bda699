"""The active party of a dp-lr job, its only party: it fits its rows under differential privacy, charges, keeps the
model.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.estimators.private_descent import DescentOptions, fit_privately
from blindfit.algorithms.fit_cost import FitCost
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.statistics.dp_lr.cost import descent_cost
from blindfit.algorithms.statistics.dp_lr.descent import losses_of
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant
from blindfit.parties.data.source import Source
from blindfit.parties.dp_lr.budget import TrainingLedger
from blindfit.parties.dp_lr.report import DPLRReport, evaluation_of, report_of
from blindfit.parties.dp_lr.rows import PrivateRows, Start, check_private, check_start, find_start, read_private
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.files.written import encode_json
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.budget import check_before, population_of
from blindfit.parties.training.randomness import name_randomness, own_randomness
from blindfit.parties.training.rows import Report
from blindfit.parties.work.clock import Clock


class Trainer:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: DPLRJob, me: Member) -> None:
        """Refuse what can be refused before a session starts: datasets, options, the public model."""
        population_of(self._party.settings.datasets[me.dataset], me.dataset)
        snapshot, opened = self._party.snapshots.require_current(me.dataset), self._party.snapshots.source
        source = check_private(snapshot.source())
        check_start(self._party.settings, self._party.base_dir, job, source, opened)
        if refused := cost_of(job, snapshot.row.rows, len(source.model_columns)).excess():
            raise PolicyRefused(party=me.name, field="dp_lr.iterations", reason=refused)
        check_before(self._party.settings, self._party.store, me.dataset, job.run_privacy.event(), snapshot.id)
        public_rows = job.dp_lr.public_rows
        if public_rows is not None:
            self._party.settings.policy.check_rows(int(job.expected_rows(public_rows)))

    async def run(self, session: Session[DPLRJob]) -> dict[str, ParameterValue]:
        told = await asyncio.to_thread(self._run, session)
        channel = session.channel
        return {**told, "bytes_sent": channel.bytes_sent, "messages_sent": channel.messages_sent}

    def _run(self, session: Session[DPLRJob]) -> dict[str, ParameterValue]:
        job, clock, source = session.job, Clock(), check_private(session.published.source())
        randomness = own_randomness(self._party, session)
        opened = self._party.snapshots.source
        start = find_start(self._party.settings, self._party.base_dir, job, source, opened, session.report)
        rows = read_private(source, job, randomness, session.report if job.rows_are_public else _hide_counts(session))
        self._party.settings.policy.check_rows(int(job.expected_rows(rows.n_trained)))
        clock.lap("prepare_s")
        ledger = ledger_of(self._party, session, source, start)
        answer, is_new = self._answer(session, ledger, start, rows)
        session.receipt = self._party.receipts.newest(ledger.population)
        clock.lap("fit_s")
        session.report("evaluate")
        model = _of_table(DPLogisticModel.from_dict(answer["model"]), source)
        probabilities = model.probabilities(rows.features[rows.test])
        charged, releases = ledger.describe()
        evaluation = evaluation_of(rows.labels[rows.test], probabilities)
        report = report_of(
            session, rows, start, model, answer, charged, evaluation, clock.laps, is_new=is_new, releases=releases
        )
        self._write(session, rows, model, probabilities, report)
        return report.fields_for_coordinator()

    def _answer(
        self, session: Session[DPLRJob], ledger: TrainingLedger, start: Start, rows: PrivateRows
    ) -> tuple[dict[str, Any], bool]:
        """Return the answer, and True if it is new. A new answer was charged before anything of it is revealed or
        written.
        """
        stored = ledger.answer()
        if stored is not None:
            return stored, False
        ledger.check()
        session.report("fit", 0, session.job.dp_lr.iterations, "iterations")
        fitted = fit_rows(rows, start, session.job, ledger.question)
        session.report("charge")
        return ledger.charge(fitted.answer()), True

    def _write(
        self,
        session: Session[DPLRJob],
        rows: PrivateRows,
        model: DPLogisticModel,
        probabilities: Floats,
        report: DPLRReport,
    ) -> None:
        party, me = self._party, session.id
        party.write(
            me, "model.json", encode_json(party.stamp({**model.to_dict(), "privacy": report.privacy.to_dict()}))
        )
        party.write_report(me, report.content(session, dataset=session.me.dataset))
        if rows.test.any():
            ids = rows.ids.to_numpy(zero_copy_only=False)[rows.test]
            labels = rows.labels[rows.test].astype(np.int64)
            columns = {"id": ids.tolist(), "label": labels, "probability": probabilities}
            party.write_table(me, "held_out_scores.csv", columns)


def ledger_of(party: Party, session: Session[DPLRJob], source: Source, start: Start) -> TrainingLedger:
    """Return the ledger that pays for a training, by everything that its answer depends on."""
    public = {"columns": list(source.model_columns), "start": start.identity}
    drawn = name_randomness(own_randomness(party, session))
    return TrainingLedger(session, party.settings, party.store, public, drawn)


def _of_table(model: DPLogisticModel, source: Source) -> DPLogisticModel:
    """Return the model with the record of its columns, as far as the record is known without the rows."""
    return replace(model, standardiser=replace(model.standardiser, table=source.record.public()))


def _hide_counts(session: Session[DPLRJob]) -> Report:
    """Return a report that names each step once, because the number of messages grows with the number of rows."""
    named = set[str]()

    def report(step: str, _done: int, _total: int, _unit: str) -> None:
        if step not in named:
            named.add(step)
            session.report(step)

    return report


def cost_of(job: DPLRJob, n_rows: int, n_columns: int) -> FitCost:
    """Return the largest cost of descent, from public numbers.

    Args:
        n_rows: number of rows of the dataset; the job's own number counts if the number of rows is private.
    """
    return descent_cost(job.dp_lr.iterations, job.dp_lr.public_rows or n_rows, n_columns + 1)


@dataclass(frozen=True, repr=False)
class Fitted:
    """Values that are released: the noisy model, and public facts.

    Args:
        noise_multiplier: noise multiplier of each iteration's gradient.
        losses: noisy losses of the training rows, if the budget paid for them; else losses of public rows, if there are
            any.
    """

    model: DPLogisticModel
    noise_multiplier: float
    learning_rate: float
    losses: tuple[float, ...]

    def answer(self) -> dict[str, Any]:
        return {
            "model": self.model.to_dict(),
            "noise_multiplier": self.noise_multiplier,
            "learning_rate": self.learning_rate,
            "losses": list(self.losses),
        }


def fit_rows(rows: PrivateRows, start: Start, job: DPLRJob, release: str) -> Fitted:
    """Return the release. Its success depends on no value of a row, nor on the number of training rows if that is
    private.

    Args:
        release: name of the release; another name draws new noise.
    """
    chosen, scale, trained = job.dp_lr, start.model.standardiser, ~rows.test
    options = DescentOptions(
        job.run_privacy,
        chosen.clip_norm,
        chosen.learning_rate,
        chosen.shrinkage,
        chosen.loss_share,
        job.expected_rows(rows.n_trained),
    )
    columns, weights = _columns(scale, rows.features[trained]), start.model.weights_for(scale)
    fit = fit_privately(columns, rows.labels[trained] == 1, weights, options, release)
    losses = fit.descent.losses
    if start.public is not None:
        losses = tuple(losses_of(fit.descent.path, _columns(scale, start.public[0]), start.public[1] == 1))
    *feature_weights, intercept = map(float, fit.descent.weights)
    model = DPLogisticModel(scale, tuple(feature_weights), intercept)
    return Fitted(model, fit.noise_multiplier, fit.learning_rate, losses)


def _columns(scale: Standardiser, features: Floats) -> Floats:
    return append_constant(scale.transform_and_clip(features))
