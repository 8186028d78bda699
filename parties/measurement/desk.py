"""What a measurement server brings to one request for an aggregate: the rows that come, joined to its labels."""

from __future__ import annotations

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from blindfit.algorithms.errors import CannotAnswer, DuplicateId, PolicyRefused, TooFewRows, UnknownId
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    NoisySum,
    Tally,
    encrypted_rows,
    several_parties,
    shared_rows,
    two_servers,
)
from blindfit.algorithms.protocols.walr.several_parties import Block, BlockRows, BlocksTally
from blindfit.algorithms.protocols.walr.shared_rows import SharedRowsTally
from blindfit.algorithms.protocols.walr.two_servers import Counted, ShareTally
from blindfit.parties.measurement.background import Background
from blindfit.parties.measurement.blocks import Blocks, ToFit
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.measurement.meeting import Meeting
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.uploads import Upload, log_unanswered

log = structlog.get_logger(__name__)

SPOOL_BYTES = 2**20


class AggregateDesk(Background):
    """walr.Desk for one call."""

    def __init__(self, service: MeasurementService, consumer: str) -> None:
        super().__init__(service.threads, consumer)
        self._service = service
        self._closing = contextlib.ExitStack()
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed with the others
        self._kept = self._closing.enter_context(spool)
        self._join: JoinState | None = None
        self._upload: Upload
        self._dataset: LabelDataset
        self._blocks: tuple[Block, ...] = ()
        self.request: AggregateOpen

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        self._dataset = self._service.dataset(request.dataset, self._consumer)
        self.request = request
        if self._is_of_shares:
            self._check_shares(request)
        elif request.in_shares:
            self._service.refuse("in_shares", "its labels are no shares")
        self._check_blocks(request)
        self._upload = self._closing.enter_context(Upload(self._service, self._dataset, self._consumer))
        answer = self._service.admit(request, self._dataset, self._consumer)
        if self._blocks and not self._is_fitted():
            answer = None  # it has been charged, perhaps: `release` tells
        if answer is None:
            self._upload.check_quota(self._service.store.reader())
        return answer

    # --- of blocks: the other holders

    def _check_blocks(self, request: AggregateOpen) -> None:
        self._blocks = several_parties.blocks_of(request, culprit=self._consumer)
        held = self._service.blocks(request.session, self._consumer)
        if (held.holders if held else ()) != tuple(block.holder for block in self._blocks):
            self._service.refuse("blocks", "the job has other holders of columns")
        if not self._blocks:
            return
        if self._is_of_shares or request.key:
            self._service.refuse("blocks", "several parties' columns are summed by a trusted server alone")
        if strangers := [b.holder for b in self._blocks if b.holder not in self._dataset.settings.passive_parties]:
            self._service.refuse("dataset", f"{strangers[0]} is none of its holders, who may be told weights")
        if request.snapshot != self._dataset.snapshot:
            self._service.refuse("snapshot", "it is not the newest of this dataset: describe the dataset again")

    def _holders(self) -> Blocks:
        blocks = self._service.blocks(self.request.session, self._consumer)
        if blocks is None:
            raise PolicyRefused(party=self._service.name, field="session", reason="it has ended")
        return blocks

    def _is_fitted(self) -> bool:
        """One fit for a release: others would tell more of the columns that it is of."""
        stored = self._service.store.reader().block_fit(self._consumer, self.request.request_id)
        if stored and stored[0] != self._holders().settings_sha256:
            reason = "this release was fitted with other settings: set privacy.release to another name for another draw"
            self._service.refuse("walr", reason)
        return stored is not None

    def _join_blocks(self, tally: BlocksTally, others: Sequence[BlockRows]) -> None:
        self._upload.begin()
        try:
            tally.join_blocks(others, self.join)
            self._joined().check()
            self._service.check_kept(tally.rows_kept)
        except (DuplicateId, UnknownId, TooFewRows) as error:  # a place or a number of rows that the holders share
            log_unanswered(error, self._consumer)
            raise CannotAnswer(party=self._service.name) from None
        columns = [
            *(block.n_columns for block in self._blocks),
            several_parties.own_columns(self.request, self._blocks),
        ]
        told = several_parties.bits_told_of(columns, tally.rows_kept)
        bits = dict(zip(self._holders().snapshots(self._consumer), told, strict=True))
        self._service.count_told_bits(self.request, self._consumer, bits, several_parties.max_bits(tally.rows_kept))

    # --- of shares: the other server

    @property
    def _is_of_shares(self) -> bool:
        return self._dataset.settings.label_kind == "share"

    def _check_shares(self, request: AggregateOpen) -> None:
        """What is remembered is told again of the newest split alone: the other server knows no other."""
        two_servers.step_2_check(request, consumer=self._consumer)
        if request.in_shares:
            shared_rows.plan_of(request, culprit=self._consumer)
        if request.key:
            self._service.refuse("key", "its labels are shares: servers of shares sum rows that they can read")
        if request.snapshot != self._dataset.snapshot:
            self._service.refuse("snapshot", "it is not the newest of this dataset: describe the dataset again")

    def _meeting(self) -> Meeting:
        meeting = self._service.meeting(self.request.session, self._consumer)
        if meeting is None:
            reason = "its labels are shares: only a job of two measurement servers may ask for a sum of them"
            raise PolicyRefused(party=self._service.name, field="session", reason=reason)
        return meeting

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:
        if self._blocks:
            holders = self._holders()
            await holders.want(request, self._blocks, send_rows=answer is None)
            if answer is not None:
                holders.to_fit = ToFit(request, answer, None)
        if not self._is_of_shares:
            return
        index, meeting = self._dataset.index, self._meeting()
        if bool(request.in_shares) != bool(meeting.rows):
            self._service.refuse("in_shares", "the job says otherwise")
        ids_sha256 = await self.in_background(index.ids_sha256)
        answered_in = await self.in_background(self._answered_in) if request.in_shares and answer else ""
        await meeting.agree(two_servers.step_2_agreement(request, index.split_id, ids_sha256, answered_in))
        if answer is not None:
            meeting.counted_before(await self.in_background(lambda: self._counted_in(answer)))

    def _answered_in(self) -> str:
        """Shares of one sum come from the masks of one session."""
        stored = self._service.store.reader().answer(self._consumer, self.request.request_id)
        return stored.session if stored else ""

    def _counted_in(self, answer: NoisySum) -> Counted:
        if answer.rows_kept == self.request.n_rows:
            return two_servers.step_4_counted(np.packbits(np.ones(self.request.n_rows, np.bool_)).tobytes())
        return two_servers.step_4_counted(b"".join(self.kept_pieces()))

    async def before_release(self, tally: Tally) -> None:
        if self._blocks:
            others = await self._holders().rows()
            await self.in_background(lambda: self._join_blocks(several_parties.require_tally(tally), others))
        if not self._is_of_shares:
            return
        meeting = self._meeting()
        await meeting.counted(await self.in_background(lambda: self._counted(tally)))
        if meeting.rows:
            await meeting.rows.add_up(tally)

    def _counted(self, tally: Tally) -> Counted:
        """Once nothing but another charge that comes between could refuse this one."""
        with self._upload.joining(self._joined()):
            self._service.check_ready(tally, self._dataset, self._consumer)
        self._kept.seek(0)
        return two_servers.step_4_counted(self._kept.read())

    def tally(self, request: AggregateOpen) -> Tally:
        if request.in_shares:
            return SharedRowsTally(request, self.keep_bits)
        if self._blocks:
            return BlocksTally(request, self.keep_bits, blocks=self._blocks)
        if request.key:
            return encrypted_rows.tally_of(request, self.keep_bits, consumer=self._consumer)
        return (ShareTally if self._is_of_shares else Tally)(request, self.keep_bits)

    def _joined(self) -> JoinState:
        if self._join is None:
            # The request's bound, at most the dataset's: the noise is for this one.
            state = self._dataset.index.new_request(
                self.request.max_rows_per_person or None, self._dataset.settings.unknown_rows
            )
            self._join = self._closing.enter_context(state)
        return self._join

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        self._upload.begin()
        batch = self._joined().join(list(ids))
        return batch.labels, batch.kept

    def keep_bits(self, bits: bytes) -> None:
        self._kept.write(bits)

    def kept_pieces(self) -> Iterator[bytes]:
        reader = self._service.store.reader()
        numbered = (reader.kept_piece(self._consumer, self.request.request_id, n) for n in itertools.count())
        return itertools.takewhile(bool, numbered)

    def release(self, tally: Tally) -> NoisySum:
        self._kept.seek(0)
        pieces = iter(functools.partial(self._kept.read, walr.KEPT_PIECE_BYTES), b"")
        joined = self._joined()
        # Of several holders' rows, how many are unknown would also depend on which rows they have in common.
        if self._dataset.settings.rows_are_public and not self._blocks:
            tally.rows_unknown = joined.rows_taken_as_zero
        with self._upload.answering(joined):
            answer = self._service.release(tally, self._dataset, self._consumer, pieces)
        self._warn_of_unknown_rows(joined.rows_taken_as_zero)
        if isinstance(tally, BlocksTally):
            self._holders().to_fit = ToFit(self.request, answer, tally)
        return answer

    def _warn_of_unknown_rows(self, unknown: int) -> None:
        """Tell the operator."""
        if unknown:
            log.warning(
                f"{unknown:,} of {self.request.n_rows:,} rows of {self._consumer} counted as label 0, because "
                f'{self._dataset.name} does not have their ids (unknown_rows = "zero")',
                dataset=self._dataset.name,
            )

    def told(self, answer: NoisySum) -> NoisySum:
        return several_parties.told(answer, self.request)

    def close_files(self) -> None:
        self._closing.close()
