"""The cost of a fit is estimated before a job is accepted: no job makes a party compute for days."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.algorithms.fit_cost import MOST_BYTES, MOST_OPERATIONS, FitCost
from blindfit.algorithms.statistics.dp_lr.cost import descent_cost
from blindfit.algorithms.statistics.label_dp.cost import regression_cost
from blindfit.algorithms.statistics.label_dp.options import REGRESSORS
from blindfit.parties.label_dp.settings import LabelDPSettings
from tests.each_case import each_case
from tests.world import World

DATA = {"rows": 1_000_000, "columns": 100}


@each_case(
    ("regressor", "options"),
    [
        ("mlp", {"hidden_layer_sizes": "9999,9999,9999,9999"}),
        ("mlp", {"hidden_layer_sizes": "9999,9999"}),
        ("mlp", {"hidden_layer_sizes": "2000,2000,2000,2000", "max_iter": 10_000}),
        ("mlp", {"max_iter": 10_000}),
        ("lasso", {"max_iter": 1_000_000}),
        ("elastic-net", {"max_iter": 1_000_000}),
    ],
)
def test_a_fit_that_takes_days_is_refused(regressor: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the fit may take") as refused:
        regression_cost(regressor, options, DATA["rows"], DATA["columns"]).check()
    assert "for one job: lower label_dp.options." in refused.value.message


@each_case("regressor", list(REGRESSORS))
def test_the_default_of_every_regressor_is_accepted(regressor: str) -> None:
    regression_cost(regressor, {}, DATA["rows"], DATA["columns"]).check()


@each_case("regressor", list(REGRESSORS))
def test_every_option_that_raises_the_cost_is_counted(regressor: str) -> None:
    """An option at its largest value costs no less; rows and columns too."""
    usual = regression_cost(regressor, {}, 10_000, 20)
    for name in {"max_iter", "n_estimators", "max_depth"} & REGRESSORS[regressor].keys():
        most = REGRESSORS[regressor][name].high  # type: ignore[union-attr]
        raised = regression_cost(regressor, {name: int(most)}, 10_000, 20)
        assert raised.operations > usual.operations, name
    assert regression_cost(regressor, {}, 20_000, 20).operations > usual.operations
    assert regression_cost(regressor, {}, 10_000, 40).operations > usual.operations


def test_what_no_rows_make_cheap_is_refused_with_the_job_file() -> None:
    with pytest.raises(ValueError, match="GiB of memory"):
        LabelDPSettings(regressor="mlp", options={"hidden_layer_sizes": "9999,9999,9999,9999"})


def test_the_limits_are_reached_and_not_passed() -> None:
    FitCost(MOST_BYTES, MOST_OPERATIONS, "x").check()
    for n_bytes, operations in ((MOST_BYTES + 1, 0), (0, MOST_OPERATIONS * 1.01)):
        with pytest.raises(ConfigError):
            FitCost(n_bytes, operations, "x").check()


def test_noisy_descent_keeps_its_path_and_reads_its_rows() -> None:
    with pytest.raises(ConfigError, match="operations"):
        descent_cost(100_000, 1_000_000, 100).check()
    with pytest.raises(ConfigError, match="GiB"):
        descent_cost(100_000, 100, 10_000).check()
    descent_cost(1000, 1_000_000, 100).check()


def test_a_network_takes_no_more_memory_than_estimated() -> None:
    """The arrays of 64-bit numbers are five times the weights; JSON is longer than a number."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    with pytest.warns(ConvergenceWarning):
        network = MLPRegressor(hidden_layer_sizes=(30, 20), max_iter=1, random_state=0).fit(
            np.ones((50, 4)), np.ones(50)
        )
    weights = sum(w.size + b.size for w, b in zip(network.coefs_, network.intercepts_, strict=True))
    cost = regression_cost("mlp", {"hidden_layer_sizes": "30,20"}, 50, 4)
    assert cost.n_bytes == 96 * weights


# --- jobs -----------------------------------------------------------------------------------------------


def expect_no_charge(world: World, party: str, reason: str, *overrides: str) -> None:
    with pytest.raises(BlindfitError, match=reason):
        world.run(*overrides)
    assert world.ledger(party) == []


def test_a_job_that_takes_days_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    ids = np.arange(2000)
    world = World(tmp_path).active("shop", {"id": ids, "x": ids % 7}, policy={"systems": ["label-dp"]})
    about = {"label_kind": "number", "label_range": [0, 10]}
    world.server("meter", {"id": ids, "label": ids % 10}, about=about, policy={"systems": ["label-dp"]})
    options = {"hidden_layer_sizes": "1000,1000", "max_iter": 10_000}
    label_dp = {"mechanism": "laplace", "regressor": "mlp", "options": options}
    world.job("label-dp", privacy={"epsilon": 1.0}, label_dp=label_dp)
    expect_no_charge(world, "meter", "the fit may take")
    assert "the fit may take" in world.blindfit("check", "job.toml").stdout


def test_a_descent_that_takes_days_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    ids = np.arange(1000)
    columns = {f"x{n}": ids % (n + 2) for n in range(60)}
    about = {"label": "ill", "population": "patients"}
    budget = {"patients": {"epsilon": 4.0, "delta": 1e-5}}
    rows = {"id": ids, "ill": ids % 2, **columns}
    policy = {"systems": ["dp-lr"]}
    world = World(tmp_path).active("clinic", rows, about=about, populations=budget, policy=policy)
    descent = {"iterations": 200, "neighbours": "add-or-remove", "public_rows": 10**9, "feature_bounds": ["*:0:70"]}
    world.job("dp-lr", privacy={"epsilon": 1.0}, dp_lr=descent)
    expect_no_charge(world, "clinic", "the fit may take")
