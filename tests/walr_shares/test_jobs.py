"""Whole jobs of a shop, a key node and two servers with shares of labels and rows: sums, charges, refusals."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.algorithms.fixed_point import quantise_rows
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, Tally, dealt_masks, shared_rows
from blindfit.algorithms.protocols.walr.shared_rows import SharedRows
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.short_rows import Plan
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.walr.statement import privacy_statement
from blindfit.parties.measurement.servers import Servers
from blindfit.parties.measurement.ways.shared_rows import AtActiveParty, Meeting
from tests.done_once import done_once
from tests.reports import write_report
from tests.walr_split.overhearing import overheard
from tests.walr_split.released import released, without_noise
from tests.world.split_labels import SERVERS, Split

JOB = "shares.toml"


@pytest.fixture
def house(tmp_path: Path) -> Split:
    return Split(tmp_path)


job_done, trained = done_once(Split, JOB)


@pytest.mark.parametrize("persons", [False, True])
def test_the_sum_is_the_trusted_servers(tmp_path: Path, persons: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    house = Split(tmp_path, persons=persons)
    without_noise(monkeypatch)
    sums = released(monkeypatch)
    house.run(job=JOB)
    house.run(job="trusted.toml")
    shared, trusted = sums
    assert shared.sums.tolist() == trusted.sums.tolist()
    assert shared.rows_kept == trusted.rows_kept
    assert (shared.rows_kept < 90) == persons
    assert shared.noise_std == pytest.approx(np.sqrt(2) * trusted.noise_std)
    assert house.charges() == [1, 1]


def test_a_job_again_gets_the_remembered_answers_for_nothing(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """New masks are dealt, but nobody uses them."""
    sums = released(monkeypatch)
    house.run(job=JOB)
    house.run(job=JOB)
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    assert house.charges() == [1, 1]


def test_the_same_rows_released_in_another_way_are_another_request(trained: tuple[Split, JobSession]) -> None:
    house, _ = trained
    house.run()
    assert house.charges() == [2, 2]


def database_of(house: Split, name: str, query: str, *values: Any) -> list[Any]:
    """Return what a server's database answers, and keep what changed."""
    with contextlib.closing(sqlite3.connect(house.root / "state" / name / "party.sqlite")) as database:
        found = database.execute(query, values).fetchall()
        database.commit()
    return found


@pytest.mark.parametrize("forgetful", SERVERS)
def test_where_one_server_has_lost_its_answer_both_refuse(trained: tuple[Split, JobSession], forgetful: str) -> None:
    """Shares of one sum come from one dealing: the other server's answer fits no new share."""
    house, _ = trained
    assert len(database_of(house, forgetful, "DELETE FROM answers RETURNING session")) == 1
    with pytest.raises(BlindfitError, match="does not remember"):
        house.run(job=JOB)
    assert house.charges() == [1, 1]
    house.run("privacy.release=second", job=JOB)
    assert house.charges() == [2, 2]


