"""The measurement servers of a job: one that is trusted, or two that hold shares of the labels, asked at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from blindfit.algorithms.errors import DataError, MalformedMessage, TransportError
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    ConsumerRows,
    ReleaseSettings,
    SentRows,
    several_parties,
    statement,
    two_servers,
)
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.protocols.walr.several_parties import Block
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.parties.identity import key_proof
from blindfit.parties.identity.key_proof import KeyProof
from blindfit.parties.measurement import asking
from blindfit.parties.measurement.client import Aggregate, MeasurementClient, check_description
from blindfit.parties.measurement.row_key import RowKey
from blindfit.parties.measurement.row_shares import RowShares
from blindfit.parties.measurement.trust import ENCRYPTED_ROWS, SHARED_ROWS, TWO_SERVERS
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.store.receipts import hold_receipt
from blindfit.protos import measurement_pb2

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Server:
    """One of them, and what it says of its dataset."""

    member: Member
    client: MeasurementClient
    description: measurement_pb2.DatasetDescription


def proof_of(description: measurement_pb2.DatasetDescription) -> KeyProof:
    """That the receipt key is the server's."""
    return KeyProof(description.certificate, description.receipt_key_signature)


def check_key_proof(party: Party, description: measurement_pb2.DatasetDescription, *, server: str) -> None:
    """Raises MalformedMessage: the server's certificate does not say that the receipt key is its own."""
    authority, proof = key_proof.authority_of(party.identity), proof_of(description)
    try:
        key_proof.check(proof, server, key_proof.RECEIPTS, description.receipt_key, authority, datetime.now(UTC))
    except DataError as error:
        raise MalformedMessage(
            culprit=server, field="receipt_key_signature", reason=error.message, step="Describe"
        ) from None


@dataclass(frozen=True, repr=False)
class Released:
    """What came of asking.

    Attributes:
        servers: one, or two that hold shares.
        aggregate: of all servers together.
        requests, answers, budgets: of each.
    """

    servers: Sequence[Server]
    aggregate: Aggregate
    requests: Sequence[AggregateOpen]
    answers: Sequence[Aggregate]
    budgets: Sequence[measurement_pb2.BudgetDescription]

    @property
    def request(self) -> AggregateOpen:
        """In all that the fit depends on, the others are the same."""
        return self.requests[0]

    @property
    def budget(self) -> measurement_pb2.BudgetDescription:
        """That of which least is left."""
        return min(self.budgets, key=lambda budget: budget.epsilon - budget.spent_epsilon)

    def privacy(self) -> dict[str, Any]:
        """For a report."""
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
            **(self._promise_of_two() if len(self.servers) > 1 else {}),
            **({"trust": ENCRYPTED_ROWS} if request.key else {}),
        }

    def _promise_of_two(self) -> dict[str, Any]:
        """Both have answered the same request, so the active party alone sees a noise of twice the variance."""
        request = self.request
        trust = SHARED_ROWS if request.in_shares else TWO_SERVERS
        return {"trust": trust, "epsilon_of_both": two_servers.epsilon_of_both(request)}

    def told(self) -> dict[str, Any]:
        """Of what each server gave, for the party's own report; nothing where one is trusted."""
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
    """Of the rows' hash. A server that reads the rows is told it; one that does not must not try rows out."""
    is_hidden = session.job.shares_rows or session.job.encrypts_rows
    purpose = "salt of hidden rows" if is_hidden else "salt of sent rows"
    return party.secret.derive(purpose, bytes.fromhex(session.published.id))


async def release_sum(
    party: Party, session: Session[Any], rows: ConsumerRows, grid: Grid, blocks: Sequence[Block] = ()
) -> Released:
    """Asks the session's measurement server, or both, for the noisy sum of these rows, and keeps the receipts.

    Args:
        blocks: of passive parties, which send their rows themselves.

    Raises:
        MalformedMessage: a server says that rows within the bound were too long.
        RangeError: the sum of shares might be read as another one.
    """
    servers = await Servers.of(party, session)
    session.report("hash rows")
    requests = await asyncio.to_thread(servers.requests, rows, grid)
    if blocks:
        requests = [several_parties.step_4_open(request, blocks) for request in requests]
    return await servers.release(rows, requests)


