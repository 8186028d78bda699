"""The active party of a label-dp job: it gets a noisy label for each of its rows, fits, evaluates, and keeps the
model.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
import structlog

from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage, PolicyRefused
from blindfit.algorithms.estimators.label_noise import NoiseProfile, epsilon_of_row
from blindfit.algorithms.fit_cost import FitCost
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.label_dp.cost import regression_cost
from blindfit.algorithms.statistics.label_dp.fit import (
    evaluate_released,
    fit_regression,
    mean_noise_variance,
)
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.quality.evaluation import evaluate_values
from blindfit.parties.data.source import Source
from blindfit.parties.files.written import encode_json
from blindfit.parties.label_dp.fit import Fitted, Rows
from blindfit.parties.label_dp.report import LabelDPReport, report_of
from blindfit.parties.label_dp.settings import MECHANISM_OPTIONS, LabelDPJob
from blindfit.parties.measurement import asking
from blindfit.parties.measurement.calls import MeasurementCalls, ReleasedLabels, check_description
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.receipts import hold_receipt
from blindfit.parties.training.randomness import own_randomness
from blindfit.parties.training.rows import Report, check_features, require_offered, tell_of_unseen
from blindfit.parties.training.split import RowPart, hold_out, read_split
from blindfit.parties.work.clock import Clock
from blindfit.protos import measurement_pb2

FIRST_RELEASE = "first"

log = structlog.get_logger(__name__)


class LabelRegression:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: LabelDPJob, me: Member) -> None:
        """Refuse what can be refused before a session starts."""
        snapshot = self._party.snapshots.require_current(me.dataset)
        source = check_features(snapshot.source(), "an active party")
        if refused := cost_of(job, snapshot.row.rows, len(source.model_columns)).excess():
            raise PolicyRefused(party=me.name, field="label_dp.options", reason=refused)
        if job.label_dp.evaluate_on:
            self._check_study(job, me)

    async def run(self, session: Session[LabelDPJob]) -> dict[str, ParameterValue]:
        job, clock = session.job, Clock()
        source, randomness = session.published.source().with_means(), own_randomness(self._party, session)
        rows = await asyncio.to_thread(read_rows, source, job, randomness, session.report)
        clock.lap("prepare_s")
        server = session.with_role("measurement")
        client = asking.client_of(self._party, session, server.name)
        description = await client.describe(server.dataset)
        check_description(description, server=server.name)
        released = await self._release(client, rows, description, session)
        clock.lap("release_s")
        fitted = await asyncio.to_thread(fit_rows, rows, released, job, randomness, session.report)
        study = await asyncio.to_thread(self._on_true_labels, fitted.fit.model, rows, session)
        clock.lap("fit_s")
        budget = await client.budget(server.dataset)
        true = {} if study is None else evaluate_values(study.labels, study.predictions)
        report = report_of(session, rows, released, fitted, true, description, budget, clock.laps)
        await asyncio.to_thread(self._write, session, rows, released, fitted, study, report)
        return report.fields_for_coordinator()

    async def _release(
        self,
        client: MeasurementCalls,
        rows: Rows,
        description: measurement_pb2.DatasetDescription,
        session: Session[LabelDPJob],
    ) -> ReleasedLabels:
        server = session.with_role("measurement")
        released = await client.release_labels(
            description,
            rows.ids,
            mechanism_settings(session.job, description, server=server.name),
            release=session.job.required_privacy.release or FIRST_RELEASE,
            max_rows_per_person=rows_per_person(session.job, description.max_rows_per_person),
            receipt=self._party.store.reader().receipt_held(server.name, description.population),
            session=session.id,
            on_rows=asking.reporter(session, "send ids", len(rows.ids), server.name),
        )
        key, population = description.receipt_key, description.population
        hold_receipt(self._party.store, server.name, key, population, released.receipt)
        return released

    # --- true labels

    def _check_study(self, job: LabelDPJob, me: Member) -> None:
        """Raise ConfigError or DataError if the dataset with true labels cannot be read in the form of the model."""
        name = job.label_dp.evaluate_on
        if name not in self._party.settings.datasets:
            raise ConfigError(f"label_dp.evaluate_on: the active party has no dataset named {name}")
        dataset = self._party.settings.datasets[name]
        if dataset.label is None or dataset.label_kind != "number":
            raise ConfigError(f'datasets.{name}: label_dp.evaluate_on needs a label, and label_kind = "number"')
        trained = self._party.snapshots.source(me.dataset)
        require_offered(trained.record, dataset, name)
        self._party.snapshots.check_scored(name, trained.record, trained.model_columns)

    def _on_true_labels(self, model: LabelRegressionModel, rows: Rows, session: Session[LabelDPJob]) -> Study | None:
        """Return the rows of `evaluate_on` that were not trained on; None if no such row exists."""
        name, scale = session.job.label_dp.evaluate_on, model.standardiser
        if not name:
            return None
        snapshot = self._party.snapshots.require_current(name)
        source = snapshot.for_model(scale.record, scale.columns, scale.means(), labels=True)
        tell_of_unseen(source)
        trained = set(rows.ids[: rows.n_trained])
        ids: list[str] = []
        labels, predictions = [], []
        for batch in source.batches(persons=False):
            names = batch.ids.to_pylist()
            fresh = np.array([name not in trained for name in names])
            if fresh.any() and batch.labels is not None:
                ids += [name for name, is_fresh in zip(names, fresh, strict=True) if is_fresh]
                labels.append(batch.labels[fresh])
                predictions.append(model.predict(batch.features[fresh]))
        if not labels:
            log.warning("every row was trained on, so none is left to evaluate on", dataset=source.name)
            return None
        return Study(ids, np.concatenate(labels), np.concatenate(predictions))

    # --- files

    def _write(
        self,
        session: Session[LabelDPJob],
        rows: Rows,
        released: ReleasedLabels,
        fitted: Fitted,
        study: Study | None,
        report: LabelDPReport,
    ) -> None:
        """Write the model, the report, and the values of each row from which the report's figures are computed."""
        party, me = self._party, session.id
        model = {**fitted.fit.model.to_dict(), "privacy": report.privacy.to_dict()}
        party.write(me, "model.json", encode_json(party.stamp(model)))
        server = session.with_role("measurement").name
        party.write_report(me, report.content(session, server=server))
        kept = np.flatnonzero(released.kept)
        ids = np.array(rows.ids, dtype=object)
        labels = {"id": ids[kept].tolist(), "label": released.labels[kept]}
        if session.job.label_dp.debias:
            labels["label_debiased"] = fitted.labels[kept]
        party.write_table(me, "released_labels.csv", labels)
        if len(rows.test_features):
            predictions = {"id": rows.ids[rows.n_trained :], "prediction": fitted.test_predictions}
            party.write_table(me, "held_out_predictions.csv", predictions)
        if study is not None:
            true = {"id": study.ids, "label": study.labels, "prediction": study.predictions}
            party.write_table(me, "true_label_predictions.csv", true)


