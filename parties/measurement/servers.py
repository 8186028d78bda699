"""The measurement servers of a job: one trusted server, or two servers with shares of the labels, asked at the same
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from blindfit.algorithms.errors import TransportError
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    ConsumerRows,
    ReleaseSettings,
    statement,
)
from blindfit.algorithms.protocols.walr.blocks import Block
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.parties.measurement import asking
from blindfit.parties.measurement.calls import (
    Aggregate,
    MeasurementCalls,
    check_description,
    check_receipt_key,
    check_rows_scaled,
)
from blindfit.parties.measurement.ways.choose import way_at_active_party
from blindfit.parties.measurement.ways.way import AtActiveParty
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.receipts import hold_receipt
from blindfit.parties.wire.together import failures_of
from blindfit.protos import measurement_pb2

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Server:
    """One measurement server, and its description of its dataset."""

    member: Member
    client: MeasurementCalls
    description: measurement_pb2.DatasetDescription


@dataclass(frozen=True, repr=False)
class Released:
    """The answers of a release.

    Attributes:
        servers: one server, or two that hold shares.
        aggregate: answer of all servers together.
        requests: request to each server.
        answers: answer of each server.
        budgets: budget of each server.
        promise: part of a report's privacy section that only this way of trust adds.
    """

    servers: Sequence[Server]
    aggregate: Aggregate
    requests: Sequence[AggregateOpen]
    answers: Sequence[Aggregate]
    budgets: Sequence[measurement_pb2.BudgetDescription]
    promise: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> AggregateOpen:
        """Request to the first server. All servers get the same values of everything that the fit depends on."""
        return self.requests[0]

    @property
    def budget(self) -> measurement_pb2.BudgetDescription:
        """Budget of the server that has the least epsilon left."""
        return min(self.budgets, key=lambda budget: budget.epsilon - budget.spent_epsilon)

    def privacy(self) -> dict[str, Any]:
        request, answer, budget = self.request, self.aggregate.answer, self.budget
        scale = 2.0**-request.frac_bits
        return {
            "unit": answer.unit,
            "neighbours": answer.neighbours,
            "max_rows_per_person": request.max_rows_per_person,
            "epsilon": request.epsilon,
            "delta": request.delta,
            "mechanism": f"{request.mechanism} Gaussian, drawn as discrete Gaussian, grid 2^-{request.frac_bits}",
            "sensitivity": answer.sensitivity * scale,
            "noise_std_of_sum": answer.noise_std * scale,
            "norm_bound": request.norm_bound * scale,
            "population": budget.population,
            "budget_epsilon": budget.epsilon,
            "budget_delta": budget.delta,
            "spent_epsilon": budget.spent_epsilon,
            "releases": int(budget.releases),
            "snapshot": request.snapshot,
            "request_id": request.request_id,
            "receipt": answer.receipt.decode("ascii", "replace"),
            **self.promise,
        }

    def by_server(self) -> dict[str, Any]:
        """Return each server's part for the party's own report; nothing for one trusted server."""
        if len(self.servers) == 1:
            return {}
        each = zip(self.servers, self.requests, self.answers, self.budgets, strict=True)
        return {
            "servers": [
                {
                    "server": server.member.name,
                    "dataset": server.member.dataset,
                    "snapshot": request.snapshot,
                    "request_id": request.request_id,
                    "receipt": aggregate.answer.receipt.decode("ascii", "replace"),
                    "noise_std_of_sum": aggregate.answer.noise_std * 2.0**-request.frac_bits,
                    "population": budget.population,
                    "budget_epsilon": budget.epsilon,
                    "spent_epsilon": budget.spent_epsilon,
                }
                for server, request, aggregate, budget in each
            ]
        }


def content_salt(party: Party, session: Session[Any]) -> bytes:
    """Return the salt of the rows' hash. A server that reads the rows gets it; a server that does not must not test
    guesses.
    """
    purpose = "salt of hidden rows" if session.job.hides_rows else "salt of sent rows"
    return party.secret.derive(purpose, bytes.fromhex(session.published.id))


async def release_sum(
    party: Party, session: Session[Any], rows: ConsumerRows, grid: Grid, blocks: Sequence[Block] = ()
) -> Released:
    """Ask the session's measurement server, or both, for the noisy sum of these rows, and keep the receipts.

    Args:
        blocks: blocks of passive parties, which send their rows themselves.

    Raises:
        MalformedMessage: a server declares that rows within the bound were too long.
        RangeError: the sum of shares could wrap around to another value.
    """
    servers = await Servers.open(party, session, blocks)
    session.report("hash rows")
    requests = await asyncio.to_thread(servers.requests, rows, grid)
    return await servers.release(rows, requests)


class Servers:
    """The measurement servers of one session.

    Args:
        way: way in which the servers are trusted.
    """

    def __init__(self, party: Party, session: Session[Any], servers: Sequence[Server], way: AtActiveParty) -> None:
        self._party, self._session, self.servers, self._way = party, session, servers, way
        self._sent_rows: dict[str, int] = {}
        self._all_sent = asyncio.Event()

    @classmethod
    async def open(cls, party: Party, session: Session[Any], blocks: Sequence[Block]) -> Servers:
        """Open the servers. Raise TransportError or PolicyRefused if a server does not describe its dataset."""

        async def describe(member: Member) -> Server:
            client = asking.client_of(party, session, member.name)
            description = await client.describe(member.dataset)
            check_description(description, server=member.name)
            check_receipt_key(party.identity, description, server=member.name)
            return Server(member, client, description)

        members = sorted((m for m in session.members.values() if m.role == "measurement"), key=lambda m: m.name)
        servers = await all_or_none(map(describe, members))
        names = [member.name for member in members]
        return cls(party, session, servers, await way_at_active_party(party, session, names, blocks))

    def requests(self, rows: ConsumerRows, grid: Grid) -> list[AggregateOpen]:
        """Return a request for each server. The requests differ only in dataset, snapshot and receipt.

        Raises:
            RangeError: the sum of shares could wrap around to another value.
        """
        job, first = self._session.job, self.servers[0]
        privacy, most = job.required_privacy, min(s.description.max_rows_per_person for s in self.servers)
        settings = ReleaseSettings(
            dataset=first.member.dataset,
            snapshot=first.description.snapshot,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            mechanism=privacy.mechanism,
            frac_bits=grid.frac_bits,
            max_rows_per_person=privacy.max_rows_per_person or most,
            release=privacy.release,
            content_salt=content_salt(self._party, self._session),
        )
        requests = []
        for server in self.servers:
            of_this = replace(settings, dataset=server.member.dataset, snapshot=server.description.snapshot)
            receipt = self._party.store.reader().receipt_held(server.member.name, server.description.population)
            requests.append(walr.step_1_open(rows, grid.norm_bound, of_this, receipt, self._session.id))
        return [self._way.open_request(request) for request in requests]

    async def release(self, rows: ConsumerRows, requests: Sequence[AggregateOpen]) -> Released:
        """Send the rows and return the answers. Of several errors, raise the first that is not about the connection."""
        await self._way.begin(rows, requests[0])
        asked = all_or_none(self._ask(*each, rows) for each in zip(self.servers, requests, strict=True))
        answers = await await_with_proof(asked, self._prove())
        await self._way.end()
        aggregate = self._way.add_up(answers, requests[0])
        budgets = await all_or_none(server.client.budget(server.member.dataset) for server in self.servers)
        return Released(self.servers, aggregate, requests, answers, budgets, self._way.report(requests[0]))

    async def _prove(self) -> None:
        await self._all_sent.wait()
        await self._way.prove()

    async def _ask(self, server: Server, request: AggregateOpen, rows: ConsumerRows) -> Aggregate:
        name, session = server.member.name, self._session
        told, sent_rows = asking.reporter(session, "send rows", request.n_rows, name), self._sent_rows

        def on_rows(rows: int) -> None:
            told(rows)
            sent_rows[name] = 0 if rows < 0 else sent_rows[name] + rows
            if list(sent_rows.values()) == [request.n_rows] * len(self.servers):
                self._all_sent.set()

        sent = await asyncio.to_thread(self._way.hide, rows, request)
        aggregate = await server.client.aggregate(sent, request, on_rows)
        description, answer = server.description, aggregate.answer
        about = Between(name, session.me.name, description.population)
        statement.check_proof(request, answer, about)
        held = answer.receipt, answer.receipt_signature
        hold_receipt(self._party.store, name, description.receipt_key, description.population, held)
        check_rows_scaled(answer.rows_scaled, server=name)
        return await asyncio.to_thread(self._way.open_answer, aggregate, request, server=name)


async def await_with_proof(answers: Awaitable[T], proof: Awaitable[None]) -> T:
    """Return the answers when they are complete. If the proof fails before that, raise its error."""
    asked, proving = asyncio.ensure_future(answers), asyncio.ensure_future(proof)
    try:
        await asyncio.wait((asked, proving), return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            await proving
        return await asked
    finally:
        for task in (asked, proving):
            task.cancel()
        await asyncio.gather(asked, proving, return_exceptions=True)


async def all_or_none(work: Iterable[Awaitable[T]]) -> list[T]:
    """Await all at once; the first failure ends the others. Of several errors, raise one that names more than a lost
    peer.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    if errors := await failures_of(tasks):
        raise next((error for error in errors if not isinstance(error, TransportError)), errors[0])
    return [task.result() for task in tasks]
