"""Findings of the pre-flight about a training by python-paillier."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.coordinator.jobs.check import Finding
from blindfit.coordinator.taylor import cost as taylor_cost
from blindfit.coordinator.taylor.cost import measure_reference
from tests.preflight.costs import REFERENCE, SPEED, cost_of
from tests.preflight.findings import levels, said
from tests.taylor.seats import case_of
from tests.world import World


def test_the_reference_engine_is_timed_by_itself(insecure_test_key: PrivateKey) -> None:
    """The engine's sums of products take a power for each element, and its randomisers r^n, some 1,700 products."""
    measured = measure_reference(2048)
    assert 0 < 50 * measured.product_s < measured.randomiser_s
    cost = cost_of(case_of(insecure_test_key, n_passive=2))
    slow = replace(cost, one_by_one=True)
    assert slow._dot(1000, 20, 15) > 8 * cost._dot(1000, 20, 15)
    assert slow.epoch_seconds(REFERENCE, 2) > 5 * cost.epoch_seconds(SPEED, 2)
    assert slow.epoch_bytes() == cost.epoch_bytes()
    longest = cost.longest_step_seconds(SPEED)
    assert replace(cost, held_out=10_000).longest_step_seconds(SPEED) >= 10_000 * SPEED.randomiser_s > longest


def test_its_slowness_is_told_and_in_the_forecast(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taylor_cost, "measure_reference", lambda _bits: REFERENCE)
    own, reference = project.check(), project.check('paillier.engine="phe"')
    assert not said(own, "paillier.engine")
    times = re.search(r"slow reference: about (\d+) times", said(reference, "paillier.engine"))
    assert times is not None
    assert seconds(reference) / seconds(own) == pytest.approx(int(times[1]), rel=0.1)
    assert int(times[1]) > 5


def seconds(findings: list[Finding]) -> float:
    forecast = re.match(r"about ([\d,.e+]+) s to train", said(findings, "time"))
    assert forecast is not None
    return float(forecast[1].replace(",", ""))


def test_a_step_that_takes_longer_than_peers_wait_is_told(project: World) -> None:
    assert not said(project.check(), "timeouts.step_s")
    assert "its peers wait 0.01 s" in said(project.check("timeouts.step_s=0.01"), "timeouts.step_s")


def test_without_phe_the_job_is_refused(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    assert not levels(project.check(), "refuses")
    refused = levels(project.check('paillier.engine="phe"'), "refuses")
    assert [text.partition(":")[0] for text in refused] == ["bank", "post", "shop", "notary"]
    assert all("pip install 'phe>=1.5'" in text for text in refused)
