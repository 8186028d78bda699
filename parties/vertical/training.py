"""The training of a data party, active or passive, station by station; `run_training` shows all of it.

| station  | things that the party then has
| Work     | its session, the roles of the parties, rows that are still unread, and checkpoints
| Read     | its rows, and the split and batches that all data parties have drawn together
| Aligned  | its rows in the common order, split and scaled
| Agreed   | every party's report about itself, and the parameters of the training that follow from the reports
| Compared | figures of all grid points that nobody has seen, if the job has a grid
| Computed | weights that nobody has seen, if the system opens them at the end
| Trained  | its part of the model, and the figures of the test rows
| (end)    | model and report on its disk, and the confirmation of every other party that it has its own

A system fills in a `Method`: the steps in which its parties align, train and write. A guard stands at a station: no
later step happens unless the guard lets the training pass. The method lists its guards in order.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import structlog

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols import ready
from blindfit.algorithms.protocols.ready import Ready, Stored
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.data.source import Source
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member, Proposed
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import draw_together, name_randomness
from blindfit.parties.training.rows import PartyRows, check_features, read_rows
from blindfit.parties.vertical.alignment import Alignment, order_of
from blindfit.parties.vertical.checkpoints import Checkpoints, Running, common_epoch, refuse_another_job, refuse_unknown
from blindfit.parties.vertical.prepared import Floats, Preparation, Prepared, prepare, tell_of_clipping
from blindfit.parties.vertical.report import SelectionFigures, VerticalReport
from blindfit.parties.vertical.scored_rows import Fit, ScoreQuota
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.work.clock import Clock

log = structlog.get_logger(__name__)


class Parameters(Protocol):
    """The public parameters that every system has."""

    @property
    def epochs(self) -> int: ...


J = TypeVar("J", bound=TrainingParameters)
B = TypeVar("B")  # state of a system's party after the beginning of its training, such as keys
P = TypeVar("P", bound=Parameters)
T = TypeVar("T", bound="Trained")
S = TypeVar("S")


# --- stations ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Work(Generic[J]):
    party: Party
    session: Session[J]
    seats: Seats
    source: Source
    checkpoints: Checkpoints
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of(cls, party: Party, session: Session[J]) -> Work[J]:
        checkpoints = Checkpoints.of(party.data_dir, session.job, session.id, party.vault)
        return cls(party, session, Seats.of(session), session.published.source().with_gaps(), checkpoints)

    @property
    def is_active(self) -> bool:
        return self.seats.me == self.seats.chain[0]


@dataclass(frozen=True, repr=False)
class Read:
    rows: PartyRows
    randomness: PublicRandomness


@dataclass(frozen=True, repr=False)
class Aligned(Generic[B]):
    """The rows in the common order.

    Attributes:
        begun: state of the system's party from the beginning of the training, also when the training is resumed.
        drawn: name of the split and the batches.
    """

    begun: B
    alignment: Alignment
    prepared: Prepared
    drawn: str


@dataclass(frozen=True, repr=False)
class Agreed(Aligned[B], Generic[B, P]):
    """The agreement of all parties.

    Attributes:
        told: every party's report about itself, this party included.
        resumed: last epoch that every party has kept; 0 if they share no epoch.
        first_epoch: epoch after which training continues; `parameters.epochs` if it had stopped before.
    """

    told: Mapping[str, Ready]
    parameters: P
    resumed: int
    first_epoch: int


@dataclass(frozen=True, repr=False)
class Compared(Generic[B, P]):
    agreed: Agreed[B, P]


@dataclass(frozen=True, repr=False)
class Computed(Generic[B, P]):
    agreed: Agreed[B, P]


@dataclass(frozen=True, repr=False)
class Trained:
    """The result of a training.

    Attributes:
        selection: figures of the grid points, if the job has a grid.
    """

    epochs: int
    evaluation: dict[str, Any] | None
    selection: SelectionFigures | None = field(default=None, kw_only=True)


# --- guards and methods -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guard(Generic[S]):
    """A check that a training must pass at a station.

    Attributes:
        station: station that the training does not leave unless it passes.
        protects: party whose secret it protects, and the threat.
        check: function that raises an error to end the training.
    """

    station: type[S]
    protects: str
    check: Callable[[S], Awaitable[None]]


async def pass_guards(guards: Sequence[Guard[Any]], reached: object) -> None:
    """Pass all guards that stand at a station, in their order."""
    for guard in guards:
        if guard.station is type(reached):
            await guard.check(reached)


class Method(ABC, Generic[J, B, P, T]):
    """The steps of a system's data party in one session that differ between systems."""

    def __init__(self, work: Work[J]) -> None:
        self._work, self._session, self._seats = work, work.session, work.seats
        self._party, self._job = work.party, work.session.job

    @staticmethod
    @abstractmethod
    def check(party: Party, job: J, me: Member, source: Source) -> None:
        """Refuse what this system can refuse before a session starts."""

    @staticmethod
    @abstractmethod
    def choose_preparation(job: J) -> Preparation:
        """Return the parts of the job that concern its parties' rows."""

    @property
    def training(self) -> str:
        """Session that began the training, which may have been resumed since."""
        return self._job.resumes or self._session.id

    @property
    @abstractmethod
    def guards(self) -> Sequence[Guard[Any]]: ...

    @abstractmethod
    async def check_earlier_jobs(self, agreed: Agreed[B, P]) -> float:
        """Refuse what the guards refuse because of earlier jobs, without counting. This is for a job that is only
        checked.

        Returns:
            The bits about labels that the training adds to this party's account.
        """

    @abstractmethod
    async def begin(self, read: Read) -> tuple[B, Alignment]:
        """Align the rows and keep their order, or take the order of the training that is resumed."""

    def draw_jitter(self, rows: PartyRows, common: PartyRows) -> Floats | None:  # noqa: ARG002 - of one system
        """Return the number that hides the label of each aligned row, in the label's units; None if labels are not
        hidden.

        Args:
            rows: all rows of the snapshot.
            common: rows that are aligned.
        """
        return None

    def name_checkpoints(self, begun: B, epochs: str) -> str:  # noqa: ARG002 - of the systems that keep answers
        """Return this party's list of checkpoints for the others.

        Args:
            epochs: epochs after which the party can continue.
        """
        return epochs

    @abstractmethod
    def make_parameters(self, told: Mapping[str, Ready], prepared: Prepared) -> P: ...

    def find_answer(self, agreed: Agreed[B, P]) -> T | None:  # noqa: ARG002
        """Return the outcome of an earlier training that answers this job, if every data party still has it.

        A system that keeps no answers trains again, with the same noise.
        """
        return None

    @abstractmethod
    async def train(self, agreed: Agreed[B, P]) -> T: ...

    @abstractmethod
    def make_report(self, agreed: Agreed[B, P], trained: T) -> VerticalReport:
        """Return this party's report, with the charge to its own budget."""

    @abstractmethod
    def write(self, agreed: Agreed[B, P], trained: T, report: dict[str, Any]) -> None:
        """Write this party's part of the model and its report."""

    def make_quota(self) -> ScoreQuota:
        """Return the limit of what this party lets scores, weights and figures reveal of its rows."""
        return ScoreQuota.of(self._party, self._session.published)

    def make_fit(self, prepared: Prepared, question: str, bits: float | None = None) -> Fit:
        """Return the disclosure to the other data parties by this training's weights or gradients.

        Args:
            question: name of everything that they depend on.
            bits: bits of the score of one row.
        """
        in_snapshot = prepared.rows.in_snapshot[prepared.plan.train]
        return Fit(self.training, question, in_snapshot[in_snapshot >= 0], bits)

    def make_part(
        self, prepared: Prepared, weights: Floats, row_bound: int | None, chosen_point: int | None = None
    ) -> VerticalModelPart:
        """Return this party's part of a model whose weights it has.

        Args:
            weights: weights (columns,), with the intercept last at the active party.
            row_bound: largest norm of a row under differential privacy, in steps of the features' grid.
            chosen_point: chosen point of the job's grid.
        """
        chosen, standardiser = self.choose_preparation(self._job), prepared.standardiser
        has_intercept = self._work.is_active and chosen.intercept
        return VerticalModelPart(
            party=self._seats.me,
            role=self._session.me.role,
            model=chosen.model,
            data_parties=self._seats.chain,
            standardiser=standardiser,
            weights=(weights[:-1] if has_intercept else weights)[list(standardiser.kept)],
            intercept=float(weights[-1]) if has_intercept else None,
            row_bound=row_bound,
            label_mean=prepared.labels.mean,
            label_scale=prepared.labels.scale,
            trained_in=self.training,
            options=self.options_of(chosen_point),
        )

    def options_of(self, point: int | None) -> dict[str, float | int | str]:
        """Return the options that a grid point of the job has; an empty table without a grid."""
        selection = getattr(self._job, "selection", None)
        return {} if selection is None or point is None else dict(selection.points[point].options)


