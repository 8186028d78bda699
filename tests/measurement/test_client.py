"""The measurement server's client with a real server over mutual TLS, and how each reports the other's faults."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest

from blindfit.algorithms.errors import (
    BlindfitError,
    BudgetExhausted,
    CallNotAllowed,
    CannotAnswer,
    DataError,
    LedgerBehind,
    LimitExceeded,
    MalformedMessage,
    PeerAborted,
    PeerTimeout,
    PeerUnauthenticated,
    PeerUnreachable,
    PolicyRefused,
    RangeError,
    TooFewRows,
)
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum
from blindfit.algorithms.protocols.walr import request as walr_request
from blindfit.parties.identity import connections as tls
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement import server as measurement
from blindfit.parties.measurement.asking import reporter
from blindfit.parties.measurement.calls import MeasurementCalls, check_description
from blindfit.parties.measurement.codec import ServerSide
from blindfit.parties.measurement.desk import AggregateDesk
from blindfit.parties.measurement.server import MeasurementServicer
from blindfit.parties.wire.limits import Limits
from blindfit.protos import measurement_pb2 as pb
from tests.certificates import demo_authority, make_identity
from tests.measurement.house import NAMES, POLICY, House, make_dataset, one_hot
from tests.measurement.serving import World, serving

OpenHouse = Callable[..., House]
WIDE = Budget(50.0, 1e-6)


# --- what works -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("client"))


async def test_describe_aggregate_budget(open_house: OpenHouse, authority: Path) -> None:
    house = open_house(budget=WIDE)
    async with serving(house, authority) as world:
        client = world.client()
        description = await client.describe("visits")
        check_description(description, server="labels")
        assert description.snapshot == house.datasets["visits"].snapshot
        assert description.receipt_key == house.service.key.public_bytes
        rows = one_hot()
        told: list[int] = []
        aggregate = await client.aggregate(rows, house.request(rows), told.append)
        assert aggregate.kept.all()
        assert aggregate.bytes_sent > rows.weights.nbytes
        assert aggregate.messages_sent >= 2
        assert told == [-1, 12]
        budget = await client.budget("visits")
        assert (budget.releases, budget.epsilon) == (1, 50.0)
        assert budget.spent_epsilon == pytest.approx(1.0)
        again = await client.aggregate(rows, house.request(rows))
        assert again.answer.sums.tolist() == aggregate.answer.sums.tolist()
        assert again.answer.receipt == aggregate.answer.receipt
        assert again.bytes_sent < 1000
        assert [request.n_rows for request in world.server.answered] == [12, 12]


@pytest.mark.parametrize(
    "changes", [{"unit": ""}, {"unit": "household"}, {"receipt_key": b""}, {"receipt_key": bytes(31)}]
)
def test_a_description_without_which_nothing_is_asked(changes: dict[str, Any]) -> None:
    """Receipts that no key checks would prove no charge."""
    described = pb.DatasetDescription(**{"unit": "person", "receipt_key": bytes(32), **changes})
    with pytest.raises(MalformedMessage, match="labels sent a malformed message: unit or receipt_key: is not what it"):
        check_description(described, server="labels")


async def test_rows_that_did_not_count_arrive(open_house: OpenHouse, authority: Path, tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, dict.fromkeys(NAMES, 1), [f"person-{i // 4}" for i in range(12)])
    house = open_house(datasets={"visits": dataset}, budget=WIDE)
    rows = one_hot()
    async with serving(house, authority) as world:
        for _ in range(2):
            aggregate = await world.client().aggregate(rows, house.request(rows))
            assert aggregate.kept.tolist() == [i % 4 == 0 for i in range(12)]
            assert aggregate.answer.unit == "the labels of one person"


async def test_more_rows_than_one_message_holds(open_house: OpenHouse, authority: Path, tmp_path: Path) -> None:
    """300 columns: 16,384 such rows would be four times the limit."""
    names = tuple(f"row-{i}" for i in range(6000))
    house = open_house(datasets={"visits": make_dataset(tmp_path, dict.fromkeys(names, 1))}, budget=WIDE)
    rows = ConsumerRows(names, np.ones((6000, 300), np.int32))
    async with serving(house, authority) as world:
        answer = await world.ask(rows)
        assert np.abs(answer.sums - 6000).max() < 10 * answer.noise_std


async def test_two_at_once_ask_the_same(open_house: OpenHouse, authority: Path) -> None:
    """A stream is played again while the first one runs: both get the one answer."""
    house = open_house()
    async with serving(house, authority) as world:
        answers = await asyncio.gather(*(world.ask() for _ in range(6)))
    assert len({answer.sums.tobytes() for answer in answers}) == 1
    assert len(house.entries) == 1


# --- refusals, and their messages ------------------------------------------------------------------------


async def refusal(world: World, rows: ConsumerRows, request: AggregateOpen, consumer: str = "shop") -> BlindfitError:
    """Return the error, which came before any row was sent."""
    told: list[int] = []
    with pytest.raises(BlindfitError) as caught:
        await world.client(consumer).aggregate(rows, request, told.append)
    assert told == [-1]
    return caught.value


async def test_refusals_are_typed_and_come_before_any_row(open_house: OpenHouse, authority: Path) -> None:
    house = open_house(policy=POLICY.model_copy(update={"min_rows": 5, "max_epsilon": 1.0}))
    rows = one_hot()
    async with serving(house, authority) as world:
        lost = await world.ask()
        spent = await refusal(world, rows, house.request(rows, release="again"))
        assert isinstance(spent, BudgetExhausted)
        assert spent.spent == pytest.approx(1)
        assert isinstance(await refusal(world, rows, house.request(rows, epsilon=1.5)), PolicyRefused)
        few = one_hot(NAMES[:4])
        assert isinstance(await refusal(world, few, house.request(few)), TooFewRows)
        malformed = await refusal(world, rows, house.request(rows, request_id="x", protocol_version="0"))
        assert isinstance(malformed, PeerAborted)
        assert "protocol_version" in str(malformed)
        for field in ("epsilon", "delta"):
            error = await refusal(world, rows, replace(house.request(rows), request_id="x", **{field: float("nan")}))
            assert isinstance(error, PeerAborted)
            assert field in str(error)
        with house.service.store.transaction() as transaction:
            transaction._all("DELETE FROM ledger")
        behind = await refusal(world, rows, house.request(rows, receipt=lost))
        assert isinstance(behind, LedgerBehind)
        assert (behind.ledger_position, behind.receipt_position) == (0, 1)


@pytest.mark.parametrize("public", [True, False])
async def test_a_wrong_row_is_named(open_house: OpenHouse, tmp_path: Path, authority: Path, public: bool) -> None:
    dataset = make_dataset(tmp_path, dict.fromkeys(NAMES, 1), rows_are_public=public)
    house = open_house(datasets={"visits": dataset})
    twice = ConsumerRows((*NAMES, NAMES[3]), one_hot((*NAMES, "x")).weights)
    async with serving(house, authority) as world:
        with pytest.raises(DataError, match="row 13"):
            await world.ask(twice)
        with pytest.raises(DataError if public else CannotAnswer) as caught:
            await world.ask(one_hot((*NAMES, "nobody")))
        assert ("row 13 (1 such rows in all)" in str(caught.value)) == public
        assert (caught.value.message == "labels cannot answer this request; its operator knows why") != public
        await world.ask()
    assert len(house.entries) == 1


async def test_only_an_active_party_may_ask(house: House, authority: Path) -> None:
    async with serving(house, authority) as world:
        for call in (world.client("organiser").describe("visits"), world.ask(consumer="organiser")):
            with pytest.raises(CallNotAllowed):
                await call
    assert house.entries == []


CORRUPT = {
    "no protobuf": b"\xff\xff\xff\xff",
    "a text that is no UTF-8": b"\x0a\x04\x12\x02\xff\xfe",
    "nothing": b"",
    "an empty request": pb.AggregateRequest(open=pb.AggregateOpen()).SerializeToString(),
    "rows first": pb.AggregateRequest(rows=pb.WeightRows(ids=["a"], weights=b"1234")).SerializeToString(),
}


@pytest.mark.parametrize("what", CORRUPT)
async def test_corrupt_bytes_are_refused_with_a_type(house: House, authority: Path, what: str) -> None:
    async with serving(house, authority) as world:
        status, error = await world.status_of(CORRUPT[what])
        assert status in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)
        assert isinstance(error, PeerAborted)
        await world.ask()


@pytest.mark.parametrize("weights", [b"", b"123", b"1" * 44, b"1" * 52])
async def test_weights_of_a_wrong_length_are_refused(house: House, authority: Path, weights: bytes) -> None:
    request = measurement_codec.request_to_pb(house.request(one_hot())).SerializeToString()
    rows = pb.AggregateRequest(rows=pb.WeightRows(ids=["row-0"], weights=weights)).SerializeToString()
    async with serving(house, authority) as world:
        status, error = await world.status_of(request, rows)
        assert status is grpc.StatusCode.INVALID_ARGUMENT
        assert "weights" in str(error)
        await world.ask()
    assert len(house.entries) == 1


async def test_a_batch_larger_than_a_message(house: House, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walr_request, "BATCH_BYTES", 2**30)
    names = tuple(f"row-{i}" for i in range(2000))
    rows = ConsumerRows(names, np.zeros((2000, 600), np.int32))
    async with serving(house, authority) as world:
        with pytest.raises(RangeError, match=r"does not fit in a message of 4194304"):
            await world.ask(rows)
        generous = world.client(limits=Limits(max_message_bytes=2**24))
        with pytest.raises(LimitExceeded):  # a foreign client has a higher limit
            await generous.aggregate(rows, house.request(rows))
        await world.ask()
    assert len(house.entries) == 1


async def test_a_refusal_in_the_middle_of_the_rows_is_told(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The active party is still writing: gRPC reports the failed write before it reports why."""
    monkeypatch.setattr(walr_request, "BATCH_ROWS", 1)
    ids = tuple(f"row-{i}" for i in range(2000))
    rows = ConsumerRows(ids, np.zeros((2000, 100), np.int32))
    async with serving(house, authority) as world:
        for _ in range(5):
            with pytest.raises(PeerAborted, match="weights"):
                await world.ask(rows, n_columns=99)


