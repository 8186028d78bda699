"""Label releases of a measurement server: made once, charged once, remembered for ever.

What was released lies in `label_releases/` beside the party's database, a directory for each release, of mode 0700. A
directory is on the disk before the transaction that charges it and names it: one that no entry names was never told.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import structlog

from blindfit.algorithms.errors import BlindfitError, LocalProtocolError, PolicyRefused
from blindfit.algorithms.privacy.label_mechanism_options import NAMES
from blindfit.algorithms.privacy.label_mechanisms import FittedMechanism
from blindfit.algorithms.protocols import release_labels as protocol
from blindfit.algorithms.protocols.release_labels import WITHHELD, FittedRelease, LabelsOpen, RollCall, Steps
from blindfit.parties.measurement import labels_codec as codec
from blindfit.parties.measurement.background import Background
from blindfit.parties.measurement.charging import ChargingService, Cost, LabelDataset, check_same
from blindfit.parties.measurement.fitting import LimitedMaker
from blindfit.parties.measurement.label_index import JoinState, LabelIndex
from blindfit.parties.measurement.label_index_frozen import freeze, open_frozen
from blindfit.parties.measurement.uploads import Upload
from blindfit.parties.store.charging import check_rollbacks
from blindfit.parties.store.store import StoredAnswer, StoredLabels, Transaction
from blindfit.protos import measurement_pb2 as pb

log = structlog.get_logger(__name__)

SPOOL_BYTES = 2**20
NOT_MADE = (
    "no mechanism could be made of the estimated prior within this server's limits of time and memory, and the "
    "estimate was charged: change the settings"
)


@dataclass(frozen=True, repr=False)
class Remembered:
    release: FittedRelease
    labels: LabelIndex


class LabelReleases:
    """Of all datasets of one server."""

    def __init__(self, charging: ChargingService) -> None:
        self._charging, self._store = charging, charging.store
        self._directory = charging.store.path.parent / "label_releases"
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._open: dict[str, Remembered] = {}
        # Two fits of one release at once would be one in vain; another release's may take minutes.
        self._making: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._make_mechanism = LimitedMaker(charging.fit)
        self._remove_leftovers()
        for dataset in charging.datasets.values():
            if dataset.settings.label_range is not None:
                _tell_of_clipping(dataset, *dataset.settings.label_range)

    # --- before any row

    def admit(self, request: LabelsOpen, dataset: LabelDataset, consumer: str) -> Remembered | None:
        """What is remembered, where the release was made before."""
        self._charging.check_receipt(request, dataset)
        cost = cost_of(request, dataset)
        with self._store.view() as view:
            if self._is_answered(view, request, consumer):
                return self._remembered(view, request)
            self._check_policy(request, dataset)
            self._charging.check_policy(request, dataset, cost)
            return self._check_allowed(view, request, dataset, consumer, cost)

    def _is_answered(self, reader: Transaction, request: LabelsOpen, consumer: str) -> bool:
        stored = reader.answer(consumer, request.request_id)
        if stored is not None:
            check_same(stored, protocol.request_digest(request))
        return stored is not None

    def _check_policy(self, request: LabelsOpen, dataset: LabelDataset) -> None:
        settings, label_range = request.settings, dataset.settings.label_range
        if label_range is None:
            self._charging.refuse("dataset", "its labels are zeros and ones: ask for an aggregate")
        if (settings.grid.lo, settings.grid.hi) != label_range:
            self._charging.refuse("mechanism", "the grid's ends are not the dataset's label range: describe it")
        if settings.name not in allowed_mechanisms(self._charging):
            self._charging.refuse("mechanism", f"{settings.name} is not one of the policy's mechanisms")

    def _check_allowed(
        self, reader: Transaction, request: LabelsOpen, dataset: LabelDataset, consumer: str, cost: Cost
    ) -> Remembered | None:
        """Of a release that was made, budget and answered jobs are not asked again."""
        remembered = self._remembered(reader, request)
        if remembered is None:
            self._charging.check_chargeable(reader, request, dataset, consumer, cost)
        else:
            check_rollbacks(reader, dataset.population)
            self._charging.check_approval(reader, request, dataset, consumer, cost, made_before=True)
        return remembered

    def _remembered(self, reader: Transaction, request: LabelsOpen) -> Remembered | None:
        digest = protocol.release_digest(request).hex()
        stored = reader.label_release(digest)
        if stored is None:
            return None
        if not stored.directory:
            self._charging.refuse("mechanism", NOT_MADE)
        if digest not in self._open:
            labels = open_frozen(self._directory / stored.directory, stored.labels_sha256, self._charging.vault)
            release = codec.release_from_pb(pb.FittedRelease.FromString(stored.answer), "the store")
            self._open[digest] = Remembered(release, labels)
        return self._open[digest]

    # --- the release

    def release(
        self, request: LabelsOpen, dataset: LabelDataset, consumer: str, count_kept: Callable[[LabelIndex], int]
    ) -> Remembered:
        """What is remembered, after it is: a crash never gives a second draw.

        Args:
            count_kept: how many of the request's rows have a label among these.
        """
        with self._making[protocol.release_digest(request).hex()]:
            with self._store.view() as view:  # between two reads another process may have charged this very release
                remembered = self._remembered(view, request)
                if remembered is None:
                    self._charging.check_chargeable(view, request, dataset, consumer, cost_of(request, dataset))
            if remembered is None:
                self._make(request, dataset, consumer, count_kept)
                remembered = self._remembered(self._store.reader(), request)
            else:
                self._charging.check_kept(count_kept(remembered.labels))
        if remembered is None:
            raise LocalProtocolError("a release is not in the store that was put there a moment ago")
        return remembered

    def _make(
        self, request: LabelsOpen, dataset: LabelDataset, consumer: str, count_kept: Callable[[LabelIndex], int]
    ) -> None:
        with self._new_directory() as directory:
            fitted = self._fit(request, dataset)
            sha256 = ""
            if fitted is not None:
                blocks = dataset.index.labels_in_order(request.max_rows_per_person or None)
                noisy = protocol.step_5_randomise(fitted.mechanism, blocks, self._charging.uniform)
                sha256 = freeze(dataset.index, directory, noisy, self._charging.vault)
                with open_frozen(directory, sha256, self._charging.vault) as labels:
                    self._charging.check_kept(count_kept(labels))
            with self._store.transaction() as transaction:
                # Another process may have made it meanwhile, or spent the budget.
                if not self._is_answered(transaction, request, consumer) and not self._is_made(transaction, request):
                    self._charge(transaction, request, dataset, consumer, fitted, directory.name, sha256)

    def _is_made(self, reader: Transaction, request: LabelsOpen) -> bool:
        return reader.label_release(protocol.release_digest(request).hex()) is not None

    def _fit(self, request: LabelsOpen, dataset: LabelDataset) -> FittedMechanism | None:
        """None: whether these settings make a mechanism hung on the labels, by way of the prior. It is charged too."""
        settings = request.settings
        blocks = dataset.index.labels_in_order(request.max_rows_per_person or None)
        labels = protocol.step_5_labels_to_fit(settings, blocks)
        try:
            return protocol.step_5_fit(settings, labels, self._charging.uniform, self._make_mechanism)
        except BlindfitError as error:
            if not settings.estimates_prior:
                raise PolicyRefused(party=self._charging.name, field="mechanism", reason=str(error)) from None
            log.warning("no mechanism could be made", dataset=dataset.name, mechanism=settings.name, reason=str(error))
            return None

    def _charge(
        self,
        transaction: Transaction,
        request: LabelsOpen,
        dataset: LabelDataset,
        consumer: str,
        fitted: FittedMechanism | None,
        directory: str,
        sha256: str,
    ) -> None:
        cost, answer = cost_of(request, dataset), b""
        self._charging.check_chargeable(transaction, request, dataset, consumer, cost)
        entry, receipt = self._charging.append(transaction, request, dataset, consumer, cost, sha256)
        if fitted is not None:
            release = protocol.step_5_release(
                fitted, cost.event, (cost.epsilon, cost.delta), unit=dataset.unit, receipt=receipt
            )
            answer = codec.release_to_pb(release).SerializeToString()
        digest, name = protocol.release_digest(request).hex(), request.settings.name
        kept_in = directory if fitted is not None else ""
        transaction.add_label_release(
            StoredLabels(digest, entry.position, name, request.release, kept_in, sha256, answer)
        )
        digest = protocol.request_digest(request).hex()
        transaction.add_answer(consumer, request.request_id, StoredAnswer(digest, b"", entry.position, request.session))

    # --- directories

    @contextlib.contextmanager
    def _new_directory(self) -> Iterator[Path]:
        """Removed again unless the database names it."""
        with self._locked(fcntl.LOCK_SH):
            directory = Path(tempfile.mkdtemp(prefix="release-", dir=self._directory))  # mode 0700
            try:
                yield directory
            finally:
                if directory.name not in self._named():
                    shutil.rmtree(directory, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """What a process that was killed had drawn and told nobody."""
        try:
            with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                named = self._named()
                for path in self._directory.glob("release-*"):
                    if path.name not in named:
                        shutil.rmtree(path)
        except BlockingIOError:  # another process is making one: the next start will do
            return

    def _named(self) -> set[str]:
        return {stored.directory for stored in self._store.reader().label_releases()}

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def cost_of(request: LabelsOpen, dataset: LabelDataset) -> Cost:
    event = protocol.step_2_event(request, neighbours=dataset.neighbours)
    return Cost(event, *protocol.step_2_cost(request, event))


def allowed_mechanisms(charging: ChargingService) -> list[str]:
    return sorted(NAMES if charging.policy.mechanisms is None else charging.policy.mechanisms)


def _tell_of_clipping(dataset: LabelDataset, lo: float, hi: float) -> None:
    """The operator alone: how many labels lie outside is a fact of the labels."""
    blocks = dataset.index.labels_in_order(None)
    clipped = sum(int(((labels < lo) | (labels > hi)).sum()) for labels, _ in blocks)
    if clipped:
        log.warning("labels outside label_range are clipped", dataset=dataset.name, rows=clipped)


# --- one request --------------------------------------------------------------------------------------


class LabelsDesk(Background):
    """release_labels.Desk for one call."""

    def __init__(self, charging: ChargingService, releases: LabelReleases, consumer: str) -> None:
        super().__init__(charging.threads, consumer)
        self._charging, self._releases = charging, releases
        self._closing = contextlib.ExitStack()
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed with the others
        self._ids = self._closing.enter_context(spool)
        self._upload: Upload
        self._state: JoinState
        self._remembered: Remembered
        self._dataset: LabelDataset
        self.request: LabelsOpen

    def admit(self, request: LabelsOpen) -> bool:
        self._dataset = self._charging.dataset(request.dataset, self._consumer)
        self.request = request
        self._upload = self._closing.enter_context(Upload(self._charging, self._dataset, self._consumer))
        remembered = self._releases.admit(request, self._dataset, self._consumer)
        self._upload.check_quota(self._charging.store.reader())
        index = remembered.labels if remembered else self._dataset.index
        self._state = self._closing.enter_context(index.new_request(None, "refuse"))
        return remembered is not None

    def look_up(self, ids: Sequence[str]) -> None:
        self._upload.begin()
        self._state.join(list(ids))
        self._ids.write(json.dumps(ids).encode() + b"\n")

    def release(self, roll: RollCall) -> FittedRelease:
        with self._upload.answering(self._state):
            self._remembered = self._releases.release(roll.request, self._dataset, self._consumer, self._count_kept)
        return self._remembered.release

    def _count_kept(self, labels: LabelIndex) -> int:
        return sum(int((steps != WITHHELD).sum()) for steps in self._joined(labels))

    def labels(self) -> Iterator[Steps]:
        return self._joined(self._remembered.labels)

    def _joined(self, labels: LabelIndex) -> Iterator[Steps]:
        self._ids.seek(0)
        with labels.new_request(None, "refuse") as state:
            for line in self._ids:
                steps = state.join(json.loads(line)).labels
                state.check()
                yield np.asarray(steps, np.int64)

    def close_files(self) -> None:
        self._closing.close()
