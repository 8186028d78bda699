"""An upload of ids makes the server do the same work for any persons in its table.

Until it is charged, an upload costs nothing, and can be repeated for ever while a clock runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.label_dp.messages import LabelIds, LabelIdsEnd
from blindfit.algorithms.protocols.walr import ConsumerRows, RowsEnd
from blindfit.parties.measurement import label_index
from blindfit.parties.measurement.desk import AggregateDesk
from tests.measurement.house import House, make_dataset, one_hot
from tests.measurement.traced import Trace, trace_joins, traced_lines
from tests.release_labels.house import Counter, LabelsDesk, make_labels

N = 24
ASKED = tuple(f"row-{i}" for i in range(N))
STRANGERS = tuple(f"stranger-{i}" for i in range(N))
PAIRS = [f"person-{i // 2}" for i in range(N)]
A_FAMILY = ["person-0"] * (N // 2 + 1) + [f"person-{i}" for i in range(1, N // 2)]  # as many persons as in PAIRS
KNOWN = {
    "all": ASKED,
    "none": STRANGERS,
    "some": tuple(name for pair in zip(ASKED[::2], STRANGERS[::2], strict=True) for name in pair),
    "the first": ASKED[: N // 2] + STRANGERS[N // 2 :],
}
WATCHED = ("/measurement/", "/protocols/walr", "/protocols/release_labels")


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    trace_joins(monkeypatch)
    monkeypatch.setattr(label_index, "RESIDENT_BYTES", 200)
    monkeypatch.setattr(label_index, "LEAST_PART", 3)


def upload_of(rows: ConsumerRows, house: House) -> Trace:
    """Trace an upload whose hash is wrong, in these batches of rows."""
    names = [rows.ids[i] for batch in BATCHES for i in batch]
    request = house.request(one_hot(rows.ids), content_sha256=bytes(32), n_rows=len(names), n_columns=N)
    messages = [walr.WeightRows(tuple(rows.ids[i] for i in batch), rows.weights[list(batch)]) for batch in BATCHES]
    desk = AggregateDesk(house.service, "shop")
    return traced_upload(house, desk, walr.run_measurement_server, request, *messages, RowsEnd())


class Script:
    """An active party that sends exactly these messages, and the answers that it receives."""

    def __init__(self, *messages: object) -> None:
        self._messages, self.told = iter(messages), list[object]()

    async def receive(self, _sender: str, kind: type) -> Any:
        message = next(self._messages)
        assert isinstance(message, kind)
        return message

    async def send(self, _to: str, message: object) -> None:
        self.told.append(message)


def traced_upload(house: House, desk: Any, run: Any, *messages: object) -> Trace:
    desk.in_background = immediately
    script = Script(*messages)
    with traced_lines(*WATCHED) as trace:
        with pytest.raises(BlindfitError) as caught:
            asyncio.run(run("shop", script, desk))
        desk.close()
    house.close()
    return [*trace, ("told", *script.told, str(caught.value))]


async def immediately(work: Callable[[], Any]) -> Any:
    return work()


BATCHES = (range(10), [0], range(5, N), [0], [0], [23], range(10))  # most ids more than once


@pytest.mark.parametrize("unknown_rows", ["zero", "refuse"])
def test_an_upload_is_the_same_whoever_is_in_the_table(tmp_path: Path, unknown_rows: str) -> None:
    traces = {}
    for number, (which, names) in enumerate(KNOWN.items()):
        labels = {name: (i + number) % 2 for i, name in enumerate(names)}
        dataset = make_dataset(tmp_path / str(number), labels, unknown_rows=unknown_rows)
        house = House(tmp_path / str(number), {"visits": dataset})
        traces[which] = upload_of(one_hot(ASKED), house)
    assert_same(traces)


def assert_same(traces: dict[str, Trace]) -> None:
    first, *others = traces.values()
    assert sum(entry[0] == "get" for entry in first) > 5  # reads of the mapped arrays
    assert "content_sha256: is not the hash of" in str(first[-1])
    for other in others:
        assert [pair for pair in zip(first, other, strict=False) if pair[0] != pair[1]][:1] == []
        assert len(other) == len(first)


def test_an_upload_is_the_same_whose_ever_the_rows_are(tmp_path: Path) -> None:
    traces = {}
    for number, (names, persons) in enumerate(
        [(ASKED, PAIRS), (ASKED, A_FAMILY), (ASKED[::-1], A_FAMILY), (STRANGERS, PAIRS)]
    ):
        dataset = make_dataset(tmp_path / str(number), dict.fromkeys(names, 1), persons, max_rows_per_person=3)
        house = House(tmp_path / str(number), {"visits": dataset})
        traces[str(number)] = upload_of(one_hot(ASKED), house)
    assert_same(traces)


@pytest.mark.parametrize("made_before", [False, True])
def test_an_upload_for_labels_is_the_same_whoever_is_in_the_table(tmp_path: Path, made_before: bool) -> None:
    traces = {}
    for number, (which, names) in enumerate(KNOWN.items()):
        house = House(
            tmp_path / str(number), {"prices": make_labels(tmp_path / str(number), dict.fromkeys(names, 1.0))}
        )
        counter = Counter(house)
        if made_before:
            counter.ask([names[0]])
        asked = [tuple(ASKED[i] for i in batch) for batch in BATCHES]
        request = counter.request(ASKED, n_rows=sum(map(len, asked)), content_sha256=bytes(32))
        desk = LabelsDesk(house.service, counter.releases, "shop")
        run = release_labels.run_measurement_server
        traces[which] = traced_upload(house, desk, run, request, *map(LabelIds, asked), LabelIdsEnd())
    assert_same(traces)


def test_a_refusal_is_the_same_for_whatever_private_reason(tmp_path: Path) -> None:
    """The causes are unknown ids, in any number and at any place, and too few rows that count."""
    told = set()
    few = make_dataset(tmp_path / "few", dict.fromkeys(ASKED, 1), ["ann"] * N)
    for number, names in enumerate((STRANGERS, KNOWN["some"], (*ASKED[1:], STRANGERS[0]))):
        house = House(tmp_path / str(number), {"visits": make_dataset(tmp_path / str(number), dict.fromkeys(names, 1))})
        told.add(refusal(house))
    house = House(tmp_path / "few", {"visits": few}, policy=house.policy.model_copy(update={"min_rows": 2}))
    told.add(refusal(house))
    assert told == {"labels cannot answer this request; its operator knows why"}


def refusal(house: House) -> str:
    with pytest.raises(BlindfitError) as caught:
        house.ask(one_hot(ASKED), release="x")
    assert house.entries == []
    assert house.consumed[-1] == "RowsEnd"
    house.close()
    return caught.value.message
