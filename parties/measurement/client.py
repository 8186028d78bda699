"""The measurement server's client: describe, aggregate, release labels, budget. Usable alone, from a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import grpc
import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import (
    BlindfitError,
    LocalProtocolError,
    MalformedMessage,
    PeerTimeout,
    PeerUnauthenticated,
    PeerUnreachable,
)
from blindfit.algorithms.privacy.label_mechanisms import LabelMechanism, MechanismSettings
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.walr import AggregateOpen, Bits, NoisySum, SentRows
from blindfit.algorithms.protocols.walr.encrypted_rows import Opening
from blindfit.parties.identity import connections as identity
from blindfit.parties.identity.identity import Identity
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement import labels_codec as measurement_labels_codec
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.waits import Waits
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

MAX_CUTS = 10  # of one call

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An answer, which rows counted in it, and what it took to bring them.

    Attributes:
        opening: of an answer that came encrypted, which `answer` has in the clear.
    """

    answer: NoisySum
    kept: Bits
    bytes_sent: int
    messages_sent: int
    opening: Opening | None = None

    @property
    def signed(self) -> NoisySum:
        """The answer as its server gave it."""
        if self.opening is None:
            return self.answer
        return replace(self.answer, sums=np.zeros(0, np.int64), ciphertexts=self.opening.ciphertexts)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ReleasedLabels:
    """Noisy labels, one for each id in the order asked for, and all that is known of their law.

    Attributes:
        labels: float64, on the mechanism's grid; NaN where a row is withheld, as its person has more than may count.
        mechanism: with `debias`, `mean`, `variance` and `law`.
        epsilon: of one unit, the estimate of a prior included.
        delta: 0, but for the gaussian mechanism.
        epsilon_prior: the part of one row's epsilon that estimated the prior.
        prior_mechanism: how; empty where none was estimated.
        rows_outside: how many of these rows' labels that prior puts outside the interval to which the mechanism clips,
            None where it does not clip.
        event: what the server's accountant composes.
        receipt: statement and signature; keep the newest, and send it along.
    """

    labels: npt.NDArray[np.float64]
    mechanism: LabelMechanism
    epsilon: float
    delta: float
    epsilon_prior: float
    prior_mechanism: str
    rows_outside: float | None
    event: str
    unit: str
    neighbours: str
    receipt: tuple[bytes, bytes]
    bytes_sent: int
    messages_sent: int

    @property
    def kept(self) -> Bits:
        return ~np.isnan(self.labels)


