"""The client's release_labels against a real server over mutual TLS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import (
    BudgetExhausted,
    CallNotAllowed,
    CannotAnswer,
    DataError,
    MalformedMessage,
    PeerUnauthenticated,
    PolicyRefused,
)
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings
from blindfit.algorithms.privacy.ledger import Budget, Receipt
from blindfit.algorithms.protocols.label_dp.messages import FittedRelease, NoisyLabels
from blindfit.parties.measurement.codec import ServerSide
from blindfit.parties.measurement.labels_codec import request_to_pb
from blindfit.parties.measurement.release_labels import LabelsDesk
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc
from tests.measurement.serving import serving
from tests.release_labels.asking import ask, authority
from tests.release_labels.house import GRID, LAPLACE, NAMES, WIDE, Counter, make_labels
from tests.statuses import reason_of_call

__all__ = ["authority"]  # a fixture

OpenCounter = Callable[..., Counter]
RP = MechanismSettings("rp-with-prior", GRID, 1.0)


async def test_labels_come_with_their_law_and_stay_the_same(counter: Counter, authority: Path) -> None:
    async with serving(counter.house, authority) as world:
        told: list[int] = []
        released = await ask(world, settings=RP, on_rows=told.append)
        assert told == [-1, 40]
        assert released.labels.dtype == np.float64
        assert released.kept.all()
        assert released.mechanism.debias(released.labels).shape == (40,)
        assert (released.epsilon, released.delta) == (1.0, 0.0)
        assert (released.prior_mechanism, released.epsilon_prior) == ("laplace", pytest.approx(1 / 3))
        assert 0 <= released.rows_outside <= 40
        assert released.bytes_sent > sum(map(len, NAMES))
        assert released.messages_sent >= 2
        await world.server.restart()
        again = await ask(world, NAMES[::-1], RP, "bank", receipt=released.receipt)
        assert again.labels.tolist() == released.labels[::-1].tolist()
        assert again.mechanism == released.mechanism
        other = await ask(world, settings=RP, release="second", receipt=released.receipt)
        assert other.labels.tolist() != released.labels.tolist()
        assert Receipt.from_statement(other.receipt[0]).position == 2
        budget = await world.client().budget("prices")
        assert (budget.releases, budget.spent_epsilon) == (2, pytest.approx(2.0))


async def test_withheld_labels_are_not_numbers(tmp_path: Path, open_counter: OpenCounter, authority: Path) -> None:
    dataset = make_labels(tmp_path, persons=[f"person-{i // 4}" for i in range(40)], max_rows_per_person=2)
    counter = open_counter(datasets={"prices": dataset})
    async with serving(counter.house, authority) as world:
        released = await ask(world)
        assert released.kept.reshape(10, 4).sum(axis=1).tolist() == [2] * 10
        assert np.isnan(released.labels[~released.kept]).all()
        assert (released.epsilon, released.unit) == (2.0, "the labels of one person")
        fewer = await ask(world, max_rows_per_person=1)
        assert (fewer.kept.sum(), fewer.epsilon) == (10, 1.0)


async def test_refusals_are_typed(open_counter: OpenCounter, authority: Path) -> None:
    counter = open_counter(budget=Budget(1.0, 1e-6))
    async with serving(counter.house, authority) as world:
        with pytest.raises(DataError, match="row 41"):
            await ask(world, [*NAMES, NAMES[0]])
        with pytest.raises(CannotAnswer):
            await ask(world, [*NAMES, "nobody"])
        with pytest.raises(PolicyRefused):
            await world.client().release_labels(pb.DatasetDescription(dataset="visits"), NAMES, LAPLACE)
        assert counter.charges == 0
        await ask(world)
        with pytest.raises(BudgetExhausted) as caught:
            await ask(world, release="second")
        assert caught.value.requested == pytest.approx(1.0)
        with pytest.raises(CallNotAllowed):
            await ask(world, consumer="organiser")
        with pytest.raises((PeerUnauthenticated, CallNotAllowed)):
            await ask(world, consumer="stranger")
        assert counter.charges == 1


async def test_the_last_unit_over_the_wire(open_counter: OpenCounter, authority: Path) -> None:
    counter = open_counter(budget=Budget(1.5, 1e-6))
    async with serving(counter.house, authority) as world:
        asked = [ask(world, consumer=name, release=name) for name in ("shop", "bank")]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["BudgetExhausted", "ReleasedLabels"]
        same = await asyncio.gather(*(ask(world, release=counter_release(counter)) for _ in range(6)))
        assert len({released.labels.tobytes() for released in same}) == 1
    assert counter.charges == 1


def counter_release(counter: Counter) -> str:
    (stored,) = counter.house.service.store.reader().label_releases()
    return stored.release


@pytest.mark.parametrize("cut_at", [FittedRelease, NoisyLabels])
async def test_a_cut_costs_nothing_twice(
    counter: Counter, authority: Path, monkeypatch: pytest.MonkeyPatch, cut_at: type
) -> None:
    send, cuts = ServerSide.send, [0]

    async def cut_once(self: ServerSide, to: str, message: object) -> None:
        if isinstance(message, cut_at) and not cuts[0]:
            cuts[0] += 1
            world.meanwhile(world.server.restart())
            await asyncio.sleep(60)  # until the server is stopped, and this call with it
        await send(self, to, message)

    monkeypatch.setattr(ServerSide, "send", cut_once)
    async with serving(counter.house, authority) as world:
        released = await ask(world)
        assert cuts == [1]
        assert (await ask(world)).labels.tolist() == released.labels.tolist()
    assert counter.charges == 1


async def test_a_server_that_makes_labels_up(
    counter: Counter, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made_up(_desk: LabelsDesk) -> Any:
        yield np.full(40, 2**40)

    monkeypatch.setattr(LabelsDesk, "labels", made_up)
    async with serving(counter.house, authority) as world:
        with pytest.raises(MalformedMessage) as caught:
            await ask(world, settings=RP)
    assert caught.value.culprit == "labels"


async def test_a_client_of_another_make(counter: Counter, authority: Path) -> None:
    """The client has only the protobuf file: an option that does not fit the mechanism is named."""
    async with serving(counter.house, authority) as world, await world.channel() as channel:
        call = measurement_pb2_grpc.MeasurementStub(channel).ReleaseLabels()
        mechanism = pb.LabelMechanismSettings(name="laplace", hi=10.0, cells=100, epsilon=1.0, rounding=1.0)
        await call.write(pb.ReleaseLabelsRequest(open=pb.LabelsOpen(dataset="prices", mechanism=mechanism)))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "laplace does not use rounding" in (caught.value.details() or "")


@pytest.mark.parametrize("says", ["nothing", "only the opening"])
async def test_a_client_that_falls_silent(
    counter: Counter, authority: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    monkeypatch.setattr("blindfit.parties.measurement.server.STEP_TIMEOUT_S", 0.3)
    async with serving(counter.house, authority) as world, await world.channel() as channel:
        call = measurement_pb2_grpc.MeasurementStub(channel).ReleaseLabels()
        if says != "nothing":
            await call.write(request_to_pb(counter.request()))
            assert (await call.read()).WhichOneof("body") == "opened"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert reason_of_call(caught.value) == "PEER_TIMEOUT"
        assert counter.charges == 0
        assert (await ask(world)).kept.all()


async def test_no_label_in_any_log(
    tmp_path: Path,
    open_counter: OpenCounter,
    authority: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    canary = 7.123456789
    labels = {name: canary if i % 2 else canary + 1e6 for i, name in enumerate(NAMES)}
    with capture_logs() as logs:
        counter = open_counter(datasets={"prices": make_labels(tmp_path, labels)}, budget=Budget(2.5, 1e-6))
        async with serving(counter.house, authority) as world:
            for settings in (LAPLACE, RP):
                released = await ask(world, settings=settings)
            errors = []
            for more in ({"release": "second"}, {"ids": ["canary-id"]}):
                with pytest.raises((BudgetExhausted, CannotAnswer)) as caught:
                    await ask(world, **more)
                errors.append(caught.value)
    heard = repr([logs, caplog.text, capfd.readouterr(), errors, released, counter.releases.__dict__])
    assert "clipped" in heard
    a_label = max(map(repr, released.labels.tolist()), key=len)  # a short one is found anywhere
    for secret in ("7.12345", "1000007.1", "canary-id", a_label):
        assert secret not in heard


async def test_two_hundred_thousand_rows(tmp_path: Path, open_counter: OpenCounter, authority: Path) -> None:
    names = [f"row-{i}" for i in range(200_000)]
    labels = dict(zip(names, (np.arange(200_000) % 11).tolist(), strict=True))
    counter = open_counter(datasets={"prices": make_labels(tmp_path, labels)}, budget=WIDE)
    settings = replace(LAPLACE, epsilon=20.0)
    async with serving(counter.house, authority) as world:
        released = await ask(world, names, settings)
        error = released.labels - list(labels.values())
        # Laplace noise of scale 10/20: the means of 200,000 and their squares, six standard errors each: 6e-9.
        assert abs(error.mean()) < 6 * np.sqrt(0.5 / 200_000)
        assert abs((error**2).mean() - 0.5) < 6 * np.sqrt(1.25 / 200_000)
        some = np.random.default_rng(0).permutation(200_000)[:5000]
        again = await ask(world, [names[i] for i in some], settings)
        assert again.labels.tolist() == released.labels[some].tolist()
