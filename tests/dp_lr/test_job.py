"""The job file of dp-lr: every option reaches the fit, or is refused in one line."""

from __future__ import annotations

import re
from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job, read_job
from blindfit.parties.dp_lr.settings import DPLRSettings
from blindfit.parties.systems import read_proposed
from tests.dp_lr.conftest import job
from tests.each_case import each_case


def checked(**changes: Any) -> Job:
    return read_job(job(**changes), "job.toml")


@each_case(
    ("dp_lr", "expected"),
    [
        ({"clip_norm": 0.0}, "dp_lr.clip_norm: must be at least 1e-09"),
        ({"clip_norm": 2.7e-304}, "dp_lr.clip_norm: must be at least 1e-09"),
        ({"clip_norm": float("inf")}, "dp_lr.clip_norm: must be a finite number, not inf"),
        ({"clip_norm": float("nan")}, "dp_lr.clip_norm: must be"),
        ({"iterations": 0}, "dp_lr.iterations: must be at least 1"),
        ({"iterations": 100_001}, "dp_lr.iterations: must be at most 100000"),
        ({"learning_rate": 0.0}, 'dp_lr: learning_rate must be "auto" or a number from 1e-20 to 1e+20'),
        ({"learning_rate": 1e300}, 'dp_lr: learning_rate must be "auto" or a number from 1e-20 to 1e+20'),
        ({"learning_rate": float("nan")}, "dp_lr.learning_rate: must be a finite number or 'auto', not nan"),
        ({"batch_fraction": 1.5}, "dp_lr.batch_fraction: must be at most 1"),
        ({"batch_fraction": 1e-12}, "batch_fraction must be at least 2^-32"),
        ({"neighbours": "both"}, "dp_lr.neighbours: must be 'replace-one' or 'add-or-remove'"),
        ({"budget": "epoch"}, "dp_lr.budget: must be 'run' or 'iteration'"),
        ({"shrinkage": -1.0}, "dp_lr.shrinkage: must be at least 0"),
        ({"shrinkage": 1e300}, "dp_lr.shrinkage: must be at most"),
        ({"shrinkage": float("nan")}, "dp_lr.shrinkage: must be"),
        ({"neighbours": "add-or-remove", "public_rows": 10**10}, "dp_lr.public_rows: must be at most 2147483648"),
        ({"loss_share": 1.0}, "dp_lr.loss_share: must be below 1"),
        ({"init": "a.json", "public_dataset": "archive"}, "init and public_dataset both name the start of descent"),
        (
            {"loss_share": 0.1, "public_dataset": "archive"},
            "loss_share pays for a loss that the rows of public_dataset give",
        ),
        ({"feature_bounds": ["age"]}, "feature_bounds: 'age' is not of the form name:lowest:highest"),
        ({"feature_bounds": ["age:1:x"]}, "feature_bounds: 'age:1:x' is not of the form name:lowest:highest"),
        ({"feature_bounds": ["age:5:5"]}, "'age:5:5' must have finite bounds, the lowest below the highest"),
        ({"feature_bounds": ["age:0:inf"]}, "'age:0:inf' must have finite bounds"),
        (
            {"feature_bounds": ["age:0:1e-110"]},
            "'age:0:1e-110' must lie within -1e+100 and 1e+100, at least 1e-100 apart",
        ),
        ({"feature_bounds": ["age:-1e300:1"]}, "'age:-1e300:1' must lie within -1e+100 and 1e+100"),
        ({"feature_bounds": ["age:0:1e300"]}, "'age:0:1e300' must lie within -1e+100 and 1e+100"),
        ({"feature_bounds": ["*:0:1", "*:0:2"]}, "feature_bounds: a feature is named twice"),
        ({"clip": 1.0}, "dp_lr.clip is not an option; did you mean clip_norm?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(dp_lr: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)) as refused:
        checked(dp_lr=dp_lr)
    assert "\n" not in str(refused.value)


@each_case(
    ("changes", "expected"),
    [
        ({"privacy": None}, "privacy.epsilon is missing: a dp-lr job is a release"),
        ({"privacy": {"epsilon": 0.5, "mechanism": "classic"}}, "privacy.mechanism does nothing in a dp-lr job"),
        ({"privacy": {"epsilon": 0.5, "max_rows_per_person": 2}}, "privacy.max_rows_per_person does nothing"),
        ({"split": {"test_fraction": 0.0}}, "seed does nothing with split.test_fraction = 0"),
        ({"walr": {"l2": 1.0}}, "[walr] does nothing in a dp-lr job, remove it"),
        ({"align": {"min_common": 5}}, "[align] does nothing in a dp-lr job, remove it"),
        ({"protocol": "taylor"}, "does nothing in a taylor job, remove it"),
        ({"parties": {}}, "parties: dp-lr needs exactly one active"),
        (
            {"parties": {n: {"role": "active", "dataset": "d"} for n in ("a", "b")}},
            "parties: dp-lr needs exactly one active",
        ),
        ({"parties": {"a": {"role": "passive", "dataset": "d"}}}, "parties: dp-lr needs exactly one active"),
    ],
)
def test_the_rest_of_the_job_goes_with_it(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        checked(**changes)


def test_a_job_survives_the_wire() -> None:
    bounds = {
        "feature_bounds": ["a:b:-1:2.5", "*:0:1"],
        "init": "x.json",
        "neighbours": "add-or-remove",
        "public_rows": 600,
    }
    sent = checked(dp_lr=bounds).parameters
    received = read_proposed(sent.to_parameters())
    assert received == sent
    assert received.dp_lr.bounds() == {"a:b": (-1.0, 2.5), "*": (0.0, 1.0)}


def test_bounds_go_with_the_features() -> None:
    settings = DPLRSettings(feature_bounds=("age:0:110", "*:-1:1"))
    assert settings.bounds_of(("dose", "age")) == [(-1.0, 1.0), (0.0, 110.0)]
    with pytest.raises(ConfigError, match="the dataset has no feature age"):
        settings.bounds_of(("dose",))
    with pytest.raises(ConfigError, match=re.escape("dose has no bounds")):
        DPLRSettings(feature_bounds=("age:0:110",)).bounds_of(("dose", "age"))
    assert DPLRSettings().bounds_of(("dose",)) is None


def test_what_a_policy_compares_is_what_the_run_spends() -> None:
    assert checked(privacy={"epsilon": 0.5}).parameters.epsilon == 0.5
    each = checked(privacy={"epsilon": 0.5}, dp_lr={"budget": "iteration", "iterations": 9}).parameters
    one_of_a_third = checked(privacy={"epsilon": each.epsilon}, dp_lr={"iterations": 1}).parameters.run_privacy
    assert each.epsilon > 1.5
    assert one_of_a_third.noise_multiplier() == pytest.approx(each.run_privacy.noise_multiplier() / 3)
