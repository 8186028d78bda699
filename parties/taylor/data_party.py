"""A data party of a taylor job, active or passive, at the stations of a vertical training.

It keeps its own part of the model and its own report. About the others' rows it learns only which rows are common.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.randomisers import RandomiserPool
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import DataSeat, Progress, TaylorParameters
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.statistics.vertical.gradient_leaks import LEAST_NOISE
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, OptimiserSettings
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.account.account import Account
from blindfit.parties.data.source import Source
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.people import Digests
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.engine import IdleChannel, check_engine, randomisers_of, receive_key
from blindfit.parties.taylor.label_jitter import draw_jitter, unit_of
from blindfit.parties.taylor.label_layouts import check_label_bits, count_label_bits, name_fit
from blindfit.parties.taylor.leaks import leaks_of, refuse_few_batches, refuse_leaks
from blindfit.parties.taylor.parameters import (
    check_label_dp,
    keeps_noise_of,
    parameters_of,
    preparation_of,
    row_bound_steps,
)
from blindfit.parties.taylor.report import Calibration, TaylorReport
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import Charged, SameNoise, check_before, check_charge, event_of
from blindfit.parties.training.receipts import charge_and_prove, keep_proof
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.training.unit import UNDER_LABEL_DP, refuse_persons
from blindfit.parties.vertical.alignment import Alignment, align_rows, decode_mask, encode_mask
from blindfit.parties.vertical.evaluation import Tested, evaluate
from blindfit.parties.vertical.prepared import Preparation, Prepared, class_factors
from blindfit.parties.vertical.report import FitFigures, SelectionFigures
from blindfit.parties.vertical.scored_rows import Fit, ScoreQuota
from blindfit.parties.vertical.training import Agreed, Aligned, DataParty, Guard, Method, Read, Trained, Work
from blindfit.parties.vertical.writing import write_part, write_test_scores

log = structlog.get_logger(__name__)

POOL_BATCHES = 2  # randomisers that are made while a party waits, in batches of rows

TaylorAgreed: TypeAlias = Agreed[PublicKey, TaylorParameters]


@dataclass(frozen=True, repr=False)
class TaylorTrained(Trained):
    part: VerticalModelPart
    tested: Tested | None
    settled: bool


class Taylor(Method[TaylorJob, PublicKey, TaylorParameters, TaylorTrained]):
    def __init__(self, work: Work[TaylorJob]) -> None:
        super().__init__(work)
        self._quota = quota_of(self._party, self._session.me, self._session.published)
        self._charged: Charged | None = None

    @staticmethod
    def choose_preparation(job: TaylorJob) -> Preparation:
        return preparation_of(job)

    @staticmethod
    def check(party: Party, job: TaylorJob, me: Member, source: Source) -> None:
        """Refuse an engine that is not installed, rows that label DP does not fit, and scores that the party does not
        give.
        """
        check_engine(job, me.name)
        snapshot = party.snapshots.to_read(me.dataset, job.resumes)
        if job.privacy is not None:
            refuse_persons(source.settings, me.dataset, UNDER_LABEL_DP)
        if me.role == "active" and job.privacy is not None:
            dataset = party.settings.datasets[me.dataset]
            check_label_dp(dataset, me.dataset, job)
            check_before(party.settings, party.store, me.dataset, event_of(job.privacy), snapshot.id)
        quota = quota_of(party, me, snapshot)
        if quota is not None and job.test_fraction:
            quota.check()

    # --- guards

    @property
    def guards(self) -> Sequence[Guard[Any]]:
        return (
            Guard(Work, "a passive party's rows, of which it gives no scores", self.check_quota),
            Guard(Aligned, "a passive party's test rows, from the scores of many models", self.check_models_per_row),
            Guard(Aligned, "features of every data party, from a training that will be refused", self.check_fit),
            Guard(
                Agreed,
                "features and labels, from gradients over too few rows or with too little noise",
                self.check_leaks,
            ),
            Guard(Agreed, "features of every data party, from the gradients of many models", self.count_fit),
            Guard(Agreed, "labels, from all trainings on the same people together", self.count_label_bits),
            Guard(Agreed, "each label, by epsilon: the budget pays before a gradient is sent", self.charge),
        )

    async def check_quota(self, _work: Work[TaylorJob]) -> None:
        if self._quota is not None and self._job.test_fraction:
            self._quota.check()

    async def check_models_per_row(self, aligned: Aligned[PublicKey]) -> None:
        if self._quota is None or self._job.resumes:  # a resumed training may have given its scores already
            return
        if not self._quota.has_answered(self._session, self._fit(aligned)):  # the same training makes the same model
            test_positions = aligned.prepared.rows.in_snapshot[aligned.prepared.plan.test]
            self._quota.check_new_model(self._session, test_positions)

    async def check_leaks(self, agreed: TaylorAgreed) -> None:
        plan, me = agreed.prepared.plan, self._seats.me
        refuse_few_batches(self._job, plan, me)
        refuse_leaks(leaks_of(agreed.parameters, plan, self._job), self._job, me)

    async def count_fit(self, agreed: TaylorAgreed) -> None:
        """Count this training's gradients as one score. The same job on the same snapshots is the same question.

        The key node's noise leaves less of a row's score than a rounded score has, also after 1,000 epochs. Without
        this noise nothing bounds what they reveal. This holds against parties that follow the protocol.
        """
        self.make_quota().count_fit(self._session, self._fit(agreed))

    async def check_fit(self, aligned: Aligned[PublicKey]) -> None:
        """Check the same limit before any party counts: a training that one party refuses costs the others nothing."""
        self.make_quota().check_fit(self._session, self._fit(aligned))

    def _fit(self, aligned: Aligned[PublicKey]) -> Fit:
        prepared = aligned.prepared
        question = name_fit(self._session, prepared.plan, self._people(prepared.rows))
        bits = None if self._job.taylor.gradient_noise >= LEAST_NOISE else math.inf
        selection = self._job.selection
        models = 1 if selection is None else selection.models_on_a_row
        return replace(self.make_fit(prepared, question, bits), models=models)

    async def count_label_bits(self, agreed: TaylorAgreed) -> None:
        if self._work.is_active and self._job.privacy is None:
            count_label_bits(*self._layout(agreed))

    def _layout(
        self, agreed: TaylorAgreed
    ) -> tuple[Session[TaylorJob], PartySettings, Store, TaylorParameters, RowPlan, Digests, int]:
        people, plan = self._people(agreed.prepared.rows), agreed.prepared.plan
        party, epochs = self._party, self._job.most_epochs - agreed.first_epoch
        return self._session, party.settings, party.store, agreed.parameters, plan, people, epochs

    async def check_earlier_jobs(self, agreed: TaylorAgreed) -> float:
        await self.check_models_per_row(agreed)
        await self.check_fit(agreed)
        if not self._work.is_active:
            return 0.0
        if self._job.privacy is None:
            return check_label_bits(*self._layout(agreed))
        check_charge(self._session, self._party.settings, self._party.store, *self._draws(agreed))
        return 0.0

    async def charge(self, agreed: TaylorAgreed) -> None:
        if self._job.privacy is None:
            return
        payer = self._seats.chain[0]
        if not self._work.is_active:
            await keep_proof(self._party, self._session, payer)
            return
        draws = self._draws(agreed)
        self._charged = await charge_and_prove(self._party, self._session, self._seats.others, *draws)

    def _draws(self, agreed: TaylorAgreed) -> tuple[Sequence[str], SameNoise]:
        """Return names of all random draws, and the test that an earlier charge has the same noise."""
        same_noise = partial(keeps_noise_of, job=self._job, parameters=agreed.parameters)
        return (agreed.drawn, agreed.told[self._seats.key_node].drawn), same_noise

    # --- the stations

    async def begin(self, read: Read) -> tuple[PublicKey, Alignment]:
        session, seats, checkpoints = self._session, self._seats, self._work.checkpoints
        public_key = await receive_key(session, seats)
        if session.job.resumes:
            base = checkpoints.base(session.proposed_question)
            positions = np.array(base["positions"], dtype=np.int64)
            mask_enc = await asyncio.to_thread(
                decode_mask, base["mask_enc"], public_key, len(positions), seats.me, session.job.resume_option
            )
            return public_key, Alignment(positions, mask_enc)
        alignment = await align_rows(session, seats, self._work.source, read.rows, public_key, self._party)
        base = {"positions": alignment.positions.tolist(), "mask_enc": encode_mask(alignment.mask_enc)}
        if session.job.can_resume:
            checkpoints.begin(session.proposed_question, base)
        return public_key, alignment

    def make_parameters(self, told: Mapping[str, Ready], _prepared: Prepared) -> TaylorParameters:
        return parameters_of(self._job, self._seats, told)

    async def train(self, agreed: TaylorAgreed) -> TaylorTrained:
        session, checkpoints = self._session, self._work.checkpoints
        selected = await self._select(agreed)
        job = self._job if selected is None else self._job.choose(selected.point)
        parameters = agreed.parameters if selected is None else replace(agreed.parameters, epochs=job.taylor.epochs)
        seat = self._make_seat(agreed, job.taylor.optimiser_settings(), agreed.prepared.plan, parameters)
        if agreed.resumed:
            seat.optimiser.restore(checkpoints.arrays_at(agreed.resumed))
        progress = Progress(report=self._report)
        if job.can_resume:
            progress.keep = lambda epoch, go_on: checkpoints.keep_arrays(epoch, go_on, seat.optimiser.state())
        epochs = await taylor.run_data_party(
            seat,
            agreed.prepared.plan,
            parameters,
            IdleChannel(session.channel, seat.randomisers),
            first_epoch=agreed.first_epoch,
            progress=progress,
            in_thread=asyncio.to_thread,
        )
        self._work.clock.lap("train_s")
        return await self._evaluate(agreed, seat, epochs, selected)

    def _report(self, step: str, done: int, total: int) -> None:
        self._session.report(step, done, total, "batches")

    async def _select(self, agreed: TaylorAgreed) -> taylor.Selected | None:
        """Return the grid point that the folds choose; None without a grid."""
        selection = self._job.selection
        if selection is None:
            return None

        def make_seat(point: int, plan: RowPlan, parameters: TaylorParameters) -> DataSeat:
            return self._make_seat(agreed, selection.points[point].optimiser, plan, parameters)

        folds = taylor.Folds(selection, agreed.prepared.plan, agreed.parameters)
        channel = self._session.channel
        selected = await taylor.select_data_party(folds, make_seat, channel, self._report, asyncio.to_thread)
        self._work.clock.lap("select_s")
        return selected

    def _selection(self, agreed: TaylorAgreed, selected: taylor.Selected | None) -> SelectionFigures | None:
        selection = self._job.selection
        if selection is None or selected is None:
            return None
        return SelectionFigures.of(selection, selected.point, selected.figures, agreed.prepared.labels.scale)

    async def _evaluate(
        self, agreed: TaylorAgreed, seat: DataSeat, epochs: int, selected: taylor.Selected | None
    ) -> TaylorTrained:
        """Return the model part in the form for scores: rounded at a passive party, calibrated at the active party."""
        job, prepared, settled = self._job, agreed.prepared, has_settled(seat.optimiser)
        weights = seat.optimiser.weights
        bound = row_bound_steps(job, len(weights)) if job.privacy else None
        part = self.make_part(prepared, weights, bound, None if selected is None else selected.point)
        if self._quota is not None:
            part = replace(part, score_rounding=self._quota.rounding(part))
        tested = await evaluate(
            self._session,
            self._seats,
            prepared,
            part,
            job.taylor.threshold,
            self._quota,
            prepared.rows.in_snapshot,
            calibrate=job.calibrates,
        )
        if job.calibrates_by_sums and self._work.is_active:
            part = replace(part, slope=seat.platt.slope, offset=seat.platt.offset)
        if tested is not None:
            part = replace(part, slope=tested.platt.slope, offset=tested.platt.offset)
        evaluation, selection = None if tested is None else tested.evaluation, self._selection(agreed, selected)
        return TaylorTrained(epochs, evaluation, part, tested, settled, selection=selection)

    def make_report(self, agreed: TaylorAgreed, trained: TaylorTrained) -> TaylorReport:
        part, by_sums = trained.part, self._job.calibrates_by_sums and self._work.is_active
        return TaylorReport.of(
            self._session,
            agreed.prepared,
            FitFigures(trained.epochs, settled=trained.settled),
            trained.evaluation,
            self._charged,
            self._work.clock.laps,
            selection=trained.selection,
            calibration=Calibration(part.slope, part.offset) if by_sums else None,
        )

    def write(self, agreed: TaylorAgreed, trained: TaylorTrained, report: dict[str, Any]) -> None:
        party, session = self._party, self._session.id
        if trained.tested is not None:
            write_test_scores(party, session, agreed.prepared, trained.tested)
        write_part(party, session, trained.part, report)

    def _make_seat(
        self, agreed: TaylorAgreed, settings: OptimiserSettings, plan: RowPlan, parameters: TaylorParameters
    ) -> DataSeat:
        job, prepared, workers = self._job, agreed.prepared, self._party.workers
        grid, y = parameters.grid, prepared.labels.y
        features = grid.features(prepared.columns)
        if job.privacy is not None:  # rounding to the grid may have made a row longer than its bound
            features = clip_integer_rows(features, row_bound_steps(job, features.shape[1]))
        optimiser = Optimiser(
            settings,
            np.zeros(features.shape[1]),
            intercept=y is not None and job.taylor.intercept,
            n_batches=len(plan.batches),
            rows=grid.reals(features[plan.train]),
        )
        rows, epochs = max(map(len, plan.batches)), parameters.epochs - agreed.first_epoch
        public_key, me = agreed.begun, self._seats.me
        needed = taylor.randomisers_needed(me, public_key, plan, len(features), parameters, epochs)
        seat = DataSeat(
            me,
            features,
            optimiser,
            RandomiserPool(randomisers_of(job, public_key, rows, workers), POOL_BATCHES * rows, needed),
            system_uniform,
            mask_enc=agreed.alignment.mask_enc,
            workers=workers,
        )
        if y is not None:
            hidden = y if prepared.labels.hidden is None else prepared.labels.hidden
            seat.y, seat.label_terms = y, grid.label_terms(y, grid.loss.cross * (y - hidden))
            seat.factors = class_factors(prepared) if parameters.encrypted_factors else None
        return seat

    def _people(self, rows: PartyRows) -> Digests:
        """Return the digest of each aligned row's id; 0 for a slot without a row."""
        positions, people = rows.in_snapshot, self._session.published.people()
        return np.where(positions >= 0, people[np.maximum(positions, 0)], np.uint64(0))

    def draw_jitter(self, rows: PartyRows, common: PartyRows) -> NDArray[np.float64] | None:
        """Return the jitter of each aligned row. A person with the same label keeps it in every training."""
        job, party, dataset = self._session.job, self._party, self._session.me.dataset
        size = 0.0 if job.privacy else job.taylor.jitter
        if not size or rows.labels is None or common.labels is None:
            return None
        account, model = Account.of(party.settings, dataset), job.taylor.model
        if model == "linear":
            size *= unit_of(party.store, account, rows.labels, party.settings.datasets[dataset].label_range)
        jitter = draw_jitter(party.secret, account, model, size, self._people(common), common.labels)
        return np.where(common.there, jitter, 0.0)


def open_data_party(party: Party) -> DataParty[TaylorJob, PublicKey, TaylorParameters, TaylorTrained]:
    """Return the party's part. Workers start before the party reports that it is running, so an error in them shows at
    once.
    """
    _ = party.workers
    return DataParty(party, Taylor, TaylorJob.resume_option)


def quota_of(party: Party, me: Member, snapshot: Snapshot) -> ScoreQuota | None:
    """Return the quota of a passive party's scores; None at the active party, whose rows give no scores to others."""
    return ScoreQuota.of(party, snapshot) if me.role == "passive" else None


def has_settled(optimiser: Optimiser) -> bool:
    """Return True if a step of the last epoch was short enough by itself. The log and the party's own report show it.

    Others must not know: how far scores would move follows from the values of the rows.
    """
    if optimiser.shortened < optimiser.n_batches:
        return True
    log.warning("training has not settled: every step of its last epoch was shortened; lower taylor.learning_rate")
    return False
