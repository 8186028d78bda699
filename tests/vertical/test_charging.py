"""What a training under label DP is charged: by what it is, never by the name that somebody gave it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import BudgetExhausted
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.store import Store
from blindfit.parties.systems import load_party
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import charge

PARTY = """
name = "bank"
role = "active"
identity = { certificate = "c", key = "k", authority = "a" }
peers = { coordinator = { role = "coordinator" } }
populations = { people = { epsilon = 5.0, delta = 1e-5 } }
[datasets.loans]
url = "csv:loans.csv"
id = "id"
label = "label"
features = "rest"
population = "people"
"""


@pytest.fixture
def bank(tmp_path: Path) -> tuple[PartySettings, Store]:
    (tmp_path / "bank.toml").write_text(PARTY)
    return load_party(tmp_path / "bank.toml"), Store(tmp_path / "party.sqlite")


def session(name: str, epsilon: float, resume: str = "") -> Any:
    job = TaylorJob(privacy=PrivacySettings(epsilon=epsilon), taylor={"resume": resume})
    me = SimpleNamespace(dataset="loans")
    return SimpleNamespace(id=name, job=job, me=me, proposed_by="coordinator", parameters=job.to_parameters())


def test_a_known_name_pays_for_nothing(bank):
    settings, store = bank
    assert charge(session("monday", 1.0), settings, store, "v").spent_epsilon == pytest.approx(1.0)
    again = charge(session("monday", 4.0), settings, store, "v")
    assert again.spent_epsilon > 4.0
    assert len(store.reader().ledger("people")) == 2
    with pytest.raises(BudgetExhausted):
        charge(session("monday", 4.0), settings, store, "v")


def test_a_training_that_goes_on_is_charged_once(bank):
    settings, store = bank
    first = charge(session("monday", 1.0), settings, store, "v")
    assert charge(session("tuesday", 1.0, resume="monday"), settings, store, "v") == first
    assert len(store.reader().ledger("people")) == 1


def test_to_resume_what_was_never_charged_is_charged(bank):
    settings, store = bank
    charge(session("tuesday", 1.0, resume="monday"), settings, store, "v")
    assert [entry.request_id for entry in store.reader().ledger("people")] == ["monday"]