def test_where_the_servers_remember_answers_of_two_sessions_both_refuse(
    trained: tuple[Split, JobSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both answer the question, but one from the masks of an earlier session: their sum would be a random number."""
    house, _ = trained
    answers = "SELECT session, answer FROM answers"
    kept = {name: database_of(house, name, answers) for name in SERVERS}
    for name in SERVERS:
        database_of(house, name, "DELETE FROM answers")
    sums = released(monkeypatch)
    house.run(job=JOB)
    house.run(job=JOB)
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    ((session, answer),) = kept["east"]
    database_of(house, "east", "UPDATE answers SET session = ?, answer = ?", session, answer)
    with pytest.raises(BlindfitError, match="does not remember"):
        house.run(job=JOB)
    assert len(sums) == 2


@pytest.mark.parametrize(("job", "trust"), [(JOB, "shared-rows"), ("hidden.toml", "encrypted-rows")])
def test_an_evaluation_hides_its_scores_in_the_same_way(
    house: Split, job: str, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise, its figures are those of a server that reads the scores."""
    house.write_party("whole", unsafe=["unchecked-rows"])
    without_noise(monkeypatch)
    session = house.run(job=job)
    house.write_evaluation(job, trust, session.id)
    shared = house.run(job="evaluate.toml")
    house.write_evaluation("trusted.toml", "trusted", session.id)
    trusted = house.run(job="evaluate.toml")
    figures = [
        json.loads((house.root / "state/shop/evaluations" / made.id / "report.json").read_text())["figures"]
        for made in (shared, trusted)
    ]
    assert {name: figure["value"] for name, figure in figures[0].items()} == pytest.approx(
        {name: figure["value"] for name, figure in figures[1].items()}, abs=1e-3
    )


# --- an active party that lies -----------------------------------------------------------------------------------


def longer(rows: ConsumerRows) -> ConsumerRows:
    """Return rows as long as the integers of the wire allow."""
    weights = rows.weights.astype(np.int32)
    weights[0, 0] = 2**30
    return replace(rows, weights=weights)


TOLD_OTHERWISE = [("dealer",), ("east",), ("west",), SERVERS, ("dealer", *SERVERS)]


@pytest.mark.parametrize("told", TOLD_OTHERWISE, ids="+".join)
@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, n_rows=plan.n_rows - 1),
        lambda plan: replace(plan, n_columns=plan.n_columns + 1),
        lambda plan: replace(plan, norm_bound=plan.norm_bound * 2),
    ],
    ids=["rows", "columns", "norm bound"],
)
def test_a_shop_that_tells_anybody_of_other_rows_than_it_asks_for_gets_no_answer(
    house: Split, monkeypatch: pytest.MonkeyPatch, told: Sequence[str], change: Callable[[Plan], Plan]
) -> None:
    """If any party believed a larger norm bound, longer rows would pass.

    If the key node and a server received different plans, that server cannot know which of the two lies."""
    asked = dealt_masks.ask_for_masks

    async def ask(plan: Plan, others: Sequence[str], channel: Channel) -> None:
        for other in others:
            await asked(change(plan) if other in told else plan, (other,), channel)

    monkeypatch.setattr(dealt_masks, "ask_for_masks", ask)
    everyone = set(told) == {"dealer", *SERVERS}
    wanted = "masks were dealt for other rows" if everyone else r"shop sent other numbers here .* which of the two lies"
    with pytest.raises(BlindfitError, match=wanted):
        house.run(job=JOB)
    assert house.charges() == [0, 0]