# --- from station to station ------------------------------------------------------------------------------------------


async def run_training(method: Method[J, B, P, T], work: Work[J]) -> VerticalReport:
    await pass_guards(method.guards, work)
    read = await read_own_rows(work)
    aligned = await align(method, work, read)
    await pass_guards(method.guards, aligned)
    agreed = await agree(method, work, aligned)
    trained = method.find_answer(agreed)
    if trained is None:
        await pass_guards(method.guards, agreed)
        trained = await method.train(agreed)
    return await keep(method, work, agreed, trained)


async def read_own_rows(work: Work[J]) -> Read:
    session = work.session
    rows = await asyncio.to_thread(read_rows, work.source, labels=work.is_active, report=session.report)
    randomness = await draw_together(work.party, session, work.seats.chain)
    work.party.note(work.checkpoints.directory, session.id)
    work.clock.lap("read_s")
    return Read(rows, randomness)


async def align(method: Method[J, B, P, T], work: Work[J], read: Read) -> Aligned[B]:
    begun, alignment = await method.begin(read)
    work.clock.lap("align_s")
    common, chosen = read.rows.take(alignment.positions), method.choose_preparation(work.session.job)
    order = order_of(common, alignment, read.randomness, (chosen.test_fraction, chosen.validation_fraction))
    dataset = work.session.me.dataset
    prepared = await asyncio.to_thread(
        prepare,
        common,
        work.source.feature_names,
        chosen,
        order,
        active=work.is_active,
        label_range=work.party.settings.datasets[dataset].label_range,
        table=work.source.record if chosen.feature_bounds is None else work.source.record.public(),
        jitter=method.draw_jitter(read.rows, common) if work.is_active else None,
    )
    tell_of_clipping(dataset, prepared)
    return Aligned(begun, alignment, prepared, name_randomness(read.randomness))


