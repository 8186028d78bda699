"""The client of a measurement server refuses wrong arguments of its caller, and wrong answers of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import blindfit
from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.identity.identity import current
from blindfit.parties.identity.key_proof import RECEIPTS, prove
from blindfit.parties.measurement.calls import MeasurementCalls, check_budget, check_description
from blindfit.protos import measurement_pb2 as pb
from tests.certificates import demo_authority, make_identity
from tests.measurement.house import NAMES, House, make_dataset
from tests.measurement.serving import World, serving

IDS = list(NAMES)
FEATURES = np.random.default_rng(5).normal(size=(len(IDS), 2))
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 2.0}
DATES = pd.date_range("2026-01-01", periods=len(IDS))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("distrust"))


def prove_keys(house: House, authority: Path) -> None:
    identity = make_identity(authority, "labels")
    house.service.prove_key = lambda key: prove(current(identity), RECEIPTS, key)


@pytest.fixture
async def world(open_house: Callable[..., House], authority: Path) -> AsyncIterator[World]:
    house = open_house(budget=Budget(50.0, 1e-6))
    prove_keys(house, authority)
    async with serving(house, authority) as served:
        yield served


def client_of(world: World, authority: Path) -> blindfit.MeasurementClient:
    return blindfit.MeasurementClient(make_identity(authority, "shop"), "labels", world.address)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (set(IDS), "ids are a set"),
        (dict.fromkeys(IDS), "ids are a dict"),
        ("abcdefghijkl", "ids are a str"),
        (None, "ids are a NoneType"),
        (list(range(12)), "the id of row 1 is a int, not a text"),
        ([*IDS[:-1], None], "the id of row 12 is a NoneType, not a text"),
        (pd.Series([*IDS[:-1], np.nan]), "the id of row 12 is a float, not a text"),
        ([*IDS[:-1], "\ud800"], "the id of row 12 is not valid Unicode"),
        ([*IDS[:-1], "  "], "the id of row 12 is empty"),
        ([*IDS[:-1], f" {IDS[0]} "], "row 12 of the request has an id that the request has used before"),
        ([], "no rows"),
    ],
)
async def test_ids_that_name_no_rows_are_refused_before_a_request(
    world: World, authority: Path, ids: Any, words: str
) -> None:
    features = FEATURES[: len(ids)] if isinstance(ids, list) else FEATURES
    client = client_of(world, authority)
    settings = MechanismSettings("laplace", LabelGrid(0, 1), 1.0)
    for call in (client.aggregate("visits", ids, features, **ASKED), client.release_labels("visits", ids, settings)):
        with pytest.raises(blindfit.DataError, match=words):
            await call
    assert world.server.answered == []


@pytest.mark.parametrize("ids", [tuple(IDS), np.array(IDS), pd.Series(IDS, index=range(5, 17)), iter(IDS)])
async def test_ids_in_an_order(world: World, authority: Path, ids: Sequence[str]) -> None:
    released = await client_of(world, authority).aggregate("visits", ids, FEATURES, **ASKED)
    assert released.kept.all()


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (pd.DataFrame({"day": DATES}), "features are not numbers: datetime64"),
        (pd.DataFrame({"day": DATES, "x": 1.0}), "features are not numbers"),
        (pd.DataFrame({"time": DATES - DATES[0]}), "features are not numbers: timedelta64"),
        (FEATURES + 1j, "features are not numbers: complex128"),
        ([["1.5", "2"]] * 12, "features are not numbers: <U3"),
        (pd.DataFrame({"x": ["1.5"] * 12}), "features are not numbers: str"),
        (np.ma.masked_greater(FEATURES, 0.5), "features have masked values"),
        ([[10**400]] * 12, "features are not numbers"),
        (pd.DataFrame({"x": [None, 1.0] * 6}, dtype=object).replace({None: pd.NA}), "features are not numbers"),
    ],
)
async def test_features_that_are_not_numbers_are_refused(
    world: World, authority: Path, features: Any, words: str
) -> None:
    with pytest.raises(blindfit.DataError, match=words):
        await client_of(world, authority).aggregate("visits", IDS, features, **ASKED)
    assert world.server.answered == []


@pytest.mark.parametrize(
    "features",
    [
        FEATURES > 0,
        FEATURES.astype(np.float32),
        (FEATURES * 9).astype(np.int8),
        FEATURES.astype(object),
        FEATURES * 1e200,
        pd.DataFrame(FEATURES),
        pd.DataFrame({"x": pd.array([1, 2] * 6, dtype="Int64")}),
        np.ma.array(FEATURES),
    ],
)
async def test_numbers_of_any_type(world: World, authority: Path, features: Any) -> None:
    released = await client_of(world, authority).aggregate("visits", IDS, features, **ASKED)
    assert np.linalg.norm(released.rows, axis=1).max() <= 2.0


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"epsilon": 51.0}, blindfit.RangeError, "epsilon is not between"),
        ({"delta": 0.6}, blindfit.RangeError, "delta is not between"),
        ({"frac_bits": 25}, blindfit.RangeError, "frac_bits = 25"),
        ({"frac_bits": 12.0}, TypeError, "integer"),
        ({"max_rows_per_person": -1}, blindfit.RangeError, "max_rows_per_person is out of range"),
        ({"max_rows_per_person": 2**17}, blindfit.RangeError, "max_rows_per_person is out of range"),
        ({"max_rows_per_person": 2}, blindfit.PolicyRefused, "the unit is a row"),
        ({"content_salt": b"short"}, blindfit.RangeError, "content_salt is not 32 bytes"),
        ({"norm_bound": 1e300}, blindfit.RangeError, "norm_bound"),
    ],
)
async def test_arguments_out_of_range(
    world: World, authority: Path, changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await client_of(world, authority).aggregate("visits", IDS, FEATURES, **ASKED | changes)
    assert world.server.answered == []


@pytest.mark.parametrize("columns", [0, 4097])
async def test_columns_out_of_range(world: World, authority: Path, columns: int) -> None:
    with pytest.raises(blindfit.RangeError, match="n_columns is out of range"):
        await client_of(world, authority).aggregate("visits", IDS, np.zeros((12, columns)), **ASKED)


async def test_the_receipt_of_an_answer_proves_most(world: World, authority: Path) -> None:
    """The answer to an old request comes with its old receipt; the caller keeps the one that it passed."""
    client = client_of(world, authority)
    first = await client.aggregate("visits", IDS, FEATURES, **ASKED)
    second = await client.aggregate("visits", IDS, FEATURES, **ASKED, release="b", receipt=first.receipt)
    again = await client.aggregate("visits", IDS, FEATURES, **ASKED, receipt=second.receipt)
    assert again.sums.tolist() == first.sums.tolist()
    assert second.receipt == again.receipt != first.receipt


@pytest.fixture
def numbers(open_house: Callable[..., House], authority: Path, tmp_path: Path) -> House:
    labels = dict.fromkeys(NAMES, 1)
    dataset = make_dataset(tmp_path, labels, name="prices", label_kind="number", label_range=[0.0, 8.0])
    house = open_house(datasets={"prices": dataset}, budget=Budget(50.0, 1e-6))
    prove_keys(house, authority)
    return house


async def test_an_answer_whose_receipt_is_not_signed_is_refused(
    world: World, numbers: House, authority: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = SigningKey.load_or_create(tmp_path / "other.pem")
    aggregate, release_labels = MeasurementCalls.aggregate, MeasurementCalls.release_labels

    async def forged_sum(*args: Any, **settings: Any) -> Any:
        found = await aggregate(*args, **settings)
        return replace(found, answer=replace(found.answer, receipt_signature=other.sign(found.answer.receipt)))

    async def forged_labels(*args: Any, **settings: Any) -> Any:
        found = await release_labels(*args, **settings)
        return replace(found, receipt=(found.receipt[0], bytes(64)))

    monkeypatch.setattr(MeasurementCalls, "aggregate", forged_sum)
    monkeypatch.setattr(MeasurementCalls, "release_labels", forged_labels)
    with pytest.raises(MalformedMessage, match="receipt: is not signed"):
        await client_of(world, authority).aggregate("visits", IDS, FEATURES, **ASKED)
    async with serving(numbers, authority) as served:
        with pytest.raises(MalformedMessage, match="receipt: is not signed"):
            await client_of(served, authority).release_labels(
                "prices", IDS, MechanismSettings("laplace", LabelGrid(0, 8), 1.0)
            )


GOOD: dict[str, Any] = {
    "unit": "person",
    "max_rows_per_person": 1,
    "max_epsilon": 1.0,
    "label_kind": "number",
    "label_lo": 0.0,
    "label_hi": 8.0,
    "receipt_key": bytes(32),
}


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "row"},
        {"max_rows_per_person": 0},
        {"max_rows_per_person": 2**16 + 1},
        {"max_epsilon": float("nan")},
        {"max_epsilon": float("inf")},
        {"max_epsilon": 0.0},
        {"label_kind": "text"},
        {"label_lo": float("nan")},
        {"label_hi": float("inf")},
        {"label_hi": -1.0},
    ],
)
def test_a_description_out_of_range(changes: dict[str, Any]) -> None:
    check_description(pb.DatasetDescription(**GOOD), server="labels")
    with pytest.raises(MalformedMessage, match="labels sent a malformed message"):
        check_description(pb.DatasetDescription(**GOOD | changes), server="labels")


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": 0.0}, {"epsilon": float("inf")}, {"delta": 1.0}, {"spent_epsilon": -1.0}]
    + [{name: float("nan")} for name in ("epsilon", "delta", "spent_epsilon")],
)
def test_a_budget_out_of_range(changes: dict[str, Any]) -> None:
    good = {"epsilon": 8.0, "delta": 1e-5, "spent_epsilon": 0.0, "releases": 0}
    check_budget(pb.BudgetDescription(**good), server="labels")
    with pytest.raises(MalformedMessage, match="labels sent a malformed message"):
        check_budget(pb.BudgetDescription(**good | changes), server="labels")
