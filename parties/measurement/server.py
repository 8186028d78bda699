"""The measurement server: what its role adds to a party. It holds labels and releases only noisy aggregates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement import labels_codec as measurement_labels_codec
from blindfit.parties.measurement.charging import Asked
from blindfit.parties.measurement.desk import AggregateDesk
from blindfit.parties.measurement.release_labels import LabelReleases, LabelsDesk
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.wire.waits import Waits
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

STEP_TIMEOUT_S = 120.0


class MeasurementServicer(measurement_pb2_grpc.MeasurementServicer):
    """Args:
    on_answered: told the consumer and the request of every answer that left.
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
        consumer = self._caller_of()
        desk = AggregateDesk(self._service, consumer)
        waits = Waits(self._pulse)
        channel = measurement_codec.ServerSide(consumer, request_iterator, context, STEP_TIMEOUT_S, waits=waits)
        try:
            await walr.run_measurement_server(consumer, channel, desk)
        finally:
            channel.close()
            desk.close()
            if channel.answered:  # even if the consumer hung up after it
                self._on_answered(consumer, desk.request)

    async def ReleaseLabels(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.ReleaseLabelsRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        consumer = self._caller_of()
        desk = LabelsDesk(self._service, self._labels, consumer)
        messages, waits = measurement_labels_codec.MESSAGES, Waits(self._pulse)
        channel = measurement_codec.ServerSide(consumer, request_iterator, context, STEP_TIMEOUT_S, messages, waits)
        try:
            await release_labels.run_measurement_server(consumer, channel, desk)
        finally:
            channel.close()
            desk.close()
            if channel.answered:
                self._on_answered(consumer, desk.request)
