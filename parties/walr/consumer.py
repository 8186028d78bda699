"""The active party: what its role adds to a party. It holds features, asks for an aggregate, fits, keeps the model."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics import walr_defaults
from blindfit.algorithms.statistics.logistic import QuantisedRows
from blindfit.algorithms.statistics.pretraining import Pretrained
from blindfit.algorithms.statistics.scaling import Standardiser, row_norms
from blindfit.algorithms.statistics.walr_fit import WalrFit, fit_released
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.parties.data.source import Source
from blindfit.parties.files import written
from blindfit.parties.measurement.servers import Released, release_sum
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.training.randomness import own_randomness
from blindfit.parties.training.rows import Report, check_features
from blindfit.parties.training.split import HELD_OUT_SCORES, read_split
from blindfit.parties.training.summary import told
from blindfit.parties.walr.release_file import BATCHES, write_release, write_rows
from blindfit.parties.walr.settings import WalrJob, WalrSettings
from blindfit.parties.walr.start import read_start
from blindfit.parties.work.clock import Clock

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PreparedRows:
    """Training rows as they are sent and trained on; held-out rows as they were read."""

    train: ConsumerRows
    standardiser: Standardiser
    norm_bound: int  # grid steps
    rows_clipped: int
    test_ids: Any  # pyarrow StringArray
    test_features: Floats

    def columns_with_weights(self, *, intercept: bool) -> list[int]:
        """Their places among those that are sent."""
        return SentColumns(self.standardiser, intercept).trained_on


@dataclass(frozen=True, repr=False)
class FittedModel:
    model: WALRModel
    fit: WalrFit
    noise_std: float  # of each coordinate of mu


class Consumer:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: WalrJob, me: Member) -> None:
        """What can be refused before a session starts: the dataset must open and have features."""
        source = check_features(self._party.snapshots.source(me.dataset), "an active party")
        read_start(job, self._party.base_dir, source)
        if job.walr.norm_bound != "auto":
            fixed_point.norm_bound_steps(job.walr.norm_bound, job.walr.frac_bits)

    # --- WALR

    async def run(self, session: Session[WalrJob]) -> dict[str, ParameterValue]:
        job, clock = session.job, Clock()
        source, randomness = session.published.source(), own_randomness(self._party, session)
        session.report("read rows", unit="rows")
        init = read_start(job, self._party.base_dir, source)
        prepared = await asyncio.to_thread(prepare_rows, source, job, randomness, session.report)
        clock.lap("prepare_s")
        released = await release_sum(self._party, session, prepared.train, prepared.norm_bound, job.walr.frac_bits)
        clock.lap("aggregate_s")
        fit = await asyncio.to_thread(fit_walr, prepared, released, job, randomness, session.report, init)
        clock.lap("fit_s")
        report = _report(session, prepared, released, fit, clock.laps)
        self._write(session, prepared, fit, report)
        if len(released.servers) == 1 and not job.encrypts_rows:  # the file is of a sum that the server knows
            start = init_weights(init, prepared.standardiser, job.walr)
            write_release(self._party, session, released, fit.model, fit.fit, start, randomness.seed_of(BATCHES))
            write_rows(self._party, session, released, prepared.train.ids)
        return _summary(report)

    def _write(
        self, session: Session[WalrJob], prepared: PreparedRows, fit: FittedModel, report: dict[str, Any]
    ) -> None:
        party, me = self._party, session.id
        written.write_json(party.file(me, "model.json"), {**fit.model.to_dict(), "privacy": report["privacy"]})
        written.write_json(party.file(me, "report.json"), report)
        if len(prepared.test_ids):
            probabilities = fit.model.probabilities(prepared.test_features)
            written.write_table(
                party.file(me, HELD_OUT_SCORES), {"id": prepared.test_ids, "probability": probabilities}
            )


# --- rows --------------------------------------------------------------------------------------------


def prepare_rows(source: Source, job: WalrJob, randomness: PublicRandomness, report: Report) -> PreparedRows:
    """Reads, splits, standardises, clips and rounds: everything about the rows that needs no peer."""
    train, test = read_split(source, job, randomness, report)
    report("prepare rows", 0, sum(map(len, train.features)), "rows")
    standardiser = Standardiser.fit(train.features, source.feature_names, at_least_one=True)
    columns = SentColumns(standardiser, job.walr.intercept)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy lets go of the interpreter's lock
        norms = np.concatenate(list(pool.map(lambda block: row_norms(columns.of(block)), train.features)))
    bound = _norm_bound(job.walr, norms)
    weights = _quantised(train.features, columns, bound, job.walr.frac_bits)
    return PreparedRows(
        train=ConsumerRows(tuple(train.all_ids().to_pylist()), weights),
        standardiser=standardiser,
        norm_bound=bound,
        rows_clipped=int((norms > bound * 2.0**-job.walr.frac_bits).sum()),
        test_ids=test.all_ids(),
        test_features=np.concatenate(test.features) if test.features else np.zeros((0, len(source.feature_names))),
    )


@dataclass(frozen=True)
class SentColumns:
    """Raw features -> what is sent. Made twice for each batch, so that memory never holds two copies of all.

    A column that is constant on the training rows is sent as 0: to leave it out would tell others of it.
    """

    standardiser: Standardiser
    intercept: bool

    def of(self, features: Floats) -> Floats:
        columns = np.zeros((len(features), self.width))
        columns[:, list(self.standardiser.kept)] = self.standardiser.transform(features)
        if self.intercept:
            columns[:, -1] = 1.0
        return columns

    @property
    def width(self) -> int:
        return len(self.standardiser.columns) + self.intercept

    @property
    def trained_on(self) -> list[int]:
        """The places of those that the model has weights for."""
        return [*self.standardiser.kept, *([self.width - 1] if self.intercept else [])]


def _norm_bound(settings: WalrSettings, norms: Floats) -> int:
    """In grid steps. Rows that are zero, and so have no typical norm, are no reason to end a job by."""
    if settings.norm_bound != "auto":
        return fixed_point.norm_bound_steps(settings.norm_bound, settings.frac_bits)
    if not np.quantile(norms, settings.norm_quantile):
        return fixed_point.norm_bound_steps(1.0, settings.frac_bits)
    return fixed_point.norm_bound_steps(
        walr_defaults.default_norm_bound(norms, settings.norm_quantile), settings.frac_bits
    )


def _quantised(blocks: list[Floats], columns: SentColumns, bound: int, frac_bits: int) -> IntegerRows:
    """Each raw batch is let go as soon as its integers are made."""
    rows = np.empty((sum(map(len, blocks)), columns.width), np.int32)
    starts = np.cumsum([0, *map(len, blocks)])

    def quantise(i: int) -> None:
        rows[starts[i] : starts[i + 1]] = fixed_point.quantise_rows(columns.of(blocks[i]), bound, frac_bits)
        blocks[i] = blocks[i][:0]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(quantise, range(len(blocks))))
    return rows


# --- fit ---------------------------------------------------------------------------------------------


def fit_walr(
    prepared: PreparedRows,
    released: Released,
    job: WalrJob,
    randomness: PublicRandomness,
    report: Report,
    init: Pretrained | None = None,
) -> FittedModel:
    """On exactly the integer rows that counted."""
    settings, aggregate, request = job.walr, released.aggregate, released.request
    values = prepared.train.weights if aggregate.kept.all() else prepared.train.weights[aggregate.kept]
    columns = SentColumns(prepared.standardiser, settings.intercept)
    start = init_weights(init, prepared.standardiser, settings)
    generator = randomness.generator(BATCHES)
    fit, noise_std = fit_sum(values, columns, aggregate.answer, request, settings, start, generator, report)
    norm_bound = request.norm_bound * 2.0**-request.frac_bits
    return FittedModel(
        WALRModel(prepared.standardiser, fit.result.weights, settings.intercept, norm_bound), fit, noise_std
    )


def init_weights(init: Pretrained | None, standardiser: Standardiser, settings: WalrSettings) -> Floats | None:
    return init.weights_for(standardiser, intercept=settings.intercept) if init else None


def fit_sum(
    values: IntegerRows,
    columns: SentColumns,
    answer: NoisySum,
    request: AggregateOpen,
    settings: WalrSettings,
    start: Floats | None,
    generator: np.random.Generator,
    report: Report,
) -> tuple[WalrFit, float]:
    """The fit, a function of these arguments alone, and the standard deviation of each coordinate of mu.

    Args:
        values: the rows that counted, as they were sent.
    """
    mu, noise_std = walr.step_6_mean(answer, request)
    trained_on = columns.trained_on
    if len(trained_on) < len(mu):  # the noisy sum of a column of zeros is noise
        values, mu = values[:, trained_on], mu[trained_on]
    norm_bound = request.norm_bound * 2.0**-request.frac_bits
    report("check feasibility", 0, 0, "")
    fit = fit_released(
        QuantisedRows(values, request.frac_bits),
        mu,
        noise_std=noise_std,
        norm_bound=norm_bound,
        epsilon=request.epsilon,
        settings=settings.solver_settings(0.0),
        l2=settings.l2,
        treatment=settings.mu,
        init=start,
        generator=generator,
        on_progress=lambda iteration, _: report("fit", iteration, settings.max_iterations or 0, "iterations"),
    )
    return fit, noise_std


# --- what is told ---------------------------------------------------------------------------------------


def _report(
    session: Session[WalrJob], prepared: PreparedRows, released: Released, fitted: FittedModel, laps: dict[str, float]
) -> dict[str, Any]:
    answer, request = released.aggregate.answer, released.request
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "job": dict(session.parameters),
        "rows": {
            "trained": int(answer.rows_kept),
            "held_out": len(prepared.test_ids),
            "clipped": prepared.rows_clipped,
            "not_counted": int(request.n_rows - answer.rows_kept),
            "features": len(prepared.standardiser.columns),
            "dropped_columns": list(prepared.standardiser.dropped),
        },
        "privacy": {
            **released.privacy(),
            "noise_std_of_mean": fitted.noise_std,
        },
        "fit": {
            "solver": fitted.fit.result.solver,
            "iterations": fitted.fit.result.iterations,
            "converged": bool(fitted.fit.result.converged),
            "reason": fitted.fit.result.reason,
            "gradient_norm": fitted.fit.result.gradient_norm,
            "objective_history": list(fitted.fit.result.objective_history),
            "l2": fitted.fit.l2,
            "mu": session.job.walr.mu,
            "feasible": fitted.fit.feasibility.feasible,
            "feasibility": fitted.fit.feasibility.reason,
            "mean_prediction": _mean_prediction(prepared, fitted),
        },
        "bytes_sent": released.aggregate.bytes_sent,
        "timing": laps,
        **released.told(),
    }


def _mean_prediction(prepared: PreparedRows, fitted: FittedModel) -> float | None:
    """On the held-out rows, beside the base rate that the model was calibrated to."""
    if not len(prepared.test_ids):
        return None
    return float(fitted.model.probabilities(prepared.test_features).mean())


# A reason of infeasibility may quote a coordinate of the noisy mean, and the coordinator never sees a sum.
OF_THE_SUM = ("objective_history", "receipt", "mean_prediction", "feasibility")
# How many were clipped, which columns are constant, and a hash of them.
OF_THE_ROWS = ("clipped", "dropped_columns", "request_id")


def _summary(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no weight, no score, no sum."""
    parts = ("rows", "privacy", "fit", "timing")
    return {**told(report, parts, OF_THE_SUM + OF_THE_ROWS), "bytes_sent": report["bytes_sent"]}