def cost_of(job: LabelDPJob, n_rows: int, n_columns: int) -> FitCost:
    """Return the largest cost of the fit, from public numbers."""
    return regression_cost(job.label_dp.regressor, job.label_dp.options, n_rows, n_columns)


# --- the request -----------------------------------------------------------------------------------


def rows_per_person(job: LabelDPJob, most: int) -> int:
    """Return the job's number, or else the number that the dataset allows; 0 if the unit is a row."""
    return job.required_privacy.max_rows_per_person or most


def mechanism_settings(
    job: LabelDPJob, description: measurement_pb2.DatasetDescription, *, server: str
) -> MechanismSettings:
    """Return the settings of the mechanism.

    Raises:
        ConfigError: the dataset's labels are not numbers.
    """
    if description.label_kind != "number":
        raise ConfigError(
            f"the dataset {description.dataset} of {server} has no labels that are numbers",
            hint='binary labels are released as an aggregate: set protocol = "walr"',
        )
    try:
        grid = LabelGrid(description.label_lo, description.label_hi)
    except ConfigError as error:
        raise MalformedMessage(culprit=server, field="label range", reason=error.message) from None
    return settings_on(grid, job, rows_per_person(job, description.max_rows_per_person))


def settings_on(grid: LabelGrid, job: LabelDPJob, max_rows_per_person: int) -> MechanismSettings:
    """Return settings whose epsilon is that of one row: all rows of a person together cost the job's epsilon."""
    privacy, chosen = job.required_privacy, job.label_dp
    delta = privacy.delta if chosen.mechanism == "gaussian" else 0.0
    epsilon = epsilon_of_row(chosen.mechanism, privacy.epsilon, delta, max(1, max_rows_per_person))
    options = {name: getattr(chosen, name) for name in MECHANISM_OPTIONS}
    return MechanismSettings(name=chosen.mechanism, grid=grid, epsilon=epsilon, delta=delta, **options)


# --- rows and fit ----------------------------------------------------------------------------------


def read_rows(source: Source, job: LabelDPJob, randomness: PublicRandomness, report: Report) -> Rows:
    source = source.with_recipes(lambda ids: ~hold_out(ids, job, randomness))
    train, test = read_split(source, job, randomness, report)
    ids = train.all_ids().to_pylist() + test.all_ids().to_pylist()
    return Rows(ids, _matrix(train, source), _matrix(test, source), source.feature_names, source.record)


def _matrix(part: RowPart, source: Source) -> Floats:
    return np.concatenate(part.features) if part.features else np.zeros((0, len(source.feature_names)))


@dataclass(frozen=True, repr=False)
class Study:
    """Rows of `label_dp.evaluate_on`, whose true labels the active party has: n ids, labels and predictions."""

    ids: list[str]
    labels: Floats
    predictions: Floats


def fit_rows(
    rows: Rows, released: ReleasedLabels, job: LabelDPJob, randomness: PublicRandomness, report: Report
) -> Fitted:
    chosen = job.label_dp
    kept = released.kept
    labels = np.full(len(rows.ids), np.nan)
    labels[kept] = released.mechanism.debias(released.labels[kept]) if chosen.debias else released.labels[kept]
    n, trained = rows.n_trained, kept[: rows.n_trained]
    if not trained.any():
        raise DataError("the labels of all training rows are withheld: each person has released others already")
    report("fit", 0, 0, "")
    fit = fit_regression(
        rows.train_features[trained],
        labels[:n][trained],
        columns=rows.columns,
        table=rows.table,
        regressor=chosen.regressor,
        options=chosen.options,
        seed=int(randomness.generator("fit").integers(2**32)),  # the largest range that scikit-learn takes
        debiased=chosen.debias,
    )
    report("evaluate", 0, 0, "")
    profile = NoiseProfile.of(released.mechanism, debias=chosen.debias)
    noise = mean_noise_variance(profile.means, profile.variances, labels[kept]) if chosen.debias else None
    predictions = fit.model.predict(rows.test_features) if len(rows.test_features) else np.zeros(0)
    held_out = kept[n:]
    constant = float(labels[:n][trained].mean())
    evaluation = (
        evaluate_released(labels[n:][held_out], predictions[held_out], noise, constant) if held_out.any() else {}
    )
    noise_std = noise.mean**0.5 if noise else profile.typical_std
    return Fitted(fit, profile, labels, predictions, evaluation, noise_std)
