"""A measurement server with numeric labels, without its wire: called through both roles, over its protobuf messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.label_dp.messages import LabelsOpen
from blindfit.algorithms.protocols.label_dp.release import Received
from blindfit.algorithms.protocols.table import Gate
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.labels_codec import MESSAGES
from blindfit.parties.measurement.release_labels import LabelReleases, LabelsDesk
from blindfit.protos import measurement_pb2 as pb
from tests.measurement.house import House, published, write_labels
from tests.walr.seats import first_failure

RANGE = (0.0, 10.0)
GRID = LabelGrid(*RANGE)
LAPLACE = MechanismSettings("laplace", GRID, 1.0)
WIDE = Budget(50.0, 1e-6)
LABELS = {f"row-{i}": float(i % 10) + 0.25 for i in range(40)}
NAMES = tuple(LABELS)


def make_labels(
    directory: Path,
    labels: Mapping[str, float] = LABELS,
    persons: Sequence[str] | None = None,
    *,
    name: str = "prices",
    **settings: Any,
) -> LabelDataset:
    write_labels(directory / f"{name}.csv", "price", labels, persons)
    options: dict[str, Any] = {
        "population": "people",
        "active_parties": ["shop", "bank"],
        "label_range": RANGE,
        "person": "person" if persons else None,
    }
    party_dataset = PartyDatasetSettings(
        url=f"csv:{name}.csv", id="id", label="price", label_kind="number", **options | settings
    )
    return published(party_dataset, directory, name)


@dataclass
class Pipe:
    """Both ends of a call, in one process; `tamper` may change what the server sends."""

    tamper: Callable[[Any], Any] = lambda message: message

    def __post_init__(self) -> None:
        self.sent: list[str] = []
        self.to_server: asyncio.Queue[bytes] = asyncio.Queue()
        self.to_consumer: asyncio.Queue[bytes] = asyncio.Queue()

    def end(self, *, server: bool) -> End:
        return End(self, server)


class End:
    def __init__(self, pipe: Pipe, server: bool) -> None:
        self._pipe, self._server = pipe, server
        self._role, self._peer_role = ("measurement", "active") if server else ("active", "measurement")

    def _gate(self, peer: str) -> Gate:
        return MESSAGES.gate(self._role, {peer: self._peer_role})

    async def send(self, to: str, message: object) -> None:
        pipe = self._pipe
        self._gate(to).check_sent(message, to)
        pipe.sent.append(type(message).__name__)
        if self._server:
            await pipe.to_consumer.put(MESSAGES.response_to_pb(pipe.tamper(message)).SerializeToString())
        else:
            await pipe.to_server.put(MESSAGES.request_to_pb(message).SerializeToString())

    async def receive(self, sender: str, kind: type) -> Any:
        pipe = self._pipe
        self._gate(sender).check_asked(kind, sender)
        if self._server:
            envelope: Any = pb.ReleaseLabelsRequest.FromString(await pipe.to_server.get())
        else:
            envelope = pb.ReleaseLabelsResponse.FromString(await pipe.to_consumer.get())
        return MESSAGES.from_pb(envelope, kind, culprit=sender)


@dataclass
class Counter:
    """Requests of active parties to a house."""

    house: House

    def __post_init__(self) -> None:
        self.releases = LabelReleases(self.house.service)
        self.sent: list[str] = []

    def restart(self) -> None:
        self.house.reopen()
        self.releases = LabelReleases(self.house.service)

    def request(
        self,
        ids: Sequence[str] = NAMES,
        settings: MechanismSettings = LAPLACE,
        dataset: str = "prices",
        *,
        release: str = "first",
        receipt: Received | None = None,
        max_rows_per_person: int | None = None,
        session: str = "",
        **changes: Any,
    ) -> LabelsOpen:
        """Return a request; `changes` are its fields on the wire, so that it may be one that no active party would
        make.
        """
        known = self.house.datasets[dataset]
        request = release_labels.step_1_open(
            ids,
            settings,
            dataset=dataset,
            snapshot=known.snapshot,
            release=release,
            max_rows_per_person=known.max_rows_per_person if max_rows_per_person is None else max_rows_per_person,
            receipt=(receipt.release.receipt, receipt.release.receipt_signature) if receipt else (b"", b""),
            session=session,
        )
        return replace(request, **changes)

    def send(
        self,
        ids: Sequence[str],
        request: LabelsOpen,
        consumer: str = "shop",
        tamper: Callable[[Any], Any] = lambda message: message,
        make_desk: type[LabelsDesk] = LabelsDesk,
    ) -> Received:
        async def both() -> Received:
            pipe = Pipe(tamper)
            desk = make_desk(self.house.service, self.releases, consumer)
            try:
                return await first_failure(
                    release_labels.run_consumer(ids, request, "labels", pipe.end(server=False)),
                    release_labels.run_measurement_server(consumer, pipe.end(server=True), desk),
                )
            finally:
                self.sent = pipe.sent
                desk.close()

        return asyncio.run(both())

    def ask(
        self,
        ids: Sequence[str] = NAMES,
        settings: MechanismSettings = LAPLACE,
        consumer: str = "shop",
        **changes: Any,
    ) -> Received:
        return self.send(ids, self.request(ids, settings, **changes), consumer)

    def steps(self, *arguments: Any, **changes: Any) -> list[int]:
        return self.ask(*arguments, **changes).steps.tolist()

    @property
    def charges(self) -> int:
        return len(self.house.entries)


def places(dataset: LabelDataset, ids: Sequence[str]) -> np.ndarray:
    """Return the places of these rows in the index: the order in which their labels are drawn."""
    from blindfit.parties.data.id_hash import hash_texts

    high, low = hash_texts(list(ids), dataset.index._header.keys.ids)
    return np.lexsort((low, high))
