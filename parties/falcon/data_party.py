"""A data party of a falcon job, active or passive: it aligns, shares its rows, trains in shares, and gets its
weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from blindfit.algorithms.fixed_point import Fixed, clip_integer_rows
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import (
    LEAST_TEST_ROWS,
    FalconParameters,
    Held,
    Model,
    Progress,
    TestErrors,
    TestFigures,
)
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.data.source import Source
from blindfit.parties.falcon.answered import Answer, Answers, epochs_answered, tell_checkpoints
from blindfit.parties.falcon.draws import Draws
from blindfit.parties.falcon.kept import Dealt, drop_when_somebody_deviates, from_state, to_state
from blindfit.parties.falcon.parameters import parameters_of, preparation_of
from blindfit.parties.falcon.privacy import check_dataset, event_of, row_bound_steps
from blindfit.parties.falcon.report import FalconReport, WeightFigures
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.falcon.shared_weights import AnyPart, make_shared_part, read_model, with_score_bits, write_shared
from blindfit.parties.falcon.weight_bits import (
    check_end,
    count_end,
    count_weights,
    grid_bits_of_a_row,
    score_bits_of_a_weight,
    weights_bits,
)
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.training.budget import check_before
from blindfit.parties.training.randomness import name_randomness
from blindfit.parties.vertical.alignment import Alignment, align_by_id
from blindfit.parties.vertical.checkpoints import refuse_unknown
from blindfit.parties.vertical.prepared import Preparation, Prepared, class_weights
from blindfit.parties.vertical.report import FitFigures, SelectionFigures
from blindfit.parties.vertical.scored_rows import FIGURES, GRID, Fit
from blindfit.parties.vertical.training import (
    Agreed,
    Compared,
    Computed,
    DataParty,
    Guard,
    Method,
    Read,
    Trained,
    is_done,
    pass_guards,
)
from blindfit.parties.vertical.writing import write_part, write_test_rows
from blindfit.parties.work.own_thread import in_own_thread


@dataclass(frozen=True, repr=False)
class Begun:
    """State of a data party from the beginning of its training.

    Attributes:
        dealt: values that the key node deals once for the training.
        answer: this party's result of an earlier training that answers the job.
    """

    dealt: Dealt
    answer: Answer | None


@dataclass(frozen=True, repr=False)
class FalconTrained(Trained):
    """The result of a training.

    Attributes:
        session: session in which the weights were opened.
    """

    part: AnyPart
    session: str


FalconAgreed: TypeAlias = Agreed[Begun, FalconParameters]
FalconComputed: TypeAlias = Computed[Begun, FalconParameters]


class Falcon(Method[FalconJob, Begun, FalconParameters, FalconTrained]):
    @staticmethod
    def check(party: Party, job: FalconJob, me: Member, source: Source) -> None:
        """Refuse rows that differential privacy does not fit."""
        if job.privacy is not None:
            dataset = party.settings.datasets[me.dataset]
            check_dataset(job, source, dataset)
            snapshot = party.snapshots.to_read(me.dataset, job.resumes)
            check_before(party.settings, party.store, me.dataset, event_of(job), snapshot.id)

    @staticmethod
    def choose_preparation(job: FalconJob) -> Preparation:
        return preparation_of(job)

    # --- guards

    @property
    def guards(self) -> Sequence[Guard[Any]]:
        return (
            Guard(Agreed, "each row, by epsilon: all budgets pay before anything is put in", self.charge),
            Guard(Agreed, "features of every data party, from a training that will be refused", self.check_fit),
            Guard(Agreed, "labels, from where all trainings on the same people end", self.count_end),
            Guard(Agreed, "a passive party's scores, from the figures of grid points", self.check_grid),
            Guard(Compared, "the same: they are counted before they are opened", self.count_grid),
            Guard(Computed, "features of every data party, from the weights of many models", self.count_fit),
            Guard(Computed, "labels, from the weights of all trainings on the same people", self.count_weights),
            Guard(Computed, "a passive party's scores, from the figures of the test rows", self.count_figures),
            Guard(Computed, "each row, by epsilon: a charge pays for one opening of its noise", self.use_up_charge),
        )

    async def charge(self, agreed: FalconAgreed) -> None:
        if self._job.privacy is not None:
            await self._draws(agreed).charge(self._seats)

    async def check_fit(self, agreed: FalconAgreed) -> None:
        if (fit := self._fit(agreed)) is not None:
            self.make_quota().check_fit(self._session, fit)

    async def count_fit(self, computed: FalconComputed) -> None:
        if (fit := self._fit(computed.agreed)) is not None:
            self.make_quota().count_fit(self._session, fit)

    def _fit(self, agreed: FalconAgreed) -> Fit | None:
        """Return what opened weights reveal; None if no weight is opened, or epsilon pays for them.

        A resumed training opens the same weights again if no epoch follows. Otherwise every party shares its columns
        again, and a party that deviates may share other columns.
        """
        if agreed.parameters.weights_stay_shared or self._job.privacy is not None:
            return None
        fit = self.make_fit(agreed.prepared, f"weights {self.training}", score_bits_of_a_weight(agreed.parameters))
        return replace(fit, is_computed_again=not is_done(agreed))

    async def count_end(self, agreed: FalconAgreed) -> None:
        if self._counts_labels:
            epochs = self._epochs_to_come(agreed)
            count_end(self._session, self._party.settings, self._party.store, agreed.parameters, epochs)

    async def count_weights(self, computed: FalconComputed) -> None:
        parameters = computed.agreed.parameters
        if self._counts_labels and not parameters.weights_stay_shared:
            count_weights(self._session, self._party.settings, self._party.store, parameters)

    async def count_figures(self, computed: FalconComputed) -> None:
        bits = computed.agreed.parameters.figure_bits
        if bits and not self._work.is_active:
            of_a_row = bits / LEAST_TEST_ROWS  # there are at least so many test rows
            self.make_quota().count_bits(self._session, of_a_row, FIGURES)

    async def check_grid(self, agreed: FalconAgreed) -> None:
        if of_a_row := self._grid_bits_of_a_row(agreed):
            self.make_quota().check_bits(self._session, of_a_row, GRID)

    async def count_grid(self, compared: Compared[Begun, FalconParameters]) -> None:
        if of_a_row := self._grid_bits_of_a_row(compared.agreed):
            self.make_quota().count_bits(self._session, of_a_row, GRID)

    def _grid_bits_of_a_row(self, agreed: FalconAgreed) -> float:
        return 0.0 if self._work.is_active else grid_bits_of_a_row(agreed.parameters)

    async def use_up_charge(self, computed: FalconComputed) -> None:
        if self._job.privacy is not None:
            self._draws(computed.agreed).open()

    async def check_earlier_jobs(self, agreed: FalconAgreed) -> float:
        if self._job.privacy is not None:
            self._draws(agreed).check()
        await self.check_fit(agreed)
        await self.check_grid(agreed)
        if self._counts_labels:
            session, party = self._session, self._party
            return check_end(session, party.settings, party.store, agreed.parameters, self._epochs_to_come(agreed))
        return 0.0

    @staticmethod
    def _epochs_to_come(agreed: FalconAgreed) -> int:
        return 0 if is_done(agreed) else agreed.parameters.most_epochs - agreed.resumed

    @property
    def _counts_labels(self) -> bool:
        return self._work.is_active and self._job.privacy is None

    def _draws(self, agreed: FalconAgreed) -> Draws:
        return Draws(self._party, self._session, (agreed.drawn, *self._work.source.model_columns))

    # --- the stations

    async def begin(self, read: Read) -> tuple[Begun, Alignment]:
        session, seats, checkpoints = self._session, self._seats, self._work.checkpoints
        if session.job.resumes:
            refuse_unknown(self._party.data_dir, session.job, seats.me)  # it may have ended since the proposal
            base = checkpoints.base(session.proposed_question)
            return Begun(Dealt.of_base(base), None), Alignment(np.array(base["positions"], dtype=np.int64))
        dealt = await Dealt.receive(session.job.falcon, seats, session.channel)
        alignment = await align_by_id(session, seats, read.rows, self._party)
        if session.job.can_resume:
            checkpoints.begin(session.proposed_question, dealt.to_base() | {"positions": alignment.positions.tolist()})
        return Begun(dealt, Answers(self._party, session, name_randomness(read.randomness)).find()), alignment

    def name_checkpoints(self, begun: Begun, epochs: str) -> str:
        return tell_checkpoints(begun.answer, epochs)

    def make_parameters(self, told: Mapping[str, Ready], prepared: Prepared) -> FalconParameters:
        return parameters_of(self._job, self._seats, told, prepared.plan)

    def find_answer(self, agreed: FalconAgreed) -> FalconTrained | None:
        answer = agreed.begun.answer
        if answer is None or not epochs_answered(agreed.told[name] for name in self._seats.chain):
            return None
        part = read_model(self._party, self._job, answer.session)
        selection = None if answer.selection is None else SelectionFigures.read(answer.selection)
        return FalconTrained(answer.epochs, answer.evaluation, part, answer.session, selection=selection)

    async def train(self, agreed: FalconAgreed) -> FalconTrained:
        """Train. Raise MacCheckFailed: nothing of the training is kept then, not even this party's part of the MAC
        key.
        """
        session, checkpoints, parameters = self._session, self._work.checkpoints, agreed.parameters
        checkpoints.drop_after(agreed.resumed)
        model: Model | None = None
        if agreed.resumed:
            state, public_key = checkpoints.at(agreed.resumed), agreed.begun.dealt.public_key
            model = from_state(state, agreed.resumed, session.job.resume_option, public_key)
        progress = Progress(
            report=self._report,
            before_figures=partial(pass_guards, self.guards, Compared(agreed)),
            before_opening=partial(pass_guards, self.guards, Computed(agreed)),
        )
        if session.job.can_resume:
            progress = replace(
                progress,
                keep=lambda model, go_on: checkpoints.keep(model.epochs, go_on, to_state(model)),
                check_begun=checkpoints.check_begun,
            )
        columns = agreed.prepared.columns.shape[1]
        row_bound = row_bound_steps(session.job, columns) if session.job.privacy else None

        async def train_in_shares(channel: Channel) -> falcon.Trained:
            with drop_when_somebody_deviates(checkpoints):
                return await falcon.run_data_party(
                    self._seats.me,
                    make_held(agreed.prepared, parameters, row_bound),
                    parameters,
                    agreed.begun.dealt.seed,
                    session.id,
                    channel,
                    progress=progress,
                    model=model,
                    is_done=is_done(agreed),
                    key_share=agreed.begun.dealt.key_share,
                )

        found = await in_own_thread(session.channel, train_in_shares)
        evaluation = evaluation_of(found.tested, agreed.prepared, self._job.falcon.threshold)
        selection = self._selection(agreed, found)
        return FalconTrained(found.epochs, evaluation, self._part(agreed, found), session.id, selection=selection)

    def _selection(self, agreed: FalconAgreed, trained: falcon.Trained) -> SelectionFigures | None:
        chosen, selected = agreed.parameters.selection, trained.selected
        if chosen is None or selected is None:
            return None
        return SelectionFigures.of(chosen, selected.point, selected.figures, agreed.prepared.labels.scale)

    def _report(self, step: str, done: int, total: int) -> None:
        clock = self._work.clock
        is_descent = step.startswith(("epoch", "point"))
        self._session.report(step, done, total, "batches" if is_descent else "")
        if step == "open weights":
            clock.lap("train_s")
        elif is_descent and "put_in_s" not in clock.laps:
            clock.lap("put_in_s")
        elif step.startswith("epoch") and self._job.select is not None and "select_s" not in clock.laps:
            clock.lap("select_s")

    def _part(self, agreed: FalconAgreed, trained: falcon.Trained) -> AnyPart:
        part: AnyPart
        if agreed.parameters.weights_stay_shared:
            part = make_shared_part(self._session, self._seats, agreed.prepared, agreed.parameters, trained)
        else:
            bound = row_bound_steps(self._job, len(trained.weights)) if self._job.privacy else None
            point = None if trained.selected is None else trained.selected.point
            part = self.make_part(agreed.prepared, trained.weights, bound, point)
        if self._work.is_active:
            return part
        return with_score_bits(part, self.make_quota())

    def make_report(self, agreed: FalconAgreed, trained: FalconTrained) -> FalconReport:
        parameters, noise = agreed.parameters, agreed.parameters.noise
        return FalconReport.of(
            self._session,
            agreed.prepared,
            FitFigures(trained.epochs, None if noise is None else parameters.noise_in_weights(noise)),
            trained.evaluation,
            None if self._job.privacy is None else self._draws(agreed).describe(),
            self._work.clock.laps,
            selection=trained.selection,
            weights=weights_of(parameters),
            answered_in=trained.session,
        )

    def write(self, agreed: FalconAgreed, trained: FalconTrained, report: dict[str, Any]) -> None:
        party, session = self._party, self._session.id
        if isinstance(trained.part, SharedModelPart):
            write_shared(party, session, trained.part, report)
        else:
            write_part(party, session, trained.part, report)
        if self._work.is_active and len(agreed.prepared.plan.test):
            write_test_rows(party, session, agreed.prepared)
        selection = None if trained.selection is None else trained.selection.to_dict()
        answer = Answer(trained.session, trained.epochs, trained.evaluation, selection)
        Answers(party, self._session, agreed.drawn).keep(answer)


def open_data_party(party: Party) -> DataParty[FalconJob, Begun, FalconParameters, FalconTrained]:
    return DataParty(party, Falcon, FalconJob.resume_option)


def make_held(prepared: Prepared, parameters: FalconParameters, row_bound: int | None = None) -> Held:
    """Return the values that the party shares, in the order of batches, validation and test.

    Args:
        row_bound: largest norm of each row in steps: rounding to the grid may have made a row longer.
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