class MeasurementClient:
    """Calls one measurement server over mutual TLS.

    Args:
        own: the consumer's identity, `load_identity(...)`.
        server: the name in the server's certificate.
        address: host:port.
        step_timeout_s: the longest the server may take for one step.
        reconnect_s: how long it may be away before a request is given up; after a cut, a request starts again
            with the same id, which costs nothing twice.
        waits: of a session, where it is noted that it waits for the server.
    """

    def __init__(
        self,
        own: Identity,
        server: str,
        address: str,
        *,
        limits: Limits | None = None,
        step_timeout_s: float = 120.0,
        reconnect_s: float = 30.0,
        waits: Waits | None = None,
    ) -> None:
        self._waits = waits or Waits()
        self._identity, self._server, self._address = own, server, address
        self._limits = limits or Limits()
        self._step_timeout_s, self._reconnect_s = step_timeout_s, reconnect_s

    async def describe(self, dataset: str) -> pb.DatasetDescription:
        return await self._ask("Describe", pb.DescribeDatasetRequest(dataset=dataset))  # type: ignore[no-any-return]

    async def budget(self, dataset: str) -> pb.BudgetDescription:
        return await self._ask("Budget", pb.BudgetRequest(dataset=dataset))  # type: ignore[no-any-return]

    async def _ask(self, method: str, request: object) -> Any:
        async def call(stub: measurement_pb2_grpc.MeasurementStub) -> Any:
            with self._waits.on(self._server, method):
                return await getattr(stub, method)(request, timeout=self._step_timeout_s)

        return await self._with_stub(method, call)

    async def aggregate(
        self, rows: SentRows, request: AggregateOpen, on_rows: Callable[[int], None] = lambda _: None
    ) -> Aggregate:
        """Raises:
        BudgetExhausted, PolicyRefused, TooFewRows, LedgerBehind: before any row is sent.
        DataError: an id that came twice or that the server does not know.
        TransportError: names the server and the step.
        """

        async def ask(channel: measurement_codec.ClientSide) -> Aggregate:
            on_rows(-1)  # from the start again
            answer, kept = await walr.run_active(rows, request, self._server, channel, asyncio.to_thread, on_rows)
            return Aggregate(answer, kept, channel.bytes_sent, channel.messages_sent)

        return await self._converse("Aggregate", measurement_codec.AGGREGATE, ask)

    async def release_labels(
        self,
        dataset: str,
        ids: Sequence[str],
        settings: MechanismSettings,
        *,
        release: str = "first",
        max_rows_per_person: int | None = None,
        receipt: tuple[bytes, bytes] | None = None,
        session: str = "",
        on_rows: Callable[[int], None] = lambda _: None,
    ) -> ReleasedLabels:
        """Label of these rows under label DP: always the same ones, charged once for the whole dataset.

        Args:
            settings: the grid's ends must be the dataset's declared label range; epsilon is that of one row.
            release: another name asks for another draw of every label, which is charged.
            max_rows_per_person: how many rows of a person may be released, each charged; None: as many as the dataset
                allows. Only for datasets whose unit is a person.
            receipt: the newest of this server that the caller holds, statement and signature.
            on_rows: told how many ids were sent, -1 when it begins again after a cut.

        Raises:
            BudgetExhausted, PolicyRefused, TooFewRows, LedgerBehind: before any id is sent.
            DataError: an id that came twice or that the server does not know; nothing was charged.
            MalformedMessage: the server sent what its mechanism never gives.
            TransportError: names the server and the step.
        """
        description = await self.describe(dataset)
        check_description(description, server=self._server)
        most = description.max_rows_per_person
        request = release_labels.step_1_open(
            ids,
            settings,
            dataset=dataset,
            snapshot=description.snapshot,
            release=release,
            max_rows_per_person=most if max_rows_per_person is None else max_rows_per_person,
            receipt=receipt or (b"", b""),
            session=session,
        )

        async def ask(channel: measurement_codec.ClientSide) -> ReleasedLabels:
            on_rows(-1)  # from the start again
            received = await release_labels.run_consumer(ids, request, self._server, channel, on_rows)
            return _make_released(received, channel.bytes_sent, channel.messages_sent)

        return await self._converse("ReleaseLabels", measurement_labels_codec.MESSAGES, ask)

    async def _converse(
        self,
        method: str,
        messages: measurement_codec.Messages,
        ask: Callable[[measurement_codec.ClientSide], Awaitable[R]],
    ) -> R:
        async def call(stub: measurement_pb2_grpc.MeasurementStub) -> R:
            channel = measurement_codec.ClientSide(
                self._server,
                self._address,
                getattr(stub, method)(),
                self._step_timeout_s,
                self._limits.max_message_bytes,
                messages,
                self._waits,
            )
            try:
                answer = await ask(channel)
                await channel.finish()
                return answer
            finally:
                channel.close()

        return await self._with_stub(method, call)

    async def _with_stub(self, step: str, call: Callable[[measurement_pb2_grpc.MeasurementStub], Awaitable[R]]) -> R:
        """Return one call, begun again after a cut; gives up when the server stays away, or keeps cutting."""
        for cuts_left in reversed(range(MAX_CUTS)):
            with self._waits.on(self._server, step):
                channel = await self._connect(step, after_a_cut=cuts_left < MAX_CUTS - 1)
            try:
                return await call(measurement_pb2_grpc.MeasurementStub(channel))  # type: ignore[no-untyped-call]
            except grpc.aio.AioRpcError as call_error:
                error = self._error_of(call_error, step)
            except PeerUnreachable as cut:
                error = cut
            finally:
                await channel.close()
            if not isinstance(error, PeerUnreachable) or not cuts_left:
                raise error
        raise LocalProtocolError("unreachable: the last cut raises")

    def _error_of(self, error: grpc.aio.AioRpcError, step: str) -> BlindfitError:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return PeerTimeout(peer=self._server, step=step, timeout_s=self._step_timeout_s)
        return error_codes.error_of_call(error, peer=self._server, address=self._address, step=step)

    async def _connect(self, step: str, *, after_a_cut: bool) -> grpc.aio.Channel:
        loop, stood_s = asyncio.get_running_loop(), self._waits.pulse.stood_s
        began, wait_s = loop.time(), 0.1

        def left() -> float:
            return began + self._reconnect_s + stood_s(began) - loop.time()

        while True:
            left_s = max(left(), 0.1)
            limits = replace(self._limits, connect_timeout_s=min(self._limits.connect_timeout_s, left_s))
            try:
                return await identity.open_channel(self._identity, self._server, self._address, limits)
            except PeerUnauthenticated:
                # It accepted us before: a handshake that a stopping server cuts off looks like a refusal.
                if not after_a_cut or wait_s > left():
                    raise
            except PeerUnreachable as error:
                if wait_s > left():
                    reason = f"{error.message.rpartition(': ')[2]}; tried for {self._reconnect_s:g} s"
                    raise PeerUnreachable(peer=self._server, address=self._address, step=step, reason=reason) from None
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, 2.0)


def _make_released(received: release_labels.Received, bytes_sent: int, messages_sent: int) -> ReleasedLabels:
    release, outside = received.release, received.release.share_outside
    labels = received.mechanism.grid.reals(received.steps)
    labels[received.withheld] = np.nan
    return ReleasedLabels(
        labels=labels,
        mechanism=received.mechanism,
        epsilon=release.epsilon,
        delta=release.delta,
        epsilon_prior=release.epsilon_prior,
        prior_mechanism=release.prior_mechanism,
        rows_outside=None if outside is None else outside * int((~received.withheld).sum()),
        event=release.event,
        unit=release.unit,
        neighbours=release.neighbours,
        receipt=(release.receipt, release.receipt_signature),
        bytes_sent=bytes_sent,
        messages_sent=messages_sent,
    )


def check_description(description: pb.DatasetDescription, *, server: str) -> None:
    if description.unit not in ("row", "person") or len(description.receipt_key) != 32:
        raise MalformedMessage(culprit=server, field="unit or receipt_key", reason="is not what it must be")
