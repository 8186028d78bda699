"""A data party of a vertical job, active or passive: aligns, checks what its rows would give away, trains, evaluates.

What it keeps is its own part of the model and its own report; of the others' rows it never has more than which are
common.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.randomisers import RandomiserPool
from blindfit.algorithms.protocols import ready, taylor
from blindfit.algorithms.protocols.ready import Ready, Stored
from blindfit.algorithms.protocols.taylor import DataSeat, Progress, TaylorParameters
from blindfit.algorithms.randomness import keyed_normals, system_uniform
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser
from blindfit.parties.data.source import Source
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.snapshots.snapshots import Snapshot
from blindfit.parties.store import charging
from blindfit.parties.taylor.engine import check_engine, randomisers_of, receive_key
from blindfit.parties.taylor.idle import IdleChannel
from blindfit.parties.taylor.label_layouts import count_label_bits
from blindfit.parties.taylor.leaks import leaks_of, refuse_leaks
from blindfit.parties.taylor.parameters import (
    check_label_dp,
    keeps_noise_of,
    parameters_of,
    preparation_of,
    row_bound_steps,
)
from blindfit.parties.taylor.report import Calibration, TaylorReport
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import Charged, population_of
from blindfit.parties.training.randomness import drawn_together, named
from blindfit.parties.training.receipts import charge_and_prove, keep_proof
from blindfit.parties.training.rows import PartyRows, check_features, read_rows
from blindfit.parties.training.unit import UNDER_LABEL_DP, refuse_persons
from blindfit.parties.vertical.alignment import Aligned, align_rows, order_of, restored_mask, stored_mask
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.vertical.class_weights import class_factors
from blindfit.parties.vertical.evaluation import evaluate
from blindfit.parties.vertical.prepared import Prepared, prepare, tell_of_clipping
from blindfit.parties.vertical.report import FitFigures
from blindfit.parties.vertical.running import Running
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.vertical.writing import write_part
from blindfit.parties.work.clock import Clock

log = structlog.get_logger(__name__)

POOL_BATCHES = 2  # randomisers made while a party waits, in batches of rows


class DataParty:
    def __init__(self, party: Party) -> None:
        self._party, self._running = party, Running(party.settings.name, TaylorJob.resume_option)
        self._workers = party.workers  # now, before the party says that it is up: what is wrong with them shows here

    def check(self, job: TaylorJob, me: Member) -> None:
        """What can be refused before a session starts: the dataset must open, with features, and a label where due."""
        check_engine(job, me.name)
        source = check_features(self._party.snapshots.source(me.dataset), "a data party")
        if me.role == "active" and source.settings.label is None:
            raise ConfigError(f"datasets.{me.dataset}.label is missing: the active party has the labels")
        if me.role == "active" and (source.settings.label_kind == "binary") != (job.taylor.model == "logistic"):
            raise ConfigError(f'datasets.{me.dataset}.label_kind does not go with taylor.model = "{job.taylor.model}"')
        if job.privacy is not None:
            refuse_persons(source.settings, me.dataset, UNDER_LABEL_DP)
        if me.role == "active" and job.privacy is not None:
            dataset = self._party.settings.datasets[me.dataset]
            check_label_dp(dataset, me.dataset, job)
            charging.check_rollbacks(self._party.store.reader(), population_of(dataset, me.dataset))
        self._running.refuse_another(job.resumes)
        refuse_unknown(self._party.data_dir, job, me.name)
        self._quota(job, me, self._party.snapshots.published(me.dataset), source.feature_names)

    def _quota(self, job: TaylorJob, me: Member, snapshot: Snapshot, columns: Sequence[str]) -> ScoreQuota | None:
        """Of a passive party.

        Raises:
            ConfigError: any score would tell its rows, and test rows would be scored.
        """
        if me.role != "passive":
            return None
        quota = ScoreQuota(self._party, me.dataset, snapshot.content(columns))
        if job.test_fraction:
            quota.check()
        return quota

    async def run(self, session: Session[TaylorJob]) -> dict[str, ParameterValue]:
        with self._running.alone(session.job.resumes or session.id):
            return await self._run(session)

    async def _run(self, session: Session[TaylorJob]) -> dict[str, ParameterValue]:
        seats, job, clock = Seats.of(session), session.job, Clock()
        active = seats.me == seats.chain[0]
        source, dataset = session.published.source().filled(), self._party.settings.datasets[session.me.dataset]
        quota = self._quota(job, session.me, session.published, source.feature_names)
        rows = await asyncio.to_thread(read_rows, source, labels=active, report=session.report)
        randomness = await drawn_together(self._party, session, seats.chain)
        clock.lap("read_s")
        public_key = await receive_key(session, seats)
        checkpoints = Checkpoints.of(self._party.data_dir, job, session.id, self._party.vault)
        self._party.noted(checkpoints.directory, session.id)
        aligned = await self._begin(session, seats, source, rows, public_key, checkpoints)
        clock.lap("align_s")
        common = rows.take(aligned.positions)
        preparation = preparation_of(job)
        order = order_of(common, aligned, randomness, preparation.held_out(len(aligned.positions)))
        n_columns = len(source.feature_names) + (active and job.taylor.intercept)
        prepared = await asyncio.to_thread(
            prepare,
            common,
            source.feature_names,
            preparation,
            order,
            active=active,
            label_range=dataset.label_range,
            table=source.record,
        )
        tell_of_clipping(session.me.dataset, prepared)
        if quota is not None and not job.resumes:  # one that is resumed may have given its scores before it stopped
            quota.check_new_model(session, common.in_snapshot[prepared.plan.test])
        epochs_kept, layout = ",".join(map(str, checkpoints.epochs())), named(randomness)
        mine = Ready(n_columns, epochs_kept, layout)
        told = await ready.run_party(mine, seats.me, seats.others, session.channel)
        parameters = parameters_of(job, seats, told)
        refuse_leaks(leaks_of(parameters, prepared.plan, job), job, seats.me)
        if active and job.privacy is None:
            count_label_bits(session, self._party.store, parameters, prepared.plan, common.in_snapshot)
        drawn = layout, told[seats.key_node].drawn
        charged = await self._charge(session, seats, drawn, parameters) if job.privacy is not None else None
        resumed = common_epoch({name: said.checkpoint for name, said in told.items()})
        first_epoch = checkpoints.first_epoch(resumed, parameters.epochs)
        seat = self._seat(session, prepared, parameters, public_key, aligned, parameters.epochs - first_epoch)
        if resumed:
            seat.optimiser.restore(checkpoints.arrays_at(resumed))
        clock.lap("prepare_s")
        epochs = await taylor.run_data_party(
            seat,
            prepared.plan,
            parameters,
            IdleChannel(session.channel, seat.randomisers),
            first_epoch=first_epoch,
            progress=Progress(
                report=lambda step, done, total: session.report(step, done, total, "batches"),
                keep=lambda epoch, go_on: checkpoints.keep_arrays(epoch, go_on, seat.optimiser.state()),
            ),
            in_thread=asyncio.to_thread,
        )
        clock.lap("train_s")
        settled = has_settled(seat.optimiser)
        part = model_part(session, prepared, seat)
        if quota is not None:
            part = replace(part, score_rounding=quota.rounding(part))
        tested = await evaluate(
            session,
            seats,
            prepared,
            part,
            job.taylor.threshold,
            quota,
            common.in_snapshot,
            calibrate=job.calibrates,
        )
        if job.calibrates_by_sums and active:
            part = replace(part, slope=seat.platt.slope, offset=seat.platt.offset)
        if tested is not None:
            part = replace(part, slope=tested.platt.slope, offset=tested.platt.offset)
        session.channel.require_all_read(but=Stored)  # while the training could still be resumed
        clock.lap("evaluate_s")
        evaluation = None if tested is None else tested.evaluation
        calibration = Calibration(part.slope, part.offset) if job.calibrates_by_sums and active else None
        fit = FitFigures(epochs, settled=settled)
        report = TaylorReport.of(session, prepared, fit, evaluation, charged, clock.laps, calibration=calibration)
        write_part(self._party, session.id, prepared, part, tested, report.content(session))
        await ready.run_stored(epochs, seats.others, session.channel)
        checkpoints.remove()
        return report.shown_to_coordinator()

    async def _charge(
        self, session: Session[TaylorJob], seats: Seats, drawn: Sequence[str], parameters: TaylorParameters
    ) -> Charged | None:
        payer = seats.chain[0]
        if seats.me == payer:
            same_noise = partial(keeps_noise_of, job=session.job, parameters=parameters)
            return await charge_and_prove(self._party, session, seats.others, drawn, same_noise)
        await keep_proof(self._party, session, payer)
        return None

    async def _begin(
        self,
        session: Session[TaylorJob],
        seats: Seats,
        source: Source,
        rows: PartyRows,
        public_key: PublicKey,
        checkpoints: Checkpoints,
    ) -> Aligned:
        """Aligns, or takes up the order of the training that is resumed."""
        if session.job.resumes:
            base = checkpoints.base(session.question)
            positions = np.array(base["positions"], dtype=np.int64)
            mask_enc = await asyncio.to_thread(
                restored_mask, base["mask_enc"], public_key, len(positions), seats.me, session.job.resume_option
            )
            return Aligned(positions, mask_enc)
        aligned = await align_rows(session, seats, source, rows, public_key, self._party.secret)
        base = {"positions": aligned.positions.tolist(), "mask_enc": stored_mask(aligned.mask_enc)}
        checkpoints.begin(session.question, base)
        return aligned

    def _seat(
        self,
        session: Session[TaylorJob],
        prepared: Prepared,
        parameters: TaylorParameters,
        public_key: PublicKey,
        aligned: Aligned,
        epochs: int,
    ) -> DataSeat:
        job, grid = session.job, parameters.grid
        features = grid.features(prepared.columns)
        if job.privacy is not None:  # rounding to the grid may have made a row longer than its bound
            features = clip_integer_rows(features, row_bound_steps(job, features.shape[1]))
        optimiser = Optimiser(
            job.taylor.optimiser_settings(),
            np.zeros(features.shape[1]),
            intercept=prepared.labels.y is not None and job.taylor.intercept,
            n_batches=len(prepared.plan.batches),
            rows=grid.reals(features[prepared.plan.train]),
        )
        rows = max(map(len, prepared.plan.batches))
        name = parameters.data_parties[0] if prepared.labels.y is not None else self._party.settings.name
        needed = taylor.randomisers_needed(name, public_key, prepared.plan, len(features), parameters, epochs)
        seat = DataSeat(
            name,
            features,
            optimiser,
            RandomiserPool(randomisers_of(job, public_key, rows, self._workers), POOL_BATCHES * rows, needed),
            system_uniform,
            mask_enc=aligned.mask_enc,
            workers=self._workers,
        )
        if prepared.labels.y is not None:
            seat.y = prepared.labels.y
            seat.label_terms = grid.label_terms(prepared.labels.y, self._jitter(session, prepared.rows.in_snapshot))
            seat.factors = class_factors(prepared) if parameters.encrypted_factors else None
        return seat

    def _jitter(self, session: Session[TaylorJob], positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of each aligned row: drawn once for the row in its snapshot and this size of jitter, as two draws for one
        label, or one draw in two sizes, would tell the label.
        """
        size = 0.0 if session.job.privacy else session.job.taylor.jitter
        if not size:
            return np.zeros(len(positions))
        key = self._party.secret.derive(
            "jitter of a snapshot", bytes.fromhex(session.published.id), struct.pack("<d", size)
        )
        drawn = size * keyed_normals(key, "jitter", session.published.row.rows)
        return np.where(positions >= 0, drawn[np.maximum(positions, 0)], 0.0)


def has_settled(optimiser: Optimiser) -> bool:
    """Return whether a step of the last epoch was short enough by itself; the log and the party's own report say so.

    Others must not know: how far scores would move follows from the values of the rows.
    """
    if optimiser.shortened < optimiser.n_batches:
        return True
    log.warning("training has not settled: every step of its last epoch was shortened; lower taylor.learning_rate")
    return False


def model_part(session: Session[TaylorJob], prepared: Prepared, seat: DataSeat) -> VerticalModelPart:
    job = session.job
    weights, has_intercept = seat.optimiser.weights, seat.optimiser.intercept
    return VerticalModelPart(
        party=session.me.name,
        role=session.me.role,
        model=job.taylor.model,
        data_parties=Seats.of(session).chain,
        standardiser=prepared.standardiser,
        weights=(weights[:-1] if has_intercept else weights)[list(prepared.standardiser.kept)],
        intercept=float(weights[-1]) if has_intercept else None,
        row_bound=row_bound_steps(job, len(weights)) if job.privacy else None,
        label_mean=prepared.labels.mean,
        label_scale=prepared.labels.scale,
    )
