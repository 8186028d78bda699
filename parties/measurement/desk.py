"""Policy, ledger, labels and way of trust that a measurement server applies to one request for an aggregate."""

from __future__ import annotations

import structlog

from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, Tally, several_parties
from blindfit.parties.measurement.call import Call
from blindfit.parties.measurement.ways.choose import way_at_server
from blindfit.parties.measurement.ways.way import AtServer

log = structlog.get_logger(__name__)


class AggregateDesk(Call):
    """Implementation of walr.Desk for one call."""

    _way: AtServer

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        self.open(request)
        self._way = way_at_server(self)
        self._way.check()
        self.begin_upload()
        answer = self.service.admit(request, self.dataset, self.consumer)
        if answer is not None and self._way.can_repeat():
            return answer
        self.upload.check_quota(self.service.store.reader())
        return None

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:  # noqa: ARG002 - as admitted
        await self._way.before_rows(answer)

    def tally(self, request: AggregateOpen) -> Tally:  # noqa: ARG002 - as admitted
        return self._way.tally()

    async def before_release(self, tally: Tally) -> None:
        await self._way.before_release(tally)

    def release(self, tally: Tally) -> NoisySum:
        joined = self.join_state()
        if self.dataset.settings.rows_are_public and self._way.shows_unknown_rows:
            tally.rows_unknown = joined.rows_taken_as_zero
        with self.upload.answering(joined):
            answer = self.service.release(tally, self.dataset, self.consumer, self.read_bits())
        self._warn_of_unknown_rows(joined.rows_taken_as_zero)
        self._way.keep(tally, answer)
        return answer

    def _warn_of_unknown_rows(self, unknown: int) -> None:
        if unknown:
            log.warning(
                f"{unknown:,} of {self.request.n_rows:,} rows of {self.consumer} counted as label 0, because "
                f'{self.dataset.name} does not have their ids (unknown_rows = "zero")',
                dataset=self.dataset.name,
            )

    def redact(self, answer: NoisySum) -> NoisySum:
        return several_parties.redact(answer, self.request)