def weights_of(parameters: FalconParameters) -> WeightFigures:
    if parameters.weights_stay_shared:
        return WeightFigures(in_shares=True, opened_bits=0, label_bits=0.0)
    bits = None if parameters.kept_bits is None else falcon.bits_of_opened_weight(parameters.kept_bits)
    return WeightFigures(
        opened_bits=bits,
        label_bits=weights_bits(parameters) / parameters.train_rows if parameters.noise is None else None,
    )


def evaluation_of(
    tested: TestFigures | TestErrors | None, prepared: Prepared, threshold: float
) -> dict[str, Any] | None:
    """Return the active party's evaluation from the opened figures and its labels; None if all labels are the same."""
    if tested is None or prepared.rows.labels is None:
        return None
    if isinstance(tested, TestErrors):
        return _evaluation_of_values(tested, prepared)
    positive = prepared.rows.labels[prepared.plan.test] > 0
    rows, with_label = len(positive), int(positive.sum())
    pairs = with_label * (rows - with_label)
    if not pairs:
        return None
    called = min(max(tested.positives, 0), rows)  # the figure was rounded, so it may be outside its range
    true = min(max(tested.true_positives, called + with_label - rows, 0), called, with_label)
    right = true + rows - with_label - (called - true)
    return {
        "rows": rows,
        "auc": min(max(tested.auc_pairs / pairs, 0.0), 1.0),
        "ks": min(max(tested.ks_pairs / pairs, 0.0), 1.0),
        "accuracy": right / rows,
        "log_loss": tested.loss / rows,
        "threshold": threshold,
        "confusion": {
            "true_positives": true,
            "false_positives": called - true,
            "true_negatives": rows - with_label - (called - true),
            "false_negatives": with_label - true,
        },
    }


def _evaluation_of_values(tested: TestErrors, prepared: Prepared) -> dict[str, Any] | None:
    """Return the figures of labels in the form of the training, clipped."""
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
