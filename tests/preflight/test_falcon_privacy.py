"""`blindfit check` of a training in shares under differential privacy: budgets, noise, and what noise does to it."""

from __future__ import annotations

import re

import pytest

from tests.preflight.conftest import N_ROWS
from tests.preflight.findings import levels, only, said
from tests.world import World
from tests.world.loans import DATA_PARTIES


@pytest.fixture
def private(shares: World) -> World:
    shares.set("falcon", {"validation_fraction": 0.0, "feature_bounds": ["*:-4:4"], "l2": 0.0, "epochs": 4}, "job")
    shares.set("split.test_fraction", 0.0, "job")
    shares.set("privacy.epsilon", 1.0, "job")
    shares.set("datasets.loans.population", "customers", *DATA_PARTIES)
    shares.set("populations.customers", {"epsilon": 2.0, "delta": 1e-5}, *DATA_PARTIES)
    return shares


def test_noise_and_what_it_costs(private: World) -> None:
    private.columns("bank", paid=(private.table("bank")["bank0"] > 0).astype(int))
    findings = private.check("falcon.learning_rate=2")
    assert not levels(findings, "refuses")
    assert "noise of 3 parties together: standard deviation" in said(findings, "noise")
    losses = said(findings, "expected loss")
    assert "loss of the training rows in 3 trials with this noise" in losses
    assert "with only a constant" in losses
    assert "within the same bounds, and nobody learns of it" in said(findings, "range")
    assert "budget of customers: epsilon 0 of 2 is spent" in said(findings, "shop")
    assert not said(findings, "weights")


def test_more_noise_is_told(private: World) -> None:
    warned = "|".join(levels(private.check("privacy.epsilon=0.3"), "warning"))
    assert "expect a weak model; use more rows or a larger privacy.epsilon" in warned
    assert "expected loss" in warned


def test_noise_that_does_not_fit(private: World) -> None:
    assert "noise" in only(private.check("privacy.epsilon=0.0001"), "refuses")


def test_budgets_of_all_data_parties(private: World) -> None:
    private.set("populations.customers.epsilon", 0.5, "post")
    refused = only(private.check(), "refuses")
    assert "post: the budget of customers would be passed" in refused


def test_datasets_are_checked_as_parties_would(private: World) -> None:
    private.set("datasets.loans.missing", "mean", "shop")
    assert 'shop: datasets.loans.missing = "mean": one row would then change others' in only(private.check(), "refuses")


def test_a_large_delta(private: World) -> None:
    private.set("policy.max_delta", 0.1)
    assert "delta" in "|".join(levels(private.check(f"privacy.delta={2 / N_ROWS}"), "warning"))


def test_the_forecast_is_of_the_same_descent(private: World) -> None:
    """Noise changes almost nothing at a large epsilon."""
    private.set("policy.max_epsilon", 50.0)
    private.set("populations.customers.epsilon", 50.0, *DATA_PARTIES)
    losses = said(private.check("privacy.epsilon=50"), "expected loss")
    low, high, without, _ = map(float, re.findall(r"\d\.\d+", losses))
    assert abs(low - without) < 0.01
    assert abs(high - without) < 0.01
