"""The measurement server of a party process: its datasets, its service, and its part in a session."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, NoReturn

import grpc
import structlog

from blindfit.algorithms.errors import PolicyRefused, SessionUnknown
from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.files.vault import RECEIPT_KEY
from blindfit.parties.identity.identity import current
from blindfit.parties.identity.key_proof import RECEIPTS, prove
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.charging import (
    KEPT_BYTES,
    ApprovedJob,
    Asked,
    LabelDataset,
    check_space,
    wrong_rows_per_person,
)
from blindfit.parties.measurement.label_index import open_index
from blindfit.parties.measurement.server import MeasurementServicer
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.trust import wrong_labels
from blindfit.parties.measurement.uploads import check_uploads
from blindfit.parties.measurement.ways.choose import meet
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member, Proposed
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import State
from blindfit.parties.sessions.system import Summary
from blindfit.parties.store import charging
from blindfit.parties.wire.guard import current_caller
from blindfit.protos import measurement_pb2_grpc

log = structlog.get_logger(__name__)


def open_service(party: Party) -> MeasurementService:
    """Open the indexes of published datasets. `party.once` calls this, so that there is only one ledger."""

    def newest(name: str, known: LabelDataset | None = None) -> LabelDataset:
        snapshot = party.snapshots.require_current(name)
        if known is not None and known.snapshot == snapshot.id:
            return known
        found = LabelDataset(
            name, party.settings.datasets[name], open_index(snapshot.directory, party.vault), snapshot.id
        )
        log.info("dataset is ready", dataset=name, rows=snapshot.row.rows, snapshot=snapshot.row.number)
        return found

    published = [name for name in party.settings.datasets if party.snapshots.current(name)]
    datasets = {name: newest(name) for name in published}

    budgets = {n: Budget(p.epsilon, p.delta) for n, p in party.settings.populations.items()}
    key = party.vault.signing_key(party.data_dir / RECEIPT_KEY)

    return MeasurementService(
        party.settings.name,
        datasets,
        budgets,
        party.settings.policy,
        party.store,
        key,
        partial(_find_approved_job, party),
        described=party.settings.datasets,
        newest=newest,
        fit=party.settings.fit,
        vault=party.vault,
        find_session=partial(_find_session, party),
        prove_key=lambda key: prove(current(party.identity), RECEIPTS, key),
    )


def _find_approved_job(party: Party, session_id: str, consumer: str) -> ApprovedJob | None:
    session = _find_session(party, session_id, consumer)
    if session is None or session.state not in (State.RUNNING, State.DONE):
        return None
    privacy = session.job.required_privacy
    return ApprovedJob(session.me.dataset, privacy.epsilon, privacy.delta, session.job.unsafe)


def _find_session(party: Party, session_id: str, consumer: str) -> Session[JobParameters] | None:
    try:
        session = party.sessions.get(session_id)
    except SessionUnknown:
        return None
    return session if consumer in session.members else None


def add_service(party: Party, server: grpc.aio.Server) -> str:
    """Add the service to a gRPC server, and return the service's full name."""
    service = party.once(open_service)

    def on_answered(consumer: str, request: Asked) -> None:
        if session := _find_session(party, request.session, consumer):
            session.once(make_answered).set()

    servicer = MeasurementServicer(service, current_caller, on_answered, party.pulse)
    measurement_pb2_grpc.add_MeasurementServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    return "blindfit.v1.Measurement"


def make_answered(_session: Session[Any]) -> asyncio.Event:
    """Return the event that an answer sets. Called by `session.once`."""
    return asyncio.Event()


class MeasurementSeat:
    """The measurement server's part in a session. The Aggregate and ReleaseLabels calls do the work; the session lasts
    until its own request is answered.
    """

    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: JobParameters, me: Member) -> None:
        """Refuse labels that do not fit the job, options that the dataset does not allow, and a spent budget."""
        party, privacy = self._party, job.required_privacy
        dataset, settings = party.settings.datasets[me.dataset], party.settings
        if reason := wrong_labels(job, me.dataset, dataset.label_kind):
            self._refuse(job.trust_option or "labels", reason)
        most = dataset.max_rows_per_person if dataset.person else 0
        if reason := wrong_rows_per_person(
            most if privacy.max_rows_per_person is None else privacy.max_rows_per_person, most
        ):
            self._refuse("privacy.max_rows_per_person", reason)
        if event := job.event_at_server(UNITS["person" if dataset.person else "row"][1]):
            population = str(dataset.population)
            limits = settings.populations[population]
            budget, snapshot = Budget(limits.epsilon, limits.delta), party.snapshots.require_current(me.dataset)
            charging.check_before(party.store.reader(), population, event, budget, snapshot.id)

    def check_members(self, asked: Proposed) -> None:
        """Refuse parties that this party's file does not permit to use the dataset, and a party that has used up its
        limits.
        """
        settings, me = self._party.settings, asked.members[self._party.settings.name]
        dataset = settings.datasets[me.dataset]
        for member in asked.members.values():
            allowed = {"active": dataset.active_parties, "passive": dataset.passive_parties}.get(member.role)
            if allowed is not None and member.name not in allowed:
                self._refuse("dataset", f"there is no dataset {me.dataset} for {member.name}")
        active = next(member.name for member in asked.members.values() if member.role == "active")
        with self._party.store.view() as reader:
            check_uploads(reader, settings.policy, dataset, settings.name, active)
            check_space(reader, settings.policy, settings.name, active, KEPT_BYTES)

    def _refuse(self, field: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self._party.settings.name, field=field, reason=reason)

    def _is_of_shares(self, me: Member) -> bool:
        return self._party.settings.datasets[me.dataset].label_kind == "share"

    async def run(self, session: Session[JobParameters]) -> Summary:
        meeting = meet(session) if self._is_of_shares(session.me) else None
        try:
            if meeting:
                meeting.begin()
            await self._answer(session)
            if meeting:
                await meeting.end()
        finally:
            if meeting:
                meeting.cancel()
        return self._summary(session)

    async def _answer(self, session: Session[JobParameters]) -> None:
        active = session.with_role("active")
        session.report("answer", waiting_for=active.name)
        await session.channel.wait_for(
            session.once(make_answered).wait(), active.name, "the request", session.job.timeouts.session_s
        )

    def _summary(self, session: Session[JobParameters]) -> Summary:
        service = self._party.once(open_service)
        dataset = service.datasets[session.me.dataset]
        budget = service.describe_budget(dataset.population)
        rows: Summary = {"dataset_rows": dataset.index.n_rows} if dataset.settings.rows_are_public else {}
        return rows | {
            "dataset": dataset.name,
            "population": budget.population,
            "budget_epsilon": budget.epsilon,
            "spent_epsilon": budget.spent_epsilon,
            "releases": int(budget.releases),
        }
