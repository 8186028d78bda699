"""A job that is wrong in public is refused for that, for any rows: no party looks at its rows before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, PolicyRefused
from blindfit.coordinator.job.job import load_job
from blindfit.parties.data.source import Source
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.snapshots import scored
from blindfit.parties.systems import load_party, system
from blindfit.parties.taylor import engine
from tests.each_case import each_case
from tests.published import published
from tests.unconnected import unconnected
from tests.world.vertical import ROLES, bank_and_shops

FILES = {"taylor": "job.toml", "falcon": "falcon.toml", "predict": "predict.toml"}
SYSTEMS = 'policy.systems=["taylor", "falcon", "predict"]'


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[dict[str, Party]]:
    """The shops give no scores."""
    world = bank_and_shops(tmp_path, rows=120)
    world.job("falcon", file="falcon.toml", seed=5, align={"min_common": 50}, falcon={"epochs": 2})
    opened = {}
    for name in ("bank", "shop-a"):
        if name != "bank":
            world.set("datasets.rows.models_per_row", 0, name)
        opened[name] = unconnected(load_party(tmp_path / f"{name}.toml", [SYSTEMS]), tmp_path)
        published(opened[name].snapshots, "rows")
    yield opened
    for party in opened.values():
        party.store.close()
        party.close()


@pytest.fixture
def rows_seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Questions about rows, by the name of the method."""
    seen: list[str] = []
    for owner, name in ((scored, "content_of"), (Source, "batches")):
        found = getattr(owner, name)

        def note(*given: Any, name: str = name, found: Any = found, **options: Any) -> Any:
            seen.append(name)
            return found(*given, **options)

        monkeypatch.setattr(owner, name, note)
    return seen


def propose(party: Party, protocol: str, *overrides: str) -> None:
    name = party.settings.name
    job = load_job(party.base_dir / FILES[protocol], overrides).parameters
    system(protocol).roles[ROLES[name]].open(party).check(job, Member(name, ROLES[name], "", "rows"))


@each_case(
    ("name", "protocol", "override", "refusal"),
    [
        ("shop-a", "taylor", "taylor.resume=gone", "there is no checkpoint of gone"),
        ("shop-a", "taylor", "paillier.engine=phe", "python-paillier is not here"),
        ("shop-a", "falcon", "falcon.resume=gone", "there is no checkpoint of gone"),
        ("shop-a", "predict", "predict.session=gone", "it has no model of that session"),
        ("bank", "taylor", "taylor.resume=gone", "there is no checkpoint of gone"),
        ("bank", "taylor", "taylor.model=linear", "label_kind does not go with taylor.model"),
        ("bank", "falcon", "falcon.model=linear", "label_kind does not go with falcon.model"),
        ("bank", "falcon", "falcon.resume=gone", "there is no checkpoint of gone"),
        ("bank", "predict", "predict.session=gone", "it has no model of that session"),
    ],
)
def test_a_public_reason_comes_before_any_look_at_rows(
    parties: dict[str, Party],
    rows_seen: list[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    protocol: str,
    override: str,
    refusal: str,
) -> None:
    def engine_of(_: str) -> None:
        raise ConfigError("python-paillier is not here", hint="install it")

    if "engine" in override:
        monkeypatch.setattr(engine, "engine_of", engine_of)
    with pytest.raises(BlindfitError, match=refusal):
        propose(parties[name], protocol, override)
    assert rows_seen == []


def test_scores_that_a_party_does_not_give_are_refused_without_a_look_at_rows(
    parties: dict[str, Party], rows_seen: list[str]
) -> None:
    with pytest.raises(PolicyRefused, match="no scores of rows are given"):
        propose(parties["shop-a"], "taylor")
    propose(parties["shop-a"], "taylor", "split.test_fraction=0")
    assert rows_seen == []


def test_a_second_session_of_a_training_is_refused_before_any_look_at_rows(
    parties: dict[str, Party], rows_seen: list[str]
) -> None:
    party = parties["shop-a"]
    seat: Any = system("taylor").roles["passive"].open(party)
    job = load_job(party.base_dir / "job.toml", ["taylor.resume=s1"]).parameters
    with seat._running.alone("s1"), pytest.raises(PolicyRefused, match="another session of the training s1"):
        seat.check(job, Member("shop-a", "passive", "", "rows"))
    assert rows_seen == []
