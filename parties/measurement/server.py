"""The service of a measurement server, which holds labels and releases only noisy aggregates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.parties.measurement.charging import Asked
from blindfit.parties.measurement.codec import AGGREGATE, Messages, ServerSide
from blindfit.parties.measurement.desk import AggregateDesk
from blindfit.parties.measurement.labels_codec import MESSAGES as RELEASE_LABELS
from blindfit.parties.measurement.release_labels import LabelReleases, LabelsDesk
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.wire.waits import Waits
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

STEP_TIMEOUT_S = 120.0
D = TypeVar("D", AggregateDesk, LabelsDesk)


class MeasurementServicer(measurement_pb2_grpc.MeasurementServicer):
    """The gRPC service.

    Args:
        on_answered: function that gets the active party and the request of every answer that left.
    """

    def __init__(
        self,
        service: MeasurementService,
        caller_of: Callable[[], str],
        on_answered: Callable[[str, Asked], None] = lambda _consumer, _request: None,
        pulse: Pulse | None = None,
    ) -> None:
        self._pulse = pulse or Pulse()
        self._service, self._caller_of, self._on_answered = service, caller_of, on_answered
        self._labels = LabelReleases(service)

    async def Describe(self, request: pb.DescribeDatasetRequest, context: Any) -> pb.DatasetDescription:  # noqa: N802, ARG002
        return self._service.describe(self._service.dataset(request.dataset, self._caller_of()))

    async def Budget(self, request: pb.BudgetRequest, context: Any) -> pb.BudgetDescription:  # noqa: N802, ARG002
        population = self._service.dataset(request.dataset, self._caller_of()).population
        return await asyncio.to_thread(self._service.describe_budget, population)

    async def Aggregate(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.AggregateRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        desk = AggregateDesk(self._service, self._caller_of())
        await self._serve(desk, walr.run_measurement_server, AGGREGATE, request_iterator, context)

    async def ReleaseLabels(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.ReleaseLabelsRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        desk = LabelsDesk(self._service, self._labels, self._caller_of())
        await self._serve(desk, release_labels.run_measurement_server, RELEASE_LABELS, request_iterator, context)

    async def _serve(
        self,
        desk: D,
        run: Callable[[str, ServerSide, D], Awaitable[object]],
        messages: Messages,
        requests: AsyncIterator[Any],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        channel = ServerSide(desk.consumer, requests, context, STEP_TIMEOUT_S, messages, Waits(self._pulse))
        try:
            await run(desk.consumer, channel, desk)
        finally:
            channel.close()
            desk.close()
            if channel.answered:  # even if the active party closed the call after the answer
                self._on_answered(desk.consumer, desk.request)
