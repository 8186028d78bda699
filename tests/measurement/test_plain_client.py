"""A notebook asks a measurement server with what `blindfit` exports: arrays in, arrays out."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest

import blindfit
from blindfit.algorithms.fixed_point import quantise_rows
from blindfit.algorithms.privacy.gaussian import noise_multiplier
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr.grid import auto_grid
from tests.certificates import demo_authority, make_identity
from tests.hints.following import refused
from tests.ports import held_address
from tests.world import World
from tests.world.measured import N_ROWS, project

__all__ = ["project"]

T = TypeVar("T")
IDS = [f"u{i}" for i in range(N_ROWS)]
FEATURES = np.random.default_rng(3).normal(size=(len(IDS), 2))
ASKED = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 2.0}


def wait_for(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


@pytest.fixture
def client(project: World) -> blindfit.MeasurementClient:
    address = held_address()
    listen = next(line for line in project.path("meter.toml").read_text().splitlines() if line.startswith("listen"))
    project.edit("meter.toml", listen, f'listen = "{address}"')
    project.start("meter")
    ca = project.path("ca")
    files = [ca / "shop" / name for name in ("certificate.pem", "key.pem", "authority.pem")]
    return blindfit.MeasurementClient(blindfit.load_identity(*files, ca / "crl.pem"), "meter", address)


def labels_of(project: World) -> np.ndarray:
    """Return the labels in the order of IDS."""
    return pd.read_csv(project.path("labels.csv"), index_col="id")["label"].loc[IDS].to_numpy(float)


def test_a_sum_is_that_of_the_clipped_rows(client: blindfit.MeasurementClient, project: World) -> None:
    description = wait_for(client.describe("labels"))
    assert (description.label_kind, description.label_range, len(description.receipt_key)) == ("binary", None, 32)
    sent: list[int] = []
    aggregate = wait_for(client.aggregate("labels", IDS, FEATURES, **ASKED, on_rows=sent.append))
    assert sent[0] == -1
    assert sum(sent[1:]) == len(IDS)
    lengths = np.linalg.norm(FEATURES, axis=1)
    clipped = FEATURES * np.minimum(1, aggregate.norm_bound / lengths)[:, None]
    assert np.abs(aggregate.rows - clipped).max() < 2**-9
    assert aggregate.rows_clipped == int((lengths > aggregate.norm_bound).sum())
    assert np.linalg.norm(aggregate.rows, axis=1).max() <= aggregate.norm_bound <= 2.0
    exact = labels_of(project)[aggregate.kept] @ aggregate.rows[aggregate.kept]
    assert np.abs(aggregate.sums - exact).max() < 6 * aggregate.noise_std  # chance of more: 4e-9
    assert aggregate.noise_std > 2.0
    budget = wait_for(client.budget("labels"))
    assert (budget.releases, budget.population) == (1, description.population)
    assert 0.5 < budget.spent_epsilon < 1.0  # at the budget's delta, which is ten times that of the release


def test_the_same_question_is_charged_once_from_a_data_frame_too(client: blindfit.MeasurementClient) -> None:
    first = wait_for(client.aggregate("labels", IDS, FEATURES, **ASKED))
    frame = pd.DataFrame(FEATURES, columns=["a", "b"])
    again = wait_for(client.aggregate("labels", IDS, frame, **ASKED, receipt=first.receipt))
    assert again.sums.tolist() == first.sums.tolist()
    assert again.request_id == first.request_id
    assert wait_for(client.budget("labels")).releases == 1
    assert repr(again) == f"<noisy sum of 2 columns over {int(first.kept.sum())} rows, epsilon 1>"


@pytest.mark.parametrize(
    ("ids", "features", "changes", "error", "words"),
    [
        (IDS[1:], FEATURES, {}, blindfit.DataError, "ids and .* rows of features"),
        (IDS, FEATURES[:, 0], {}, blindfit.DataError, "1 dimensions, not 2"),
        (IDS, np.where(np.arange(len(IDS))[:, None] == 3, np.nan, FEATURES), {}, blindfit.RangeError, "not finite"),
        (IDS, [["a", "b"]] * len(IDS), {}, blindfit.DataError, "features are not numbers"),
        (IDS, FEATURES, {"norm_bound": 0.0}, blindfit.RangeError, "finite and above 0"),
        (IDS, FEATURES, {"norm_bound": float("nan")}, blindfit.RangeError, "finite and above 0"),
        (IDS, FEATURES, {"epsilon": 0.0}, blindfit.BlindfitError, "epsilon"),
        (IDS, FEATURES, {"epsilon": 49.0}, blindfit.BlindfitError, "epsilon"),
        (["nobody", *IDS[1:]], FEATURES, {}, blindfit.BlindfitError, "cannot answer|does not know"),
        ([IDS[1], *IDS[1:]], FEATURES, {}, blindfit.BlindfitError, "twice|stands|again|duplicate"),
    ],
)
def test_a_wrong_request_is_refused_and_costs_nothing(
    client: blindfit.MeasurementClient, ids: Any, features: Any, changes: dict[str, float], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        wait_for(client.aggregate("labels", ids, features, **ASKED | changes))
    assert wait_for(client.budget("labels")).releases == 0


def test_a_dataset_that_is_not_there(client: blindfit.MeasurementClient) -> None:
    with pytest.raises(blindfit.PolicyRefused, match="no dataset of this name"):
        wait_for(client.aggregate("nothing", IDS, FEATURES, **ASKED))
    with pytest.raises(blindfit.PolicyRefused, match="no dataset of this name"):
        wait_for(client.describe("nothing"))


def test_no_file_of_an_identity(tmp_path: Path) -> None:
    with pytest.raises(blindfit.ConfigError, match=r"certificate\.pem"):
        blindfit.load_identity(tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "authority.pem")


def test_the_hints_about_ids_are_followed(client: blindfit.MeasurementClient) -> None:
    with refused("pass at least as many rows as the server's min_rows"):
        wait_for(client.aggregate("labels", [], FEATURES[:0], **ASKED))
    with refused("read the ids again as UTF-8"):
        wait_for(client.aggregate("labels", ["\ud800", *IDS[1:]], FEATURES, **ASKED))
    assert wait_for(client.aggregate("labels", IDS, FEATURES, **ASKED)).kept.all()


def test_a_number_that_is_not_finite_sends_no_message(tmp_path: Path) -> None:
    """A server must not learn from a request that ends early that one person's row has such a number."""
    identity = make_identity(demo_authority(tmp_path), "shop")
    nowhere = blindfit.MeasurementClient(identity, "meter", held_address(), reconnect_s=0.0)
    features = np.where(np.arange(len(IDS))[:, None] == 6, np.inf, FEATURES)
    with pytest.raises(blindfit.RangeError, match="row 7 of features has a number that is not finite"):
        wait_for(nowhere.aggregate("labels", IDS, features, **ASKED))


