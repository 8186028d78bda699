"""How a consumer's session asks its measurement server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, ReleaseSettings
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.client import Aggregate, MeasurementClient, check_description
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.store.receipts import hold_receipt
from blindfit.protos import measurement_pb2


def client_of(party: Party, session: Session[JobParameters]) -> MeasurementClient:
    """Of the session's server, with the job's deadlines."""
    server, timeouts = session.with_role("measurement").name, session.job.timeouts
    return MeasurementClient(
        party.identity,
        server,
        session.channel.peers[server],
        limits=party.limits,
        step_timeout_s=timeouts.step_s,
        reconnect_s=timeouts.reconnect_s,
    )


def reporter(session: Session[JobParameters], step: str, n_rows: int) -> Callable[[int], None]:
    """Takes how many rows were sent since it was last called, or -1 when the request begins, also again after a cut.

    Until the server has let the request in, nothing is sent and nothing is said to be.
    """
    sent = 0

    def on_rows(count: int) -> None:
        nonlocal sent
        if count < 0:
            sent = 0
            session.report("ask for the release", waiting_for=session.with_role("measurement").name)
        else:
            sent += count
            session.report(step, sent, n_rows, "rows")

    return on_rows


@dataclass(frozen=True, repr=False)
class Released:
    """A noisy sum, and what was said and asked for it."""

    request: AggregateOpen
    aggregate: Aggregate
    description: measurement_pb2.DatasetDescription
    budget: measurement_pb2.BudgetDescription

    def privacy(self) -> dict[str, Any]:
        """For a report."""
        request, answer = self.request, self.aggregate.answer
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
            "population": self.budget.population,
            "budget_epsilon": self.budget.epsilon,
            "budget_delta": self.budget.delta,
            "spent_epsilon": self.budget.spent_epsilon,
            "releases": int(self.budget.releases),
            "snapshot": self.description.snapshot,
            "receipt": answer.receipt.decode("ascii", "replace"),
        }


async def release_sum(
    party: Party, session: Session[Any], rows: ConsumerRows, norm_bound: int, frac_bits: int
) -> Released:
    """Asks the session's measurement server for the noisy sum of these rows, and keeps its receipt.

    Args:
        norm_bound: of a row, in grid steps.

    Raises:
        MalformedMessage: the server says that rows within the bound were too long.
    """
    server, privacy = session.with_role("measurement"), session.job.required_privacy
    client = client_of(party, session)
    description = await client.describe(server.dataset)
    check_description(description, server=server.name)
    session.report("hash rows")
    settings = ReleaseSettings(
        dataset=server.dataset,
        snapshot=description.snapshot,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        mechanism=privacy.mechanism,
        frac_bits=frac_bits,
        max_rows_per_person=privacy.max_rows_per_person or description.max_rows_per_person,
        release=privacy.release,
    )
    held = party.store.reader().receipt_held(server.name, description.population)
    request = await asyncio.to_thread(walr.step_1_open, rows, norm_bound, settings, held, session.id)
    aggregate = await client.aggregate(rows, request, reporter(session, "send rows", request.n_rows))
    answer = aggregate.answer
    receipt = (answer.receipt, answer.receipt_signature)
    hold_receipt(party.store, server.name, description.receipt_key, description.population, receipt)
    if answer.rows_scaled:
        reason = "says that rows within the bound were too long"
        raise MalformedMessage(culprit=server.name, field="rows_scaled", reason=reason, step="NoisySum")
    return Released(request, aggregate, description, await client.budget(server.dataset))