class Servers:
    """Args:
    hiding: how rows are hidden from them; None: they read them.
    """

    def __init__(
        self, party: Party, session: Session[Any], servers: Sequence[Server], hiding: Hiding | None = None
    ) -> None:
        self._party, self._session, self.servers, self._hiding = party, session, servers, hiding
        self._sent_rows: dict[str, int] = {}
        self._all_sent = asyncio.Event()

    @classmethod
    async def of(cls, party: Party, session: Session[Any]) -> Servers:
        """Raises TransportError, PolicyRefused: a server does not describe its dataset."""

        async def described(member: Member) -> Server:
            client = asking.client_of(party, session, member.name)
            description = await client.describe(member.dataset)
            check_description(description, server=member.name)
            check_key_proof(party, description, server=member.name)
            return Server(member, client, description)

        members = sorted((m for m in session.members.values() if m.role == "measurement"), key=lambda m: m.name)
        servers = await all_or_none(map(described, members))
        return cls(party, session, servers, await hiding_of(party, session, servers))

    def requests(self, rows: ConsumerRows, grid: Grid) -> list[AggregateOpen]:
        """One for each, the same in all but dataset, snapshot and receipt.

        Raises:
            RangeError: the sum of shares might be read as another one.
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
        if job.asks_shares:
            two_servers.step_1_check(requests[0])
        return [self._hiding.request(request) for request in requests] if self._hiding else requests

    async def release(self, rows: ConsumerRows, requests: Sequence[AggregateOpen]) -> Released:
        """Of the errors, the first that is not about the connection."""
        if self._hiding:
            await self._hiding.begin(rows, requests[0])
        asked = all_or_none(self._ask(*each, rows) for each in zip(self.servers, requests, strict=True))
        answers = await (beside(asked, self._prove(self._hiding)) if self._hiding else asked)
        if self._hiding:
            await self._hiding.end()
        aggregate = self._together(answers, requests[0]) if self._session.job.asks_shares else answers[0]
        budgets = await all_or_none(server.client.budget(server.member.dataset) for server in self.servers)
        return Released(self.servers, aggregate, requests, answers, budgets)

    async def _prove(self, hiding: Hiding) -> None:
        await self._all_sent.wait()
        await hiding.prove()

    async def _ask(self, server: Server, request: AggregateOpen, rows: ConsumerRows) -> Aggregate:
        name, session = server.member.name, self._session
        told, sent_rows = asking.reporter(session, "send rows", request.n_rows, name), self._sent_rows

        def on_rows(rows: int) -> None:
            told(rows)
            sent_rows[name] = 0 if rows < 0 else sent_rows[name] + rows
            if list(sent_rows.values()) == [request.n_rows] * len(self.servers):
                self._all_sent.set()

        sent = await asyncio.to_thread(self._hiding.hidden, rows, request) if self._hiding else rows
        aggregate = await server.client.aggregate(sent, request, on_rows)
        description, answer = server.description, aggregate.answer
        about = Between(name, session.me.name, description.population)
        statement.check_proof(request, answer, about)
        held = answer.receipt, answer.receipt_signature
        hold_receipt(self._party.store, name, description.receipt_key, description.population, held)
        if answer.rows_scaled:
            reason = "says that rows within the bound were too long"
            raise MalformedMessage(culprit=name, field="rows_scaled", reason=reason, step="NoisySum")
        if session.job.asks_shares:
            two_servers.step_6_check(answer, request, server=name)
        if self._hiding:
            return await asyncio.to_thread(self._hiding.opened, aggregate, request, server=name)
        return aggregate

    def _together(self, answers: Sequence[Aggregate], request: AggregateOpen) -> Aggregate:
        names = [server.member.name for server in self.servers]
        answer = two_servers.step_6_add([a.answer for a in answers], request, servers=names)
        if (answers[0].kept != answers[1].kept).any():
            raise DataError(f"at {' and '.join(names)} different rows counted", hint="ask their operators")
        return Aggregate(answer, answers[0].kept, sum(a.bytes_sent for a in answers))


class Hiding(Protocol):
    """A way to hide rows from servers."""

    def request(self, request: AggregateOpen) -> AggregateOpen: ...

    async def begin(self, rows: ConsumerRows, request: AggregateOpen) -> None: ...

    def hidden(self, rows: ConsumerRows, request: AggregateOpen) -> SentRows: ...

    async def prove(self) -> None:
        """Once all rows were sent."""

    async def end(self) -> None:
        """All answers are here."""

    def opened(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate: ...


async def hiding_of(party: Party, session: Session[Any], servers: Sequence[Server]) -> Hiding | None:
    if session.job.shares_rows:
        return RowShares(session, tuple(server.member.name for server in servers))
    if session.job.encrypts_rows:
        session.report("load key")
        return await asyncio.to_thread(RowKey.load_or_create, party.data_dir, party.vault)
    return None


async def beside(answers: Awaitable[T], proof: Awaitable[None]) -> T:
    """The answers, once they are there; of a proof that fails before them, its error."""
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
    """All at once; the first failure ends the others. Of several, one that says more than that a peer has gone."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, TransportError)), errors[0])
    return [task.result() for task in tasks]
