"""One request for an aggregate at a measurement server: the rows that arrive, joined to its labels."""

from __future__ import annotations

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, Tally
from blindfit.parties.measurement.background import Background
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.uploads import Upload
from blindfit.parties.sessions.session import Session

SPOOL_BYTES = 2**20


class Call(Background):
    request: AggregateOpen
    dataset: LabelDataset
    upload: Upload

    def __init__(self, service: MeasurementService, consumer: str) -> None:
        super().__init__(service.threads, consumer)
        self.service = service
        self._closing = contextlib.ExitStack()
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed with the others
        self._kept = self._closing.enter_context(spool)
        self._join: JoinState | None = None

    def open(self, request: AggregateOpen) -> None:
        """Open the dataset of a request. Raise PolicyRefused if this active party has no such dataset."""
        self.dataset = self.service.dataset(request.dataset, self.consumer)
        self.request = request

    def begin_upload(self) -> None:
        self.upload = self._closing.enter_context(Upload(self.service, self.dataset, self.consumer))

    @property
    def session(self) -> Session[Any] | None:
        """Session that the request names; None if the active party is not in that session."""
        return self.service.find_session(self.request.session, self.consumer)

    def refuse(self, field: str, reason: str) -> NoReturn:
        self.service.refuse(field, reason)

    def check_snapshot(self) -> None:
        """Raise PolicyRefused if the request is for an older snapshot."""
        self.service.check_snapshot(self.request, self.dataset)

    def check_ready(self, tally: Tally) -> None:
        """Raise the error that would refuse the charge of rows that have come; charge nothing."""
        with self.upload.joining(self.join_state()):
            self.service.check_ready(tally, self.dataset, self.consumer)

    # --- labels

    def join_state(self) -> JoinState:
        if self._join is None:
            # The limit of the request, at most the dataset's: the noise is computed for this limit.
            state = self.dataset.index.new_request(
                self.request.max_rows_per_person or None, self.dataset.settings.unknown_rows
            )
            self._join = self._closing.enter_context(state)
        return self._join

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        self.upload.begin()
        batch = self.join_state().join(list(ids))
        return batch.labels, batch.kept

    # --- which rows counted

    def keep_bits(self, bits: bytes) -> None:
        self._kept.write(bits)

    def read_bits(self) -> Iterator[bytes]:
        """Yield the bits that `keep_bits` took, in pieces."""
        self._kept.seek(0)
        return iter(functools.partial(self._kept.read, walr.KEPT_PIECE_BYTES), b"")

    def pieces_to_keep(self) -> Iterator[bytes]:
        """Yield the bits of the stored answer, in pieces."""
        reader = self.service.store.reader()
        numbered = (reader.read_kept_piece(self.consumer, self.request.request_id, n) for n in itertools.count())
        return itertools.takewhile(bool, numbered)

    def close_files(self) -> None:
        self._closing.close()