# --- cuts ---------------------------------------------------------------------------------------------


def slow_join(monkeypatch: pytest.MonkeyPatch, delay_s: float) -> None:
    join = AggregateDesk.join

    def slow(self: AggregateDesk, ids: Sequence[str]) -> Any:
        time.sleep(delay_s)
        return join(self, ids)

    monkeypatch.setattr(AggregateDesk, "join", slow)


async def test_a_server_that_stops_in_the_middle_of_the_rows(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walr_request, "BATCH_ROWS", 1)
    slow_join(monkeypatch, 0.05)
    rows, told = one_hot(), []
    async with serving(house, authority) as world:

        def on_rows(n: int) -> None:
            told.append(n)
            if told == [-1, 1]:
                world.meanwhile(world.server.restart())

        aggregate = await world.client().aggregate(rows, house.request(rows), on_rows)
        assert told.count(-1) >= 2
        assert told[-12:] == [1] * 12
        assert (await world.ask()).sums.tolist() == aggregate.answer.sums.tolist()
    assert len(house.entries) == 1


async def test_a_server_that_stops_between_charge_and_answer(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stands, so the answer that was stored with it must come: no second draw, no second charge."""
    rows, told = one_hot(), []
    send = ServerSide.send
    async with serving(house, authority) as world:

        async def stop_before_the_answer(self: ServerSide, to: str, message: object) -> None:
            if isinstance(message, NoisySum) and not world.background:
                assert len(house.entries) == 1
                world.meanwhile(world.server.restart())
                await asyncio.sleep(60)
            await send(self, to, message)

        monkeypatch.setattr(ServerSide, "send", stop_before_the_answer)
        aggregate = await world.client().aggregate(rows, house.request(rows), told.append)
        assert told == [-1, 12, -1]
        assert len(world.server.answered) == 1
        assert (await world.ask()).sums.tolist() == aggregate.answer.sums.tolist()
    (entry,) = house.entries
    assert entry.request_id == house.request(rows).request_id


async def test_a_server_that_stays_away_is_named(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walr_request, "BATCH_ROWS", 1)
    slow_join(monkeypatch, 0.05)
    rows = one_hot()
    async with serving(house, authority) as world:

        def on_rows(n: int) -> None:
            if n > 0 and not world.background:
                world.meanwhile(world.server.stop())

        with pytest.raises(PeerUnreachable) as lost:
            await world.client(reconnect_s=3).aggregate(rows, house.request(rows), on_rows)
    assert (lost.value.peer, lost.value.address, lost.value.step) == ("labels", world.address, "Aggregate")
    assert "Connection refused; tried for 3 s" in str(lost.value)
    assert house.entries == []


@pytest.mark.parametrize("method", ["describe", "budget"])
async def test_a_server_that_was_never_there_is_named(house: House, authority: Path, method: str) -> None:
    async with serving(house, authority) as world:
        client = world.client(reconnect_s=0.3)
    with pytest.raises(PeerUnreachable) as lost:
        await getattr(client, method)("visits")
    assert (lost.value.peer, lost.value.step) == ("labels", method.title())


async def test_an_address_that_swallows_everything_costs_no_more_than_reconnect_s(authority: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        client = MeasurementCalls(make_identity(authority, "shop"), "labels", address, reconnect_s=0.5)
        with pytest.raises(PeerUnreachable) as lost:
            await client.describe("visits")
        assert lost.value.step == "Describe"


@pytest.mark.parametrize("accepted_before", [False, True])
async def test_a_refused_handshake_is_final_unless_it_follows_a_cut(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch, accepted_before: bool
) -> None:
    """A server that is going down hangs up in the middle of a handshake, as one does that refuses us."""
    send, open_channel, opened = ServerSide.send, tls.open_channel, 0

    async def cut_once(self: ServerSide, to: str, message: object) -> None:
        if opened == 1:
            await self._context.abort(grpc.StatusCode.UNAVAILABLE)
        await send(self, to, message)

    async def refused_once(*arguments: Any) -> grpc.aio.Channel:
        nonlocal opened
        opened += 1
        if opened == (2 if accepted_before else 1):
            raise PeerUnauthenticated(peer="labels", reason="it hung up")
        return await open_channel(*arguments)

    monkeypatch.setattr(ServerSide, "send", cut_once)
    monkeypatch.setattr(tls, "open_channel", refused_once)
    async with serving(house, authority) as world:
        if accepted_before:
            await world.ask()
        else:
            with pytest.raises(PeerUnauthenticated):
                await world.ask()


async def test_a_server_that_keeps_cutting_is_given_up(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    async def cut(self: ServerSide, to: str, message: object) -> None:
        nonlocal calls
        calls += 1
        await self._context.abort(grpc.StatusCode.UNAVAILABLE)

    monkeypatch.setattr(ServerSide, "send", cut)
    async with serving(house, authority) as world:
        with pytest.raises(PeerUnreachable) as lost:
            await world.ask()
    assert lost.value.peer == "labels"
    assert calls == 10


# --- stalls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Opened", "NoisySum"])
async def test_a_server_that_stalls_is_named_with_its_step(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    send = ServerSide.send

    async def stall(self: ServerSide, to: str, message: object) -> None:
        if type(message).__name__ == kind:
            await asyncio.sleep(60)
        await send(self, to, message)

    monkeypatch.setattr(ServerSide, "send", stall)
    rows = one_hot()
    async with serving(house, authority) as world:
        with pytest.raises(PeerTimeout) as late:
            await world.client(step_timeout_s=3).aggregate(rows, house.request(rows))
        monkeypatch.setattr(ServerSide, "send", send)
        assert (late.value.peer, late.value.step, late.value.timeout_s) == ("labels", kind, 3)
        await world.ask()
    assert len(house.entries) == 1


async def test_a_server_that_does_not_read_is_named(
    open_house: OpenHouse, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()
    monkeypatch.setattr(AggregateDesk, "join", lambda _self, _ids: done.wait(60))
    n_rows = 100_000  # 80 MB: several times what windows and the system's buffers may hold unread
    rows = ConsumerRows(tuple(f"row-{i}" for i in range(n_rows)), np.zeros((n_rows, 200), np.int32))
    house = open_house()
    async with serving(house, authority) as world:
        with pytest.raises(PeerTimeout) as late:
            await world.client(step_timeout_s=3).aggregate(rows, house.request(rows))
        done.set()
    assert (late.value.peer, late.value.step) == ("labels", "WeightRows")


async def test_a_call_without_a_stream_has_a_deadline_too(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stall(self: MeasurementServicer, request: Any, context: Any) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(MeasurementServicer, "Describe", stall)
    async with serving(house, authority) as world:
        with pytest.raises(PeerTimeout) as late:
            await world.client(step_timeout_s=0.3).describe("visits")
    assert (late.value.peer, late.value.step) == ("labels", "Describe")


async def test_a_consumer_that_stalls_is_let_go(house: House, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "STEP_TIMEOUT_S", 3)
    request = measurement_codec.request_to_pb(house.request(one_hot())).SerializeToString()
    async with serving(house, authority) as world:
        for said, step in (((), "AggregateOpen"), ((request,), "WeightRows")):
            status, error = await world.status_of(*said)
            assert status is grpc.StatusCode.DEADLINE_EXCEEDED
            assert isinstance(error, PeerTimeout)
            assert (error.peer, error.step) == ("shop", step)
        await world.ask()


# --- an active party that hangs up ------------------------------------------------------------------------


async def test_files_close_after_the_work_that_uses_them(house: House) -> None:
    """A thread cannot be stopped: to take the files from under it would be a crash."""
    desk, begun, begin = AggregateDesk(house.service, "shop"), threading.Event(), threading.Event()
    desk.admit(house.request(one_hot()))
    desk.join(NAMES[:1])

    def join() -> None:
        begun.set()
        assert begin.wait(60)
        desk.join(NAMES[1:])

    work = asyncio.ensure_future(desk.in_background(join))
    assert await asyncio.to_thread(begun.wait, 60)
    work.cancel()
    await asyncio.sleep(0.05)
    desk.close()
    assert not desk._kept.closed
    begin.set()
    async with asyncio.timeout(60):
        while not desk._kept.closed:
            await asyncio.sleep(0.01)
    assert desk._join is not None
    assert desk._join._used.array.size == 0


async def test_hanging_up_leaves_the_server_well(
    house: House, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_join(monkeypatch, 0.2)
    rows = one_hot()
    async with serving(house, authority) as world:
        for wait_s in (0.05, 0.15, 0.3):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(world.client().aggregate(rows, house.request(rows)), wait_s)
        await world.ask()
    assert len(house.entries) == 1


def test_rows_are_counted_from_the_begin_of_a_request() -> None:
    told: list[tuple[object, ...]] = []
    session: Any = SimpleNamespace(report=lambda *what, **_peer: told.append(what))
    on_rows = reporter(session, "send", 9, "meter")
    for count in (4, -1, 2, 3):
        on_rows(count)
    begins = ("ask for the release",)
    assert told == [("send", 4, 9, "rows"), begins, ("send", 2, 9, "rows"), ("send", 5, 9, "rows")]
