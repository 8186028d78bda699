"""A party's disk fills at each of its writes in a job: nobody hangs, and others see the same in two worlds.

The worlds differ in one of that party's private units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from blindfit.algorithms.errors import LedgerUnavailable
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.sessions.sessions import Sessions
from blindfit.parties.store.database import Store, Writes
from tests.interference.neighbours import PAIRS, Pair, Probe
from tests.interference.views import Record, differences
from tests.interference.world import Case, run

MOST_WRITES = 60  # limit of one party's writes in these jobs: the last failing write must be beyond its last write


@dataclass
class Disk:
    """One party's disk, which is full from one write on, or only for that write.

    Attributes:
        written: number of writes since the first job was proposed.
    """

    party: str
    full_from: int
    full_for: int
    begun: bool = False
    written: int = 0

    def write(self) -> None:
        self.written += 1
        if 0 <= self.written - self.full_from < self.full_for:
            raise LedgerUnavailable("database or disk is full")


@contextmanager
def filling(disk: Disk) -> Iterator[None]:
    transaction, propose = Store.transaction, Sessions.propose

    async def begins(sessions: Sessions, *asked: Any) -> Any:
        disk.begun = disk.begun or sessions._name == disk.party
        return await propose(sessions, *asked)

    @contextmanager
    def full(store: Store) -> Iterator[Writes]:
        with transaction(store) as open_transaction:
            yield open_transaction
            if disk.begun and store.path.parent.name == disk.party:
                disk.write()  # SQLite may report this when it commits; the change is then undone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sessions, "propose", begins)
        patch.setattr(Store, "transaction", full)
        yield


def filled(case: Case, probe: Probe, disk: Disk) -> Record:
    """Return what that party sent. Timing decides how far the others come until they hear of a failed start.

    They know of that party's rows only what it sent them."""
    with filling(disk):
        record = run(case, probe.authority).record
    sent = {stream: lines for stream, lines in record.streams.items() if stream[0] == disk.party}
    return Record(defaultdict(list, sent), record.ends, record.charged)


def told_apart_when_full(pair: Pair, probe: Probe, *, full_for: int) -> tuple[int, list[str]]:
    """Return the number of writes at which the disk failed, and the differences that distinguish the worlds."""
    one, other = pair.build(pair.case, probe)
    compare = partial(differences, declared=(*pair.case.declares, *pair.declared), omitted=pair.omitted, covered=True)
    for write in range(1, MOST_WRITES):
        disks = [Disk(pair.private, write, full_for) for _ in range(2)]
        sent = [filled(side.case, probe, disk) for side, disk in zip((one, other), disks, strict=True)]
        found = [f"{write} {line}" for observer in pair.observers for line in compare(*sent, observer)]
        if found or all(disk.written < write for disk in disks):
            return write - 1, found
    raise AssertionError("there is no last write")


FOR_EVER = 10**6
IN_ALL = ("walr-a-label", "walr-persons-labels-of-a-person", "walr-holders-a-label", "walr-split-a-share")
IN_ALL += ("walr-hidden-a-label", "walr-shares-a-share", "label-dp-a-price", "dp-lr-a-label", "evaluate-a-label")
IN_ALL += ("taylor-label-dp-a-label", "falcon-private-a-label")


def of_id(name: str) -> Pair:
    (found,) = (pair for pair in PAIRS if pair.id == name)
    return found


@pytest.mark.parametrize(
    ("name", "full_for"),
    [
        pytest.param(name, full_for, marks=[] if name == "walr-a-label" and full_for == FOR_EVER else pytest.mark.soak)
        for name in IN_ALL
        for full_for in (1, FOR_EVER)
    ],
)
def test_others_see_the_same_whenever_a_disk_fills(name: str, full_for: int, probe: Probe) -> None:
    writes, found = told_apart_when_full(of_id(name), probe, full_for=full_for)
    assert found == []
    assert writes > 4


def test_a_write_that_hangs_on_a_label_is_noticed(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second world the sum is another one: the server writes two more times before the answer."""
    release, first = MeasurementService.release, list[bytes]()

    def writing(service: MeasurementService, tally: Any, *more: Any) -> Any:
        first.append(tally.sums.tobytes())
        for _ in range(2 * (first[-1] != first[0])):
            with service.store.transaction():
                pass
        return release(service, tally, *more)

    monkeypatch.setattr(MeasurementService, "release", writing)
    _, found = told_apart_when_full(of_id("walr-a-label"), Probe(probe.authority), full_for=FOR_EVER)
    assert any("meter -> shop" in line for line in found)