async def agree(method: Method[J, B, P, T], work: Work[J], aligned: Aligned[B]) -> Agreed[B, P]:
    prepared, checkpoints = aligned.prepared, work.checkpoints
    kept = method.name_checkpoints(aligned.begun, checkpoints.name_epochs())
    mine = Ready(prepared.columns.shape[1], kept, aligned.drawn)
    told = await ready.run_party(mine, work.seats.me, work.seats.others, work.session.channel)
    parameters = method.make_parameters(told, prepared)
    resumed = common_epoch(told)
    first_epoch = checkpoints.first_epoch(resumed, parameters.epochs)
    if work.session.job.resumes:
        log.info("training goes on", session=work.session.id, after_epoch=resumed)
    work.clock.lap("prepare_s")
    return Agreed(**vars(aligned), told=told, parameters=parameters, resumed=resumed, first_epoch=first_epoch)


async def keep(method: Method[J, B, P, T], work: Work[J], agreed: Agreed[B, P], trained: T) -> VerticalReport:
    """Write the results. Once every party has its own, remove the files that allow a resumption."""
    work.session.channel.require_all_read(but=Stored)  # while the training could still be resumed
    work.clock.lap("evaluate_s")
    report = method.make_report(agreed, trained)
    method.write(agreed, trained, report.content(work.session))
    await ready.run_stored(trained.epochs, work.seats.others, work.session.channel)
    work.checkpoints.remove()
    return report


def is_done(agreed: Agreed[Any, Any]) -> bool:
    """Return True if the training had stopped before it was resumed, so that only the steps after the last epoch
    remain.
    """
    return bool(agreed.resumed) and agreed.first_epoch == agreed.parameters.epochs


# --- the data party ---------------------------------------------------------------------------------------------------


class DataParty(Generic[J, B, P, T]):
    """The part of a data party in the trainings of a system."""

    def __init__(self, party: Party, method: type[Method[J, B, P, T]], resume_option: str) -> None:
        self._party, self._method, self._running = party, method, Running(party.settings.name, resume_option)

    def check(self, job: J, me: Member) -> None:
        """Refuse what can be refused before a session starts. The dataset must open, with features and due labels.

        The system's own checks come last because they look at rows. A job that is wrong in public then reveals nothing
        about them.
        """
        source = check_features(self._party.snapshots.source(me.dataset), "a data party")
        chosen = self._method.choose_preparation(job)
        if me.role == "active" and source.settings.label is None:
            raise ConfigError(f"datasets.{me.dataset}.label is missing: the active party has the labels")
        if me.role == "active" and (source.settings.label_kind == "binary") != (chosen.model == "logistic"):
            model = f'{chosen.table}.model = "{chosen.model}"'
            raise ConfigError(f"datasets.{me.dataset}.label_kind does not go with {model}")
        self._running.refuse_another(job.resumes)
        refuse_unknown(self._party.data_dir, job, me.name)
        self._method.check(self._party, job, me, source)

    def check_members(self, asked: Proposed) -> None:
        refuse_another_job(self._party.data_dir, asked, self._party.settings.name, self._party.vault)

    async def run(self, session: Session[J]) -> dict[str, ParameterValue]:
        with self._running.alone(session.job.resumes or session.id):
            work = Work.of(self._party, session)
            return (await run_training(self._method(work), work)).fields_for_coordinator()
