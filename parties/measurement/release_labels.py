"""Label releases of a measurement server: made once, charged once, stored for ever.

A release is charged before anything depends on a label, so the time of a fit to an estimated prior, and its failure,
are paid for. From its charge until its labels are stored, the release is in progress. If a process ends in between, the
charge stays, and the labels are never drawn again.

Released labels lie in `label_releases/` next to the party's database, a directory for each release, of mode 0700. A
directory is on the disk before the transaction that completes its release. So nobody has received labels from a
directory that no completed release names.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.errors import BlindfitError, LocalProtocolError, PolicyRefused
from blindfit.algorithms.privacy.label_mechanisms import FittedMechanism
from blindfit.algorithms.protocols.label_dp import release as protocol
from blindfit.algorithms.protocols.label_dp.messages import FittedRelease, LabelsOpen
from blindfit.algorithms.protocols.label_dp.release import WITHHELD, RollCall, Steps
from blindfit.algorithms.protocols.label_dp.request import release_digest, request_digest, step_2_cost, step_2_event
from blindfit.parties.measurement import labels_codec as codec
from blindfit.parties.measurement.background import Background
from blindfit.parties.measurement.charging import (
    KEPT_BYTES_OF_A_LABEL,
    KEPT_BYTES_OF_LABELS,
    ChargingService,
    Cost,
    LabelDataset,
    check_same,
)
from blindfit.parties.measurement.fitting import LimitedMaker
from blindfit.parties.measurement.label_index import JoinState, LabelIndex
from blindfit.parties.measurement.label_index_frozen import freeze, open_frozen
from blindfit.parties.measurement.policy import LabelDPPolicy
from blindfit.parties.measurement.uploads import Upload
from blindfit.parties.store.answers import StoredAnswer, StoredLabels
from blindfit.parties.store.charging import check_rollbacks
from blindfit.parties.store.database import Reads
from blindfit.parties.store.receipts import SignedReceipt
from blindfit.protos import measurement_pb2 as pb

log = structlog.get_logger(__name__)

SPOOL_BYTES = 2**20
MOST_OPEN = 32  # releases whose files are open; the files of others are opened on request
NOT_MADE = (
    "no mechanism could be made from the estimated prior within this server's limits of time and memory, and the "
    "estimate was charged: change the settings"
)
LOST = (
    "the release was charged, and its server ended, or had no space, before the labels were stored: they are lost, "
    "and never drawn again: set privacy.release to another name for new noise, which is charged"
)


@dataclass(frozen=True, repr=False)
class Remembered:
    release: FittedRelease
    labels: LabelIndex


@dataclass(frozen=True, repr=False)
class Charged:
    """A release that is in the ledger, and whose labels are not yet made."""

    request: LabelsOpen
    dataset: LabelDataset
    cost: Cost
    receipt: SignedReceipt
    stored: StoredLabels

    def answer(self, fitted: FittedMechanism) -> bytes:
        cost = self.cost
        release = protocol.step_5_release(
            fitted, cost.event, (cost.epsilon, cost.delta), unit=self.dataset.unit, receipt=self.receipt
        )
        return codec.release_to_pb(release).SerializeToString()


class LabelReleases:
    def __init__(self, charging: ChargingService) -> None:
        self._charging, self._store = charging, charging.store
        self._directory = charging.store.path.parent / "label_releases"
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._open: dict[str, Remembered] = {}
        # Of two fits for one release at the same time, one would be useless; a fit for another release may take
        # minutes.
        self._making: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._make_mechanism = LimitedMaker(charging.fit)
        self._remove_leftovers()
        for dataset in charging.datasets.values():
            if dataset.settings.label_range is not None:
                _tell_of_clipping(dataset, *dataset.settings.label_range)

    # --- before any row

    def admit(self, request: LabelsOpen, dataset: LabelDataset, consumer: str) -> Remembered | None:
        """Return the stored release if it was charged before, and wait if it is made at this moment; else return
        None.
        """
        self._charging.check_receipt(request, dataset)
        cost = cost_of(request, dataset)
        with self._store.view() as view:
            is_charged = _is_charged(view, request)
            if not self._is_answered(view, request, consumer):
                self._check_policy(request, dataset)
                self._charging.check_policy(request, dataset, cost)
                self._check_allowed(view, request, dataset, consumer, cost)
        return self._recall(request) if is_charged else None

    def _is_answered(self, reader: Reads, request: LabelsOpen, consumer: str) -> bool:
        stored = reader.answer(consumer, request.request_id)
        if stored is not None:
            check_same(stored, request_digest(request))
        return stored is not None

    def _check_policy(self, request: LabelsOpen, dataset: LabelDataset) -> None:
        settings, label_range = request.settings, dataset.settings.label_range
        if label_range is None:
            self._charging.refuse("dataset", "its labels are zeros and ones: ask for an aggregate")
        if (settings.grid.lo, settings.grid.hi) != label_range:
            self._charging.refuse("mechanism", "the grid's ends are not the dataset's label range: describe it")
        if settings.name not in self._charging.policy.of(LabelDPPolicy).allowed:
            self._charging.refuse("mechanism", f"{settings.name} is not one of the policy's mechanisms")

    def _check_allowed(
        self, reader: Reads, request: LabelsOpen, dataset: LabelDataset, consumer: str, cost: Cost
    ) -> None:
        """Check a charge or a repeat. A repeat of a charged release does not check budget and answered jobs again."""
        if _is_charged(reader, request):
            check_rollbacks(reader, dataset.population)
            self._charging.check_approval(reader, request, dataset, consumer, cost, made_before=True)
        else:
            self._charging.check_chargeable(reader, request, dataset, consumer, cost)

    # --- what is remembered

    def _recall(self, request: LabelsOpen) -> Remembered:
        """Return a release that was charged, when no process makes it any more.

        Raises:
            PolicyRefused: it was never made, and never will be.
            LedgerUnavailable: its files are not the files that were stored.
        """
        stored = self._wait_for_end(_digest(request))
        if stored.is_under_way:
            self._charging.refuse("release", LOST)
        if not stored.directory:
            self._charging.refuse("mechanism", NOT_MADE)
        found = self._open.get(stored.digest)
        if found is None:
            labels = open_frozen(self._directory / stored.directory, stored.labels_sha256, self._charging.vault)
            release = codec.release_from_pb(pb.FittedRelease.FromString(stored.answer), "the store")
            found = self._open[stored.digest] = Remembered(release, labels)
            for oldest in list(self._open)[:-MOST_OPEN]:
                self._open.pop(oldest, None)
        return found

    def _wait_for_end(self, digest: str) -> StoredLabels:
        """Wait for the process that makes a release: it locks the directory until the release is made or the process
        ends.
        """
        stored = self._read_stored(digest)
        if stored.is_under_way:
            with contextlib.suppress(FileNotFoundError), _lock(self._directory / stored.directory, fcntl.LOCK_SH):
                pass
            stored = self._read_stored(digest)
        return stored

    def _read_stored(self, digest: str) -> StoredLabels:
        stored = self._store.reader().label_release(digest)
        if stored is None:
            raise LocalProtocolError("the store lacks a release that was charged there a moment ago")
        return stored

    # --- the release

    def release(self, request: LabelsOpen, dataset: LabelDataset, consumer: str) -> Remembered:
        """Return the release after it is stored, so that a crash never leads to a second draw."""
        with self._making[_digest(request)]:
            with self._store.view() as view:  # between two reads another process may have charged this very release
                is_charged = _is_charged(view, request)
                if not is_charged:
                    self._charging.check_chargeable(view, request, dataset, consumer, cost_of(request, dataset))
            if not is_charged:
                self._make(request, dataset, consumer)
        self._making.pop(_digest(request), None)
        return self._recall(request)

    def _make(self, request: LabelsOpen, dataset: LabelDataset, consumer: str) -> None:
        """Charge and make a release. The charge is on the disk before anything depends on a label, even a refusal or a
        time.
        """
        fitted = self._fit_without_labels(request, dataset)
        with self._new_directory() as directory:
            charged = self._charge(request, dataset, consumer, directory.name)
            if charged is None:  # another process charged it meanwhile
                return
            try:
                self._draw(charged, fitted or self._fit_to_labels(request, dataset), directory)
            except (BlindfitError, OSError) as error:
                log.error("a release was charged and is lost", dataset=dataset.name, reason=str(error))

    def _fit_without_labels(self, request: LabelsOpen, dataset: LabelDataset) -> FittedMechanism | None:
        """Return the mechanism, or None if a prior must be estimated. A fit that fails here costs nothing."""
        if request.settings.estimates_prior:
            return None
        try:
            return self._fit(request, dataset)
        except BlindfitError as error:
            raise PolicyRefused(party=self._charging.name, field="mechanism", reason=str(error)) from None

    def _fit_to_labels(self, request: LabelsOpen, dataset: LabelDataset) -> FittedMechanism | None:
        """Return the mechanism, or None if the settings make no mechanism. That depends on the labels, through the
        prior.
        """
        try:
            return self._fit(request, dataset)
        except BlindfitError as error:
            name = request.settings.name
            log.warning("no mechanism could be made", dataset=dataset.name, mechanism=name, reason=str(error))
            return None

    def _fit(self, request: LabelsOpen, dataset: LabelDataset) -> FittedMechanism:
        labels = protocol.step_5_labels_to_fit(request.settings, _labels_of(request, dataset))
        return protocol.step_5_fit(request.settings, labels, self._charging.uniform, self._make_mechanism)

    def _charge(self, request: LabelsOpen, dataset: LabelDataset, consumer: str, directory: str) -> Charged | None:
        """Charge the release, or return None if it is charged already."""
        cost, digest = cost_of(request, dataset), _digest(request)
        with self._store.transaction() as transaction:
            if self._is_answered(transaction, request, consumer) or _is_charged(transaction, request):
                return None
            self._charging.check_chargeable(transaction, request, dataset, consumer, cost)
            entry, receipt = self._charging.append(transaction, request, dataset, consumer, cost)
            under_way = StoredLabels(digest, entry.position, request.settings.name, request.release, directory)
            transaction.add_label_release(under_way)
            digest_of_request = request_digest(request).hex()
            answer = StoredAnswer(digest_of_request, b"", entry.position, request.session, cost.kept_bytes)
            transaction.add_answer(consumer, request.request_id, answer)
        return Charged(request, dataset, cost, receipt, under_way)

    def _draw(self, charged: Charged, fitted: FittedMechanism | None, directory: Path) -> None:
        """Store the labels, or that no labels could be made."""
        made = replace(charged.stored, directory="")
        if fitted is not None:
            blocks = _labels_of(charged.request, charged.dataset)
            noisy = protocol.step_5_randomise(fitted.mechanism, blocks, self._charging.uniform)
            sha256 = freeze(charged.dataset.index, directory, noisy, self._charging.vault)
            made = replace(charged.stored, labels_sha256=sha256, answer=charged.answer(fitted))
        with self._store.transaction() as transaction:
            transaction.end_label_release(made)

    # --- directories

    @contextlib.contextmanager
    def _new_directory(self) -> Iterator[Path]:
        """Yield a locked directory; remove it afterwards unless the database has stored labels there."""
        with _lock(self._directory, fcntl.LOCK_SH):
            directory = Path(tempfile.mkdtemp(prefix="release-", dir=self._directory))  # mode 0700
            try:
                with _lock(directory, fcntl.LOCK_EX):
                    yield directory
            finally:
                if directory.name not in self._list_made():
                    shutil.rmtree(directory, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """Remove labels that a killed process had drawn, and that nobody has received."""
        try:
            with _lock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB):
                made = self._list_made()
                for path in self._directory.glob("release-*"):
                    if path.name not in made:
                        shutil.rmtree(path)
        except BlockingIOError:  # another process makes a release: the next start removes the leftovers
            return

    def _list_made(self) -> set[str]:
        stored = self._store.reader().label_releases()
        return {labels.directory for labels in stored if not labels.is_under_way}


def _digest(request: LabelsOpen) -> str:
    return release_digest(request).hex()


def _is_charged(reader: Reads, request: LabelsOpen) -> bool:
    return reader.label_release(_digest(request)) is not None


def _labels_of(request: LabelsOpen, dataset: LabelDataset) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    return dataset.index.labels_in_order(request.max_rows_per_person or None)


@contextlib.contextmanager
def _lock(directory: Path, how: int) -> Iterator[None]:
    """Lock a directory. The lock ends with the process, in any way."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def cost_of(request: LabelsOpen, dataset: LabelDataset) -> Cost:
    event = step_2_event(request, neighbours=dataset.neighbours)
    kept_bytes = KEPT_BYTES_OF_LABELS + KEPT_BYTES_OF_A_LABEL * dataset.index.n_rows
    return Cost(event, *step_2_cost(request, event), kept_bytes)