# --- what the name of a request reveals of one person's features


CANDIDATES = (-1.5, -0.5, 0.25, 0.5, 1.5)


def guess_a_value(found: blindfit.NoisyAggregate, snapshot: str) -> list[float]:
    """Try out one value of the first row, as a reader of the ledger who knows all others; the name is in the ledger."""
    grid = auto_grid(ASKED["norm_bound"], noise_multiplier("analytic", ASKED["epsilon"], ASKED["delta"]), 1)
    asked = walr.ReleaseSettings("labels", snapshot, ASKED["epsilon"], ASKED["delta"], frac_bits=grid.frac_bits)
    fits = []
    for value in CANDIDATES:
        features = FEATURES.copy()
        features[0, 0] = value
        rows = walr.ConsumerRows(tuple(IDS), quantise_rows(features, grid.norm_bound, grid.frac_bits))
        if walr.step_1_open(rows, grid.norm_bound, asked).request_id == found.request_id:
            fits.append(value)
    return fits


@pytest.mark.parametrize(("salt", "found"), [(b"", [0.25]), (bytes(range(32)), [])])
def test_a_salt_keeps_values_from_being_tried_out(
    client: blindfit.MeasurementClient, project: World, salt: bytes, found: list[float]
) -> None:
    features = FEATURES.copy()
    features[0, 0] = 0.25
    answer = wait_for(client.aggregate("labels", IDS, features, **ASKED, content_salt=salt))
    assert project.ledger("meter")[-1].request_id == answer.request_id
    assert guess_a_value(answer, wait_for(client.describe("labels")).snapshot) == found


# --- two tables that differ in one person's label


def views_before_a_charge(client: blindfit.MeasurementClient) -> list[object]:
    """Return everything that the active party reads of a table before it pays for a release."""
    described, budget = wait_for(client.describe("labels")), wait_for(client.budget("labels"))
    views: list[object] = [replace(described, snapshot="", receipt_key=b""), budget]
    for ids, features in ((["nobody", *IDS[1:]], FEATURES), (IDS[:10], FEATURES[:10])):
        with pytest.raises(blindfit.BlindfitError) as refused:
            wait_for(client.aggregate("labels", ids, features, **ASKED))
        views.append((type(refused.value), str(refused.value)))
    return [*views, wait_for(client.budget("labels"))]


def test_a_label_changes_nothing_before_the_charge(client: blindfit.MeasurementClient, project: World) -> None:
    first = views_before_a_charge(client)
    project.stop()
    labels = project.path("labels.csv").read_text().splitlines()
    name, label = labels[1].split(",")
    project.path("labels.csv").write_text("\n".join([labels[0], f"{name},{1 - int(label)}", *labels[2:]]) + "\n")
    shutil.rmtree(project.path("state", "meter"))
    project.start("meter")
    assert views_before_a_charge(client) == first
    spent = wait_for(client.aggregate("labels", IDS, FEATURES, **ASKED))
    assert spent.kept.all()  # with the charge, the noisy sums may differ