def test_rows_longer_than_the_bound_are_refused_and_nothing_is_charged(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shop claims that they are short enough, and proves what it can."""
    filled = short_rows.fill_rows

    def believed(rows: Any, plan: Any) -> np.ndarray:
        honest = filled(np.where(np.abs(rows) > 2**29, 0, rows), plan)
        honest[:, : rows.shape[1]] = rows
        return honest

    def projected(signs: Any, numbers: np.ndarray, plan: Any) -> np.ndarray:
        values = (signs @ numbers.reshape(-1).astype(np.float64)).astype(np.int64)
        return np.clip(values, -(1 << plan.bits), (1 << plan.bits) - 1)

    begin = AtActiveParty.begin

    async def begun(self: AtActiveParty, rows: ConsumerRows, request: AggregateOpen) -> None:
        await begin(self, longer(rows), request)

    monkeypatch.setattr(short_rows, "fill_rows", believed)
    monkeypatch.setattr(short_rows, "project", projected)
    monkeypatch.setattr(AtActiveParty, "begin", begun)
    with pytest.raises(BlindfitError, match="longer than the norm bound"):
        house.run(job=JOB)
    assert house.charges() == [0, 0]


def test_a_consumer_cannot_send_rows_in_the_clear_in_a_job_of_shares(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor can it send rows in shares in a two-servers job: both servers expect otherwise."""
    monkeypatch.setattr(AtActiveParty, "open_request", lambda _self, request: request)
    with pytest.raises(BlindfitError, match="in_shares"):
        house.run(job=JOB)
    assert house.charges() == [0, 0]


@pytest.mark.parametrize("job", ["job.toml", "trusted.toml"])
def test_rows_in_shares_in_another_job_are_refused(house: Split, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Servers.requests

    def changed(self: Servers, *args: Any) -> list[AggregateOpen]:
        return [shared_rows.step_1_open(request) for request in made(self, *args)]

    monkeypatch.setattr(Servers, "requests", changed)
    with pytest.raises(BlindfitError, match="in_shares"):
        house.run(job=job)
    assert house.charges() == [0, 0]


def test_masks_serve_once(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active party whose call was cut once all rows had come calls again in the same session, with the same rows."""
    add_up, times = Meeting.add_up, [0]

    async def cut(self: Meeting, tally: Tally) -> None:
        await add_up(self, tally)
        times[0] += 1
        await add_up(self, tally)

    monkeypatch.setattr(Meeting, "add_up", cut)
    with pytest.raises(BlindfitError, match="its masks were used"):
        house.run(job=JOB)
    assert times[0] >= 1
    assert house.charges() == [0, 0]


# --- what is seen, and said ---------------------------------------------------------------------------------------


def test_no_server_gets_a_feature_or_the_salt(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = overheard(monkeypatch)
    asked: list[ConsumerRows] = []
    hidden = AtActiveParty.hide

    def remembered(self: AtActiveParty, rows: ConsumerRows, request: AggregateOpen) -> SharedRows:
        asked.append(rows)
        assert request.content_salt == b""
        return hidden(self, rows, request)

    monkeypatch.setattr(AtActiveParty, "hide", remembered)
    house.run(job=JOB)
    got = b"".join(seen)
    assert len(got) > 90 * 8 * 9 * 2
    kept = b"".join(
        path.read_bytes() for name in SERVERS for path in (house.root / "state" / name).rglob("*") if path.is_file()
    )
    for row in asked[0].weights[:20]:
        assert row.astype("<i4").tobytes() not in got + kept
        assert row.astype("<i8").tobytes() not in got + kept


def test_the_report_says_who_must_not_collude(trained: tuple[Split, JobSession]) -> None:
    house, session = trained
    made = write_report(session, house.root / "report", [])
    sections = {section.topic: " ".join(section.sentences) for section in privacy_statement(made.content)}
    assert "Against only shop: epsilon 0.684" in sections["trust"]
    assert "proves to both servers" in sections["mechanism"]
    assert "uniform numbers" in sections["learnt-measurement"]
    assert "nor either of them with the key node" in sections["collusion"]
    assert json.loads(json.dumps(house.report(session)["privacy"]))["trust"] == "shared-rows"


@pytest.mark.parametrize(
    ("parties", "wanted"),
    [(("shop", *SERVERS), "one key node"), (("shop", "whole", "dealer"), "exactly two")],
)
def test_a_job_of_shares_needs_a_dealer_and_two_servers(house: Split, parties: tuple[str, ...], wanted: str) -> None:
    house.write_job("wrong.toml", "shared-rows", parties)
    with pytest.raises(ConfigError, match=wanted):
        house.run(job="wrong.toml")
    house.write_job("wrong.toml", "two-servers", ("shop", *SERVERS, "dealer"))
    with pytest.raises(ConfigError, match="no key node"):
        house.run(job="wrong.toml")


def test_rows_that_cannot_be_proved_short_are_refused_before_anything_is_sent(house: Split) -> None:
    with pytest.raises(BlindfitError, match=r"fraction bits|operator knows"):
        house.run("walr.frac_bits=24", "walr.norm_bound=2.0", job=JOB)
    assert house.charges() == [0, 0]


def test_quantised_rows_never_pass_the_bound() -> None:
    """Otherwise an honest active party could not fill them up."""
    real = np.random.default_rng(1).normal(size=(2000, 7)) * 10
    rows = quantise_rows(real, 3 * 2**16, 16)
    plan = short_rows.Plan(2000, 7, 3 * 2**16)
    assert ((short_rows.fill_rows(rows, plan) ** 2).sum(axis=1) == plan.norm_bound**2).all()
