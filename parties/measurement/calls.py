"""Calls to one measurement server as its messages are: describe, aggregate, release labels, budget."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import grpc
import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import (
    BlindfitError,
    DataError,
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
from blindfit.algorithms.protocols.walr.grid import MOST_ROWS_OF_UNIT
from blindfit.parties.identity import connections as identity
from blindfit.parties.identity import key_proof
from blindfit.parties.identity.identity import Identity
from blindfit.parties.identity.key_proof import KeyProof
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement import labels_codec as measurement_labels_codec
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.waits import Waits
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

MAX_CUTS = 10  # of one call
LABEL_KINDS = ("binary", "number", "share")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One server's answer to a request for a noisy sum.

    Attributes:
        answer: the noisy sum with its charge and receipt.
        kept: bool array, one for each row in the order sent: True where the row counted.
        bytes_sent: bytes of all messages that this party sent.
        messages_sent: number of these messages.
        opening: ciphertexts of an answer that came encrypted; `answer` then has its decryption.
    """

    answer: NoisySum
    kept: Bits
    bytes_sent: int
    messages_sent: int
    opening: Opening | None = None

    @property
    def signed(self) -> NoisySum:
        """The answer as its server signed it."""
        if self.opening is None:
            return self.answer
        return replace(self.answer, sums=np.zeros(0, np.int64), ciphertexts=self.opening.ciphertexts)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ReleasedLabels:
    """Noisy labels under label differential privacy, with the mechanism that made them.

    Attributes:
        labels: float64 array, one noisy label for each id in the order asked for, on the mechanism's grid. It is NaN
            where a row is withheld because its person has more rows than may count.
        mechanism: the fitted mechanism; its `debias`, `mean`, `variance` and `law` describe the noise.
        epsilon: epsilon of one unit, the estimate of a prior included.
        delta: delta of one unit; 0 except for the gaussian mechanism.
        epsilon_prior: part of one row's epsilon that estimated the prior.
        prior_mechanism: mechanism that estimated the prior; empty if no prior was estimated.
        rows_outside: expected number of these rows whose label lies outside the interval to which the mechanism clips,
            by the prior; None if the mechanism does not clip.
        event: text of the release that the server's accountant composes.
        unit: "row" or "person": what one change of a label is.
        neighbours: relation between neighbouring datasets, in words.
        receipt: signed statement and signature of the charge. Keep the newest one, and pass it to the next call.
        bytes_sent: bytes of all messages that this party sent.
        messages_sent: number of these messages.

    Example:
        >>> import numpy as np
        >>> released = released_labels  # what `await client.release_labels("prices", ids, settings)` returned
        >>> training_labels = released.mechanism.debias(released.labels[released.kept])
        >>> training_labels.dtype
        dtype('float64')
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
        """Bool array: True where a row has a label, False where it is withheld."""
        return ~np.isnan(self.labels)


class MeasurementCalls:
    """Calls to one measurement server over mutual TLS.

    Args:
        own: identity of the active party, from `load_identity`.
        server: name in the server's certificate.
        address: "host:port".
        limits: sizes of messages and the time to connect; the defaults of a party if None.
        step_timeout_s: the longest time that the server may take for one step, in seconds.
        reconnect_s: time in seconds after which a call to an unreachable server fails. After a cut, a request begins
            again under the same id, which is charged once.
        waits: the session's list of what it waits for; the calls add the server to it.
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
        """Return what the server declares of a dataset.

        Raises:
            PolicyRefused: the server does not offer the dataset to this party.
            TransportError: names the server and the step.
        """
        return await self._ask("Describe", pb.DescribeDatasetRequest(dataset=dataset))  # type: ignore[no-any-return]

    async def budget(self, dataset: str) -> pb.BudgetDescription:
        """Return what the dataset's population may spend and has spent.

        Raises:
            PolicyRefused: the server does not offer the dataset to this party.
            TransportError: names the server and the step.
        """
        found: pb.BudgetDescription = await self._ask("Budget", pb.BudgetRequest(dataset=dataset))
        check_budget(found, server=self._server)
        return found

    async def _ask(self, method: str, request: object) -> Any:
        async def call(stub: measurement_pb2_grpc.MeasurementStub) -> Any:
            with self._waits.on(self._server, method):
                return await getattr(stub, method)(request, timeout=self._step_timeout_s)

        return await self._with_stub(method, call)

    async def aggregate(
        self, rows: SentRows, request: AggregateOpen, on_rows: Callable[[int], None] = lambda _: None
    ) -> Aggregate:
        """Send one request with its rows and return the answer.

        Args:
            rows: the messages with the rows: integers, ciphertexts or masked numbers.
            request: the first message.
            on_rows: called with the number of rows that were sent since the last call; with -1 when the request begins,
                also again after a cut.

        Raises:
            BudgetExhausted, PolicyRefused, TooFewRows, LedgerBehind: before any row is sent.
            DataError: an id came twice, or the server does not know it.
            TransportError: names the server and the step.
        """

        async def ask(channel: measurement_codec.ClientSide) -> Aggregate:
            on_rows(-1)  # from the start again
            answer, kept = await walr.run_active(rows, request, self._server, channel, asyncio.to_thread, on_rows)
            return Aggregate(answer, kept, channel.bytes_sent, channel.messages_sent)

        return await self._converse("Aggregate", measurement_codec.AGGREGATE, ask)

    async def release_labels(
        self,
        description: pb.DatasetDescription,
        ids: Sequence[str],
        settings: MechanismSettings,
        *,
        release: str = "first",
        max_rows_per_person: int | None = None,
        receipt: tuple[bytes, bytes] | None = None,
        session: str = "",
        on_rows: Callable[[int], None] = lambda _: None,
    ) -> ReleasedLabels:
        """Return noisy labels of these rows, as `MeasurementClient.release_labels` does, from a dataset as described.

        Args:
            description: the dataset; `check_description` has passed it.
            session: id of the approved job; empty if the server approves no single jobs.
        """
        most = description.max_rows_per_person
        request = release_labels.step_1_open(
            ids,
            settings,
            dataset=description.dataset,
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
        """Return the result of one call, which begins again after a cut.

        Raises:
            PeerUnreachable: the server stayed unreachable, or cut the call ten times.
        """
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
    """Raise MalformedMessage: a value is not valid, or not within its range."""

    def require(holds: bool, field: str) -> None:
        if not holds:
            raise MalformedMessage(culprit=server, field=field, reason="is not what it must be", step="Describe")

    unit, most = description.unit, description.max_rows_per_person
    require(unit in ("row", "person") and len(description.receipt_key) == 32, "unit or receipt_key")
    require(1 <= most <= MOST_ROWS_OF_UNIT if unit == "person" else most == 0, "max_rows_per_person")
    require(0 < description.max_epsilon < math.inf, "max_epsilon")
    require(description.label_kind in LABEL_KINDS, "label_kind")
    if description.label_kind == "number":
        require(-math.inf < description.label_lo < description.label_hi < math.inf, "label_lo or label_hi")


def check_budget(budget: pb.BudgetDescription, *, server: str) -> None:
    """Raise MalformedMessage: a number is not within its range."""
    fits = 0 < budget.epsilon < math.inf and 0 <= budget.delta < 1 and budget.spent_epsilon >= 0
    if not fits:
        field = "epsilon, delta or spent_epsilon"
        raise MalformedMessage(culprit=server, field=field, reason="is out of range", step="Budget")


def proof_of(description: pb.DatasetDescription) -> KeyProof:
    """Return the proof that the receipt key belongs to the server's certificate."""
    return KeyProof(description.certificate, description.receipt_key_signature)


def check_receipt_key(own: Identity, description: pb.DatasetDescription, *, server: str) -> None:
    """Raise MalformedMessage: the server's certificate does not prove that the receipt key is its own."""
    authority, key = key_proof.authority_of(own), description.receipt_key
    try:
        key_proof.check(proof_of(description), server, key_proof.RECEIPTS, key, authority, datetime.now(UTC))
    except DataError as error:
        field = "receipt_key_signature"
        raise MalformedMessage(culprit=server, field=field, reason=error.message, step="Describe") from None


def check_rows_scaled(rows_scaled: int, *, server: str) -> None:
    """Raise MalformedMessage if the server declares that it shortened rows, since all rows were within the bound."""
    if rows_scaled:
        reason = "declares that rows within the bound were too long"
        raise MalformedMessage(culprit=server, field="rows_scaled", reason=reason, step="NoisySum")
