"""A training under label DP is charged for what it computes, never for the name that somebody gave it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import BudgetExhausted
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.protocols.taylor.steps import steps_of_kept_noise
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.parameters import keeps_noise_of, label_noise_std
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training import budget
from blindfit.parties.training.budget import Charged, event_of
from tests.world import World


@pytest.fixture
def bank(tmp_path: Path) -> tuple[PartySettings, Store]:
    about, budget = {"label": "label", "population": "people"}, {"people": {"epsilon": 5.0, "delta": 1e-5}}
    world = World(tmp_path).active("bank", dataset="loans", about=about, populations=budget)
    return world.settings("bank"), Store(tmp_path / "party.sqlite")


def session(name: str, epsilon: float, resume: str = "", snapshot: str = "5eed", shops: str = "5407") -> Any:
    job = TaylorJob(privacy=PrivacySettings(epsilon=epsilon), taylor={"resume": resume})
    members = {m: Member(m, role, "", "loans") for m, role in (("bank", "active"), ("shop", "passive"))}
    made = Session(
        name, "coordinator", members, job.to_parameters(), job, None, members["bank"], None,  # type: ignore[arg-type]
        {"bank": snapshot, "shop": shops},
    )  # fmt: skip
    made.snapshot = SimpleNamespace(id=snapshot)  # type: ignore[assignment]
    return made


DRAWN = ("split", "noise")


def charge(*asked: Any, same_noise: bool = True) -> Charged:
    return budget.charge(*asked, lambda _: same_noise)


def charges(store: Store) -> int:
    return len(store.reader().ledger("people"))


def test_a_name_pays_for_nothing(bank):
    settings, store = bank
    assert charge(session("monday", 1.0), settings, store, DRAWN).spent_epsilon == pytest.approx(1.0)
    assert charge(session("monday", 4.0), settings, store, DRAWN).spent_epsilon > 4.0
    assert charges(store) == 2
    with pytest.raises(BudgetExhausted):
        charge(session("monday", 3.0), settings, store, DRAWN)


def test_the_same_question_is_charged_once_by_whatever_name_it_is_asked_or_resumed(bank):
    settings, store = bank
    first = charge(session("monday", 1.0), settings, store, DRAWN)
    assert charge(session("tuesday", 1.0, resume="monday"), settings, store, DRAWN) == first
    assert charge(session("wednesday", 1.0), settings, store, DRAWN) == first
    assert charges(store) == 1


@pytest.mark.parametrize("digits", [-1, 1, 1000])
def test_a_question_is_the_same_if_its_noise_is_computed_with_other_last_digits(bank, monkeypatch, digits):
    """Another version or another machine may compute it like this."""
    settings, store = bank
    charge(session("sunday", 0.5), settings, store, DRAWN)
    first = charge(session("monday", 1.0), settings, store, DRAWN)
    event = event_of(PrivacySettings(epsilon=1.0))
    other = replace(event, noise_multiplier=event.noise_multiplier * (1 + digits * 2**-52))
    assert other != event
    monkeypatch.setattr(budget, "event_of", lambda _: other)
    assert charge(session("monday", 1.0), settings, store, DRAWN) == first
    assert charges(store) == 2
    charge(session("monday", 1.0), settings, store, ("split", "another"))
    assert charges(store) == 3
    again = charge(session("monday", 1.0), settings, store, DRAWN, same_noise=False)
    assert (charges(store), again.noise_multiplier) == (4, other.noise_multiplier)


def test_the_key_node_draws_the_same_noise_while_its_standard_deviation_has_as_many_steps():
    job = TaylorJob(privacy=PrivacySettings(epsilon=0.1))
    small = TaylorParameters(("a", "b"), "k", (3, 3), Grid("logistic", 2))
    parameters = replace(small, kept_noise_std=label_noise_std(job, sum(small.columns)))
    event = event_of(job.required_privacy)
    steps = steps_of_kept_noise(parameters)
    assert keeps_noise_of(event, job, parameters)
    for factor in (1 + 2 / steps, 1 - 2 / steps, 1.5):
        other = replace(event, noise_multiplier=event.noise_multiplier * factor)
        assert not keeps_noise_of(other, job, parameters)


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({"snapshot": "f00d"}, DRAWN),
        ({"shops": "f00d"}, DRAWN),
        ({}, ("another split", "noise")),
        ({}, ("split", "another noise")),
    ],
    ids=["own snapshot", "another's snapshot", "split", "noise"],
)
def test_another_snapshot_or_draw_is_another_question(bank, changes, drawn):
    """Other noise on the same labels averages; the same noise on other labels cancels."""
    settings, store = bank
    charge(session("monday", 1.0), settings, store, DRAWN)
    charge(session("monday", 1.0, resume="monday", **changes), settings, store, drawn)
    assert charges(store) == 2
