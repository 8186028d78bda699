"""A data party of a falcon job, active or passive: aligns, puts its rows in, trains in shares, gets its weights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.fixed_point import Fixed, clip_integer_rows
from blindfit.algorithms.messages import Channel, ParameterValue
from blindfit.algorithms.protocols import falcon, ready
from blindfit.algorithms.protocols.falcon import (
    FalconParameters,
    Held,
    Model,
    Progress,
    TestErrors,
    TestFigures,
    Trained,
)
from blindfit.algorithms.protocols.ready import Ready, Stored
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, VerticalModelPart
from blindfit.parties.falcon.answered import Answer, Answers, epochs_answered, said
from blindfit.parties.falcon.dealt import Dealt
from blindfit.parties.falcon.draws import Draws
from blindfit.parties.falcon.kept import dropped_when_somebody_deviates, from_state, to_state
from blindfit.parties.falcon.parameters import parameters_of, preparation_of
from blindfit.parties.falcon.privacy import check_dataset, row_bound_steps
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.falcon.shared_weights import AnyPart, read_model, shared_part, with_score_bits, write_shared
from blindfit.parties.falcon.weight_bits import (
    count_end,
    count_weights,
    weights_share,
)
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.store import charging
from blindfit.parties.training.budget import population_of
from blindfit.parties.training.randomness import drawn_together, named
from blindfit.parties.training.rows import PartyRows, check_features, read_rows
from blindfit.parties.vertical.alignment import Aligned, align_by_id, order_of
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.vertical.class_weights import class_weights
from blindfit.parties.vertical.prepared import Prepared, prepare, tell_of_clipping
from blindfit.parties.vertical.report import report_of, summary_of
from blindfit.parties.vertical.running import Running
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.vertical.writing import write_part, write_test_rows
from blindfit.parties.work.clock import Clock
from blindfit.parties.work.own_thread import in_own_thread

Positions = NDArray[np.int64]


class DataParty:
    def __init__(self, party: Party) -> None:
        self._party, self._running = party, Running(party.settings.name, FalconJob.resume_option)

    def check(self, job: FalconJob, me: Member) -> None:
        """What can be refused before a session starts: the dataset must open, with features, and labels where due."""
        source = check_features(self._party.snapshots.source(me.dataset), "a data party")
        if me.role == "active" and source.settings.label is None:
            raise ConfigError(f"datasets.{me.dataset}.label is missing: the active party has the labels")
        if me.role == "active" and (source.settings.label_kind == "binary") != (job.falcon.model == "logistic"):
            raise ConfigError(f'datasets.{me.dataset}.label_kind does not go with falcon.model = "{job.falcon.model}"')
        if reason := job.too_few_epochs(self._party.settings.policy.min_epochs):
            raise PolicyRefused(party=me.name, field="falcon.epochs", reason=reason)
        if job.privacy is not None:
            dataset = self._party.settings.datasets[me.dataset]
            check_dataset(job, source, dataset)
            charging.check_rollbacks(self._party.store.reader(), population_of(dataset, me.dataset))
        self._running.refuse_another(job.resumes)
        refuse_unknown(self._party.data_dir, job, me.name)

    async def run(self, session: Session[FalconJob]) -> dict[str, ParameterValue]:
        with self._running.alone(session.job.resumes or session.id):
            return await self._run(session)

    async def _run(self, session: Session[FalconJob]) -> dict[str, ParameterValue]:
        seats, job, clock = Seats.of(session), session.job, Clock()
        active = seats.me == seats.chain[0]
        source, dataset = session.published.source().filled(), self._party.settings.datasets[session.me.dataset]
        rows = await asyncio.to_thread(read_rows, source, labels=active, report=session.report)
        randomness = await drawn_together(self._party, session, seats.chain)
        clock.lap("read_s")
        checkpoints = Checkpoints.of(self._party.data_dir, job, session.id, self._party.vault)
        self._party.noted(checkpoints.directory, session.id)
        dealt, positions = await self._begin(session, seats, rows, checkpoints)
        clock.lap("align_s")
        common = rows.take(positions)
        chosen = preparation_of(job)
        order = order_of(common, Aligned(positions), randomness, chosen.held_out(len(positions)))
        prepared = await asyncio.to_thread(
            prepare,
            common,
            source.feature_names,
            chosen,
            order,
            active=active,
            label_range=dataset.label_range,
            table=source.record if job.privacy is None else source.record.public(),
        )
        tell_of_clipping(session.me.dataset, prepared)
        answers = Answers(self._party, session, named(randomness))
        answer = None if job.resumes else answers.kept()
        epochs_kept = ",".join(map(str, checkpoints.epochs()))
        mine = Ready(prepared.columns.shape[1], said(answer, epochs_kept), named(randomness))
        told = await ready.run_party(mine, seats.me, seats.others, session.channel)
        clock.lap("prepare_s")
        parameters = parameters_of(job, seats, told, prepared.plan)
        draws = None
        if job.privacy is not None:
            draws = Draws(self._party, session, (named(randomness), *source.feature_names))
        if answer is not None and epochs_answered(told[name] for name in seats.chain):
            part = read_model(self._party, job, answer.session)
        else:
            resumed = common_epoch({name: party.checkpoint for name, party in told.items()})
            if draws is not None:
                await draws.charge(seats)
            trained = await self._train(session, seats, prepared, parameters, dealt, checkpoints, resumed, clock, draws)
            part = self._part(session, seats, source.feature_names, prepared, parameters, trained)
            evaluation = evaluation_of(trained.tested, prepared, job.falcon.threshold)
            answer = Answer(session.id, trained.epochs, evaluation)
        clock.lap("evaluate_s")
        charged = None if draws is None else draws.described()
        report = report_of(session, source, prepared, answer.epochs, answer.evaluation, charged)
        if parameters.noise is not None:
            report["fit"]["weight_noise_std"] = parameters.noise_in_weights(parameters.noise)
        report |= {"timing": clock.laps, "weights": weights_of(parameters), "answered_in": answer.session}
        session.channel.require_all_read(but=Stored)  # while the training could still be resumed
        if isinstance(part, SharedModelPart):
            write_shared(self._party, session.id, part, report)
        else:
            write_part(self._party, session.id, prepared, part, None, report)
        if active and len(prepared.plan.test):
            write_test_rows(self._party, session.id, prepared)
        answers.keep(answer)
        await ready.run_stored(answer.epochs, seats.others, session.channel)
        checkpoints.remove()
        return summary_of(report)

    def _part(
        self,
        session: Session[FalconJob],
        seats: Seats,
        columns: Sequence[str],
        prepared: Prepared,
        parameters: FalconParameters,
        trained: Trained,
    ) -> AnyPart:
        part: AnyPart
        if parameters.weights_stay_shared:
            part = shared_part(session, seats, prepared, parameters, trained)
        else:
            part = model_part(session, seats, prepared, trained)
        if session.me.role == "active":
            return part
        quota = ScoreQuota(self._party, session.me.dataset, session.published.content(columns))
        return with_score_bits(part, quota)

    async def _begin(
        self, session: Session[FalconJob], seats: Seats, rows: PartyRows, checkpoints: Checkpoints
    ) -> tuple[Dealt, Positions]:
        """What is dealt once, and the order of the rows: of a new training, or of the one that is resumed."""
        if session.job.resumes:
            refuse_unknown(self._party.data_dir, session.job, seats.me)  # it may have ended since it was proposed
            base = checkpoints.base(session.question)
            return Dealt.of_base(base), np.array(base["positions"], dtype=np.int64)
        dealt = await Dealt.receive(session.job.falcon, seats, session.channel)
        positions = (await align_by_id(session, seats, rows)).positions
        checkpoints.begin(session.question, dealt.to_base() | {"positions": positions.tolist()})
        return dealt, positions

    async def _train(
        self,
        session: Session[FalconJob],
        seats: Seats,
        prepared: Prepared,
        parameters: FalconParameters,
        dealt: Dealt,
        checkpoints: Checkpoints,
        resumed: int,
        clock: Clock,
        draws: Draws | None,
    ) -> Trained:
        """Raises:
        MacCheckFailed: and nothing of the training is kept, nor its part of the MAC key.
        PolicyRefused: its weights would tell too much, together with those that were opened before.
        BudgetExhausted: likewise, under differential privacy.
        """
        checkpoints.drop_after(resumed)
        is_done = bool(resumed) and checkpoints.first_epoch(resumed, parameters.epochs) == parameters.epochs
        counts = seats.me == seats.chain[0] and draws is None
        if counts:
            count_end(session, self._party.store, parameters, 0 if is_done else parameters.epochs - resumed)
        model: Model | None = None
        if resumed:
            model = from_state(checkpoints.at(resumed), resumed, session.job.resume_option, dealt.public_key)

        def before_opening() -> None:
            if counts and not parameters.weights_stay_shared:
                count_weights(session, self._party.store, parameters)
            if draws is not None:
                draws.open()

        def report(step: str, done: int, total: int) -> None:
            session.report(step, done, total, "batches" if step.startswith("epoch") else "")
            if step == "open weights":
                clock.lap("train_s")
            elif step.startswith("epoch") and "put_in_s" not in clock.laps:
                clock.lap("put_in_s")

        progress = Progress(
            report=report,
            keep=lambda model, go_on: checkpoints.keep(model.epochs, go_on, to_state(model)),
            before_opening=before_opening,
            check_begun=checkpoints.check_begun,
        )
        row_bound = row_bound_steps(session.job, prepared.columns.shape[1]) if session.job.privacy else None

        async def trained(channel: Channel) -> Trained:
            with dropped_when_somebody_deviates(checkpoints):
                return await falcon.run_data_party(
                    seats.me,
                    held_of(prepared, parameters, row_bound),
                    parameters,
                    dealt.seed,
                    session.id,
                    channel,
                    progress=progress,
                    model=model,
                    is_done=is_done,
                    key_share=dealt.key_share,
                )

        return await in_own_thread(session.channel, trained)


def held_of(prepared: Prepared, parameters: FalconParameters, row_bound: int | None = None) -> Held:
    """What is put in, in the order of batches, validation and test.

    Args:
        row_bound: of each row, in steps: rounding to the grid may have made it longer.
    """
    plan = prepared.plan
    order = np.concatenate([*plan.batches, plan.validation, plan.test])
    features = Fixed.from_reals(prepared.columns[order], FEATURE_BITS).values
    if row_bound is not None:
        features = clip_integer_rows(features, row_bound)
    y = prepared.labels.y
    if y is None:
        return Held(features)
    if parameters.is_linear:
        return Held(features, Fixed.from_reals(y[order], parameters.label_bits).values)
    return Held(features, (y[order] > 0).astype(np.int64), class_weights(prepared) if parameters.weighted else None)


def model_part(session: Session[FalconJob], seats: Seats, prepared: Prepared, trained: Trained) -> VerticalModelPart:
    weights = trained.weights
    has_intercept = session.me.role == "active" and session.job.falcon.intercept
    return VerticalModelPart(
        party=session.me.name,
        role=session.me.role,
        model=session.job.falcon.model,
        data_parties=seats.chain,
        standardiser=prepared.standardiser,
        weights=(weights[:-1] if has_intercept else weights)[list(prepared.standardiser.kept)],
        intercept=float(weights[-1]) if has_intercept else None,
        label_mean=prepared.labels.mean,
        label_scale=prepared.labels.scale,
        row_bound=row_bound_steps(session.job, len(weights)) if session.job.privacy else None,
    )


def weights_of(parameters: FalconParameters) -> dict[str, Any]:
    """What the report says of the opened weights; bits are None where they are not rounded, and those of labels where
    differential privacy bounds what they tell.
    """
    if parameters.weights_stay_shared:
        return {"in_shares": True, "opened_bits": 0, "label_bits": 0.0}
    bits = None if parameters.kept_bits is None else falcon.opened_bits(parameters.kept_bits)
    return {"opened_bits": bits, "label_bits": weights_share(parameters) if parameters.noise is None else None}


def evaluation_of(
    tested: TestFigures | TestErrors | None, prepared: Prepared, threshold: float
) -> dict[str, Any] | None:
    """What the active party makes of the opened figures and its labels; None where they are of one class alone."""
    if tested is None or prepared.rows.labels is None:
        return None
    if isinstance(tested, TestErrors):
        return _evaluation_of_values(tested, prepared)
    positive = prepared.rows.labels[prepared.plan.test] > 0
    rows, with_label = len(positive), int(positive.sum())
    pairs = with_label * (rows - with_label)
    if not pairs:
        return None
    right = tested.true_positives + rows - with_label - (tested.positives - tested.true_positives)
    return {
        "rows": rows,
        "auc": tested.auc_pairs / pairs,
        "ks": tested.ks_pairs / pairs,
        "accuracy": right / rows,
        "log_loss": tested.loss / rows,
        "threshold": threshold,
        "confusion": {
            "true_positives": tested.true_positives,
            "false_positives": tested.positives - tested.true_positives,
            "true_negatives": rows - with_label - (tested.positives - tested.true_positives),
            "false_negatives": with_label - tested.true_positives,
        },
    }


def _evaluation_of_values(tested: TestErrors, prepared: Prepared) -> dict[str, Any] | None:
    """Of labels as they were trained on, clipped."""
    labels = prepared.labels
    if labels.y is None:
        return None
    y = labels.y[prepared.plan.test]
    mse, variance = tested.squares / len(y), float(np.var(y))
    return {
        "rows": len(y),
        "mse": mse * labels.scale**2,
        "r2": 1 - mse / variance if variance > 0 else 0.0,
    }