def _tell_of_clipping(dataset: LabelDataset, lo: float, hi: float) -> None:
    """Warn only the operator: the number of labels outside the range depends on the labels."""
    blocks = dataset.index.labels_in_order(None)
    clipped = sum(int(((labels < lo) | (labels > hi)).sum()) for labels, _ in blocks)
    if clipped:
        log.warning("labels outside label_range are clipped", dataset=dataset.name, rows=clipped)


# --- one request --------------------------------------------------------------------------------------


class LabelsDesk(Background):
    """Implementation of release_labels.Desk for one call."""

    def __init__(self, charging: ChargingService, releases: LabelReleases, consumer: str) -> None:
        super().__init__(charging.threads, consumer)
        self._charging, self._releases = charging, releases
        self._closing = contextlib.ExitStack()
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed with the others
        self._ids = self._closing.enter_context(spool)
        self._upload: Upload
        self._state: JoinState
        self._made_before: Remembered | None
        self._remembered: Remembered
        self._dataset: LabelDataset
        self.request: LabelsOpen

    def admit(self, request: LabelsOpen) -> bool:
        self._dataset = self._charging.dataset(request.dataset, self.consumer)
        self.request = request
        self._upload = self._closing.enter_context(Upload(self._charging, self._dataset, self.consumer))
        self._made_before = made = self._releases.admit(request, self._dataset, self.consumer)
        self._upload.check_quota(self._charging.store.reader())
        index = made.labels if made else self._dataset.index
        self._state = self._closing.enter_context(index.new_request(None, "refuse"))
        return made is not None

    def look_up(self, ids: Sequence[str]) -> None:
        self._upload.begin()
        self._state.join(list(ids))
        self._ids.write(json.dumps(ids).encode() + b"\n")

    def release(self, roll: RollCall) -> FittedRelease:
        with self._upload.answering(self._state):
            self._charging.check_kept(self._count_kept())
            self._remembered = self._releases.release(roll.request, self._dataset, self.consumer)
        return self._remembered.release

    def _count_kept(self) -> int:
        """Return the number of rows that count. It depends only on ids and persons, or on an answer that was given
        before, so a refusal costs nothing.
        """
        if self._made_before is None:
            return self._state.count_within(self.request.max_rows_per_person or None)
        return sum(int((steps != WITHHELD).sum()) for steps in self._join(self._made_before.labels))

    def labels(self) -> Iterator[Steps]:
        return self._join(self._remembered.labels)

    def _join(self, labels: LabelIndex) -> Iterator[Steps]:
        self._ids.seek(0)
        with labels.new_request(None, "refuse") as state:
            for line in self._ids:
                steps = state.join(json.loads(line)).labels
                state.check()
                yield np.asarray(steps, np.int64)

    def close_files(self) -> None:
        self._closing.close()
