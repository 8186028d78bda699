"""benchmarks.walr.utility: rivals that learn where nothing is hidden, data, choices and figures that are kept."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.label_dp import criteo as label_dp_criteo
from benchmarks.walr.utility import data as walr_utility_data
from benchmarks.walr.utility import runs as walr_utility_runs
from benchmarks.walr.utility.bags import Proportions
from benchmarks.walr.utility.bins import BinnedWalr
from benchmarks.walr.utility.buckets import Pairs, Singles
from benchmarks.walr.utility.data import PARTS, DataSet, indicators
from benchmarks.walr.utility.descent import Descent
from benchmarks.walr.utility.means import Objective, RandomisedResponse
from benchmarks.walr.utility.plot import draw as draw_plot
from benchmarks.walr.utility.runs import ARMS, Effort, Results, choose, loss, measure, spread, without_privacy
from benchmarks.walr.utility.tables import BEGIN, END, put_into
from benchmarks.walr.utility.task import Arm, Option, Predict, Task
from blindfit.algorithms.errors import ConfigError, DataError, RangeError

NO_NOISE = math.inf
HARDLY_ANY = 20.0  # the most that WALR's grid takes: its noise has 2^16 steps


@pytest.fixture(scope="module")
def easy() -> Task:
    """20,000 rows, three numbers, a logistic model of them."""
    draw = np.random.default_rng(1)
    features = draw.normal(size=(20_000, 3))
    scores = features @ [1.0, -1.5, 0.5] - 0.5
    return Task.of(DataSet.of_numbers("easy", features, (draw.random(20_000) < 1 / (1 + np.exp(-scores))) * 1.0))


# --- every arm learns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm.title.startswith("WALR") and arm.title != BinnedWalr.title])
def test_walr_comes_to_the_reference(easy: Task, arm: Arm) -> None:
    reference = without_privacy(easy)
    assert reference < 0.75
    assert loss(easy, "test", arm.fit(easy, HARDLY_ANY, {}, 0)) == pytest.approx(reference, abs=0.003)


@pytest.mark.parametrize(
    ("arm", "option", "within"),
    [
        (Singles(), {"bins": 16, "model": "linear", "l2": 0.1}, 0.01),
        (Singles(), {"bins": 16, "model": "additive", "l2": 0.1}, 0.02),
        (Pairs(), {"bins": 8, "model": "linear", "l2": 0.1}, 0.03),
        (Pairs(), {"bins": 8, "model": "products", "l2": 0.1}, 0.03),
        (Pairs(), {"bins": 8, "model": "cells", "l2": 0.1}, 0.03),
        (Proportions(), {"bags": "many", "by": "k-means", "ridge": 0.3}, 0.01),
        (RandomisedResponse(), {"l2": 1.0}, 0.003),
        (Objective(), {"noise": "gamma", "l2": 1.0}, 0.003),
        (Objective(), {"noise": "gaussian", "l2": 1.0}, 0.003),
        (Descent(), {"batch_fraction": 1.0, "n_iterations": 200, "clip": 1.0, "rate": 1.0}, 0.003),
        (Descent(), {"batch_fraction": 0.05, "n_iterations": 200, "clip": 1.0, "rate": 1.0}, 0.01),
    ],
    ids=lambda value: getattr(value, "title", None) or "-".join(map(str, getattr(value, "values", list)())),
)
def test_a_rival_comes_to_the_reference_without_noise(easy: Task, arm: Arm, option: Option, within: float) -> None:
    found = loss(easy, "test", arm.fit(easy, NO_NOISE, option, 0))
    assert found == pytest.approx(without_privacy(easy), abs=within)


def test_bins_learn_what_no_line_can() -> None:
    draw = np.random.default_rng(2)
    features = draw.normal(size=(20_000, 2))
    labels = (draw.random(20_000) < np.where(np.abs(features[:, 0]) > 1, 0.8, 0.2)) * 1.0
    bent = Task.of(DataSet.of_numbers("bent", features, labels))
    assert without_privacy(bent) > 0.99
    for fitted in (
        BinnedWalr().fit(bent, 8.0, {}, 0),
        Singles().fit(bent, 8.0, {"bins": 8, "model": "additive", "l2": 0.1}, 0),
    ):
        assert loss(bent, "test", fitted) < 0.85


def test_pairs_learn_what_no_sum_of_features_can() -> None:
    draw = np.random.default_rng(3)
    features = draw.normal(size=(20_000, 2))
    labels = (draw.random(20_000) < np.where(features.prod(axis=1) > 0, 0.8, 0.2)) * 1.0
    crossed = Task.of(DataSet.of_numbers("crossed", features, labels))
    assert without_privacy(crossed) > 0.99
    for model in ("products", "cells"):
        fitted = Pairs().fit(crossed, 8.0, {"bins": 4, "model": model, "l2": 0.1}, 0)
        assert loss(crossed, "test", fitted) < 0.9


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.title)
def test_a_seed_repeats_a_draw_and_another_is_another(easy: Task, arm: Arm) -> None:
    option = arm.options(easy)[0]
    first, again, other = (arm.fit(easy, 1.0, option, seed)("test") for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


# --- data ------------------------------------------------------------------------------------------------


def test_parts_share_no_row_and_leave_none_out() -> None:
    data = DataSet.of_numbers("numbered", np.arange(1000.0)[:, None], np.zeros(1000))
    parts = data.parts()
    assert [len(parts[part]) for part in PARTS] == [600, 100, 300]
    assert sorted(np.concatenate(list(parts.values()))) == list(range(1000))


def test_only_training_rows_say_how_columns_are_scaled_and_cut() -> None:
    draw = np.random.default_rng(4)
    features = draw.normal(size=(500, 2))
    data = DataSet.of_numbers("scaled", features, (features[:, 0] > 0) * 1.0)
    parts = data.parts()
    other = features.copy()
    other[parts["test"]] *= 100
    first, second = Task.of(data), Task.of(DataSet.of_numbers("scaled", other, data.labels))
    np.testing.assert_array_equal(first.integers, second.integers)
    assert first.bound == second.bound
    assert np.linalg.norm(second.rows["test"], axis=1).max() <= second.norm_bound * (1 + 1e-12)


def test_a_category_has_a_column_for_each_level_but_the_most_frequent() -> None:
    values = ["a"] * 5 + ["b"] * 3 + ["c"] * 2 + ["d"]
    np.testing.assert_array_equal(indicators(values).sum(axis=0), [3, 2, 1])
    np.testing.assert_array_equal(indicators(values, most=3).sum(axis=0), [3, 3])


def test_flights_that_arrived_are_read_from_the_package_s_file(tmp_path: Path) -> None:
    names = "year,month,day,dep_time,arr_delay,carrier,origin,distance,hour"
    lines = [names, "2013,1,1,517,16,UA,EWR,1400,5", "2013,1,1,533,15,AA,JFK,200,5", "2013,1,5,1,NA,AA,JFK,200,6"]
    lines += ["2013,2,3,1,-4,AA,EWR,300,7"]
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join(lines) + "\n")
    data = walr_utility_data.flights_of(tmp_path / "flights.csv.zip")
    assert data.labels.tolist() == [1, 0, 0]
    assert [len(group) for group in data.groups] == [1, 1, 1, 1, 1, 1]
    assert data.features[:, 1].tolist() == [5, 5, 7]
    np.testing.assert_allclose(data.features[:, 3], np.log([1400, 200, 300]))
    assert data.features[:, 2].tolist() == [0, 0, 1]  # two on a Tuesday, one on a Sunday


def test_without_the_package_there_are_no_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walr_utility_data.importlib.util, "find_spec", lambda _: None)
    assert walr_utility_data.flights() is None


def test_criteo_s_sales_are_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / walr_utility_data.CRITEO_FILE
    assert walr_utility_data.criteo(tmp_path) is None
    label_dp_criteo.generate(path, 2000, seed=1)
    data = walr_utility_data.criteo(tmp_path, max_rows=1500)
    assert data is not None
    sold = [line.split("\t")[0] == "1" for line in path.read_text().splitlines()]
    np.testing.assert_array_equal(data.labels, sold[:1500])
    assert np.isfinite(data.features).all()
    assert max(len(group) for group in data.groups) == walr_utility_data.MOST_LEVELS - 1
    path.write_text("1\t2\t3\n")
    with pytest.raises(DataError, match="format"):
        walr_utility_data.criteo(tmp_path)


# --- choices, figures ------------------------------------------------------------------------------------


class Recorded(Arm):
    """Predicts the base rate, better with option 2, and records the requests."""

    title = "recorded"
    grid = ({"option": 1}, {"option": 2}, {"option": 3})

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        if option["option"] == 3:
            raise RangeError("no model")

        def predict(part: str) -> Any:
            self.asked.append((part, option["option"], seed))
            return np.full(len(task.labels[part]), 0.1 * option["option"])

        return predict


def test_options_are_chosen_without_a_test_row_and_by_other_seeds(easy: Task) -> None:
    arm = Recorded()
    assert choose(easy, arm, 1.0, 2) == {"option": 2}
    assert {part for part, _, _ in arm.asked} == {"validation"}
    assert {seed for _, _, seed in arm.asked} == {walr_utility_runs.TUNING_SEED, walr_utility_runs.TUNING_SEED + 1}


def test_figures_are_kept_and_not_measured_again(easy: Task, tmp_path: Path) -> None:
    path, effort, first = tmp_path / "figures.json", Effort(3, 1, (0.5, 1.0, 8.0), (1.0,)), Recorded()
    measure(easy, [first], effort, Results.of(path, {}), lambda _: None)
    assert [seed for part, _, seed in first.asked if part == "test"] == [0, 1, 2] * 3
    kept = json.loads(path.read_text())["data"]["easy"]
    assert [row["epsilon"] for row in kept["arms"]["recorded"]] == [0.5, 1.0, 8.0]
    second = Recorded()
    measure(easy, [second], effort, Results.of(path, {}), lambda _: None)
    assert not second.asked
    third = Recorded()
    measure(easy, [third], Effort(2, 1, (0.5,), (1.0,)), Results.of(path, {}), lambda _: None)
    assert third.asked


def test_a_release_without_a_model_counts_as_an_infinite_loss() -> None:
    found = spread([0.9, 0.8, math.inf])
    assert (found["low"], found["median"], found["high"]) == (0.8, 0.9, None)
    assert found["of_each_draw"] == [0.9, 0.8, None]


def test_tables_and_picture_take_figures_that_are_missing(easy: Task, tmp_path: Path) -> None:
    results = Results.of(None, {})
    figures = measure(easy, [Recorded()], Effort(2, 1, (1.0, 2.0), (1.0,)), results, lambda _: None)
    lost = [{"epsilon": 1.0, "median": 1.5, "low": 0.9, "high": None}, {"epsilon": 2.0, "median": None}]
    figures["arms"]["WALR"] = [{"low": None, "high": None} | row for row in lost]
    page = put_into(f"before\n{BEGIN}\nold\n{END}\nafter", results.figures["data"])
    assert page.startswith("before")
    assert page.endswith("after")
    assert "old" not in page
    assert "| WALR | 1.5000 | none |" in page
    with pytest.raises(ConfigError, match="no place"):
        put_into("a page", results.figures["data"])
    draw_plot(results.figures["data"], tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000
