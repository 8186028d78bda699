"""A fit has a limit of time and of memory; reports of its end contain no label, and the charge stays."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ComputeFailed, ConfigError, PolicyRefused
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings, make_mechanism, uniform_prior
from blindfit.parties.measurement import fitting
from blindfit.parties.measurement.fitting import LimitedMaker
from blindfit.parties.measurement.release_labels import NOT_MADE
from blindfit.parties.settings import FitSettings, PartySettings
from blindfit.parties.tables import mistakes
from tests.measurement.house import House
from tests.release_labels.house import GRID, LABELS, LAPLACE, WIDE, Counter, make_labels
from tests.work import tasks

PRIOR = uniform_prior(GRID)
ESTIMATED = MechanismSettings("unbiased", GRID, 1.0)
GIVEN = MechanismSettings("unbiased", GRID, 1.0, prior=PRIOR)
QUICK = MechanismSettings("rp-with-prior", GRID, 1.0, prior=PRIOR)
NO_TIME, NO_MEMORY = FitSettings(time_limit_s=0.001), FitSettings(memory_limit_mib=1)


def counter_with(tmp_path: Path, limits: FitSettings, labels: dict[str, float] = LABELS) -> Counter:
    house = House(tmp_path / "house", {"prices": make_labels(tmp_path, labels)}, WIDE)
    house.service.fit = limits
    return Counter(house)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()


@pytest.fixture
def fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked processes have memory that the tests' own server has freed, and so need no more for a while."""
    monkeypatch.setattr(fitting, "_processes", multiprocessing.get_context("spawn"))


def test_it_makes_what_is_made_here() -> None:
    made = LimitedMaker(FitSettings())(QUICK, 1.0, PRIOR)
    assert json.dumps(made.parameters()) == json.dumps(make_mechanism(QUICK, 1.0, PRIOR).parameters())
    with pytest.raises(ConfigError, match="needs a prior"):
        LimitedMaker(FitSettings())(QUICK, 1.0, None)


@pytest.mark.parametrize(
    ("limits", "said"),
    [(NO_TIME, "it took longer than fit.time_limit_s = 0.001"), (NO_MEMORY, "needed more than fit.memory_limit_mib")],
)
@pytest.mark.usefixtures("fresh_processes")
def test_a_limit_ends_it(limits: FitSettings, said: str) -> None:
    with pytest.raises(ComputeFailed, match=said):
        LimitedMaker(limits)(GIVEN, 1.0, PRIOR)


def test_a_process_that_dies_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_make", tasks.die)
    with pytest.raises(ComputeFailed, match="its process ended with -9"):
        LimitedMaker(FitSettings())(QUICK, 1.0, PRIOR)


def test_a_formula_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_processes", None)
    assert LimitedMaker(NO_TIME)(LAPLACE, 1.0, None).name == "laplace"


# --- at the server ---------------------------------------------------------------------------------------


def refused_by(ask: Callable[[], Any]) -> str:
    with pytest.raises(PolicyRefused) as refused:
        ask()
    return refused.value.reason


@pytest.mark.parametrize("limits", [NO_TIME, NO_MEMORY], ids=["time", "memory"])
@pytest.mark.usefixtures("fresh_processes")
def test_an_estimate_whose_fit_reached_a_limit_stays_charged_and_says_so(tmp_path: Path, limits: FitSettings) -> None:
    counter = counter_with(tmp_path, limits)
    for _ in range(2):
        assert refused_by(lambda: counter.ask(settings=ESTIMATED)) == NOT_MADE
    counter.house.service.fit = FitSettings()
    counter.restart()  # remembered: more room now gives no second draw of the estimate
    assert refused_by(lambda: counter.ask(settings=ESTIMATED)) == NOT_MADE
    assert counter.charges == 1
    assert counter.house.spent() == pytest.approx(1.0)
    counter.ask(settings=LAPLACE)  # the server goes on
    assert counter.charges == 2


def test_a_given_prior_costs_nothing_that_was_not_made(tmp_path: Path) -> None:
    counter = counter_with(tmp_path, NO_TIME)
    assert "fit.time_limit_s" in refused_by(lambda: counter.ask(settings=GIVEN))
    assert counter.charges == 0


def test_no_label_reaches_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process gets only the settings, epsilon and the estimate: the same for the labels of two tables."""
    asked: list[tuple[Any, ...]] = []

    def make(_self: LimitedMaker, *told: Any) -> Any:
        asked.append(told)
        return make_mechanism(*told)

    monkeypatch.setattr(LimitedMaker, "__call__", make)
    settings = MechanismSettings("rr-on-bins", GRID, 1.0, rounding=2.5)
    counter_with(tmp_path, FitSettings(), LABELS).ask(settings=settings)
    ((told, epsilon, prior),) = asked
    assert told == settings
    assert 0 < epsilon < 1
    assert prior is not None
    assert len(np.asarray(prior.masses)) < len(LABELS)


def test_limits_are_for_a_server_of_numeric_labels() -> None:
    values = {"name": "shop", "role": "active", "identity": {}, "peers": {}, "fit": {"time_limit_s": 0}}
    assert any("fit.time_limit_s" in line for line in mistakes(values, PartySettings))


def test_a_long_fit_holds_up_no_other_release(tmp_path: Path) -> None:
    counter = counter_with(tmp_path, FitSettings())
    make, begun, ends = counter.releases._make_mechanism, threading.Event(), threading.Event()

    def slow(settings: MechanismSettings, *rest: Any) -> Any:
        if settings.name == GIVEN.name:
            begun.set()
            assert ends.wait(30)
        return make(settings, *rest)

    counter.releases._make_mechanism = slow
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(counter.ask, settings=GIVEN)
        assert begun.wait(30)
        other = pool.submit(counter.ask, settings=LAPLACE, consumer="bank")
        try:
            assert other.result(30).release.receipt
            assert not waiting.done()
        finally:
            ends.set()
        waiting.result(30)
