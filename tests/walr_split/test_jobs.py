"""Whole jobs of a shop and two servers with shares: the sum, the charges, and attempts to get more."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError, MalformedMessage
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, NoisySum, two_servers
from blindfit.algorithms.sharing import field
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.walr.statement import privacy_statement
from blindfit.coordinator.walr.view import KIND
from blindfit.parties.measurement.servers import Servers
from blindfit.parties.measurement.service import MeasurementService
from tests.command import blindfit
from tests.done_once import done_once
from tests.reports import write_report
from tests.walr_split.overhearing import listen
from tests.walr_split.released import released, without_noise
from tests.world.split_labels import SERVERS, Split

job_done, trained = done_once(Split)


# --- the sum ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persons", [False, True])
def test_both_servers_together_give_the_trusted_servers_integers(
    tmp_path: Path, persons: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = Split(tmp_path, persons=persons)
    without_noise(monkeypatch)
    sums = released(monkeypatch)
    house.run()
    house.run(job="trusted.toml")
    split, trusted = sums
    assert split.sums.tolist() == trusted.sums.tolist()
    assert split.rows_kept == trusted.rows_kept
    assert (split.rows_kept < 90) == persons
    assert split.noise_std == pytest.approx(math.sqrt(2) * trusted.noise_std)
    assert house.charges() == [1, 1]


def test_what_is_promised_is_what_is_charged(trained: tuple[Split, JobSession]) -> None:
    house, session = trained
    own = house.report(session)
    privacy = own["privacy"]
    multiplier = gaussian.analytic_noise_multiplier(1.0, 1e-5)
    assert privacy["epsilon"] == 1.0
    assert privacy["epsilon_of_both"] == pytest.approx(gaussian.gaussian_epsilon(multiplier * math.sqrt(2), 1e-5))
    assert 0.6 < privacy["epsilon_of_both"] < 0.7
    assert [server["server"] for server in own["servers"]] == list(SERVERS)
    assert all(server["spent_epsilon"] == pytest.approx(1.0, abs=1e-6) for server in own["servers"])
    one = own["servers"][0]["noise_std_of_sum"]
    assert privacy["noise_std_of_sum"] == pytest.approx(math.sqrt(2) * one)


def test_the_report_says_against_whom_and_names_both_servers(trained: tuple[Split, JobSession]) -> None:
    house, session = trained
    made = write_report(session, house.root / "report", [])
    sections = {section.topic: " ".join(section.sentences) for section in privacy_statement(made.content)}
    assert "Against shop together with one of east and west: epsilon 1." in sections["trust"]
    assert "Against only shop: epsilon 0.684" in sections["trust"]
    assert "twice the variance of one trusted server" in sections["mechanism"]
    assert "must not collude with each other" in sections["collusion"]
    assert "one share of every label" in sections["learnt-measurement"]
    assert KIND.members_in(house.report(session)) == dict.fromkeys(SERVERS, "measurement")
    assert "east and west" in (house.root / "report" / "report.html").read_text()


# --- charges ------------------------------------------------------------------------------------------------


def test_a_job_again_gets_the_remembered_answers_for_nothing(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = released(monkeypatch)
    house.run()
    house.run()
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    assert house.charges() == [1, 1]


def test_noise_does_not_survive_a_new_split(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, noises = listen(house, monkeypatch), []
    for _ in range(2):
        house.run()
        exact = {name: house.exact(house.shares(name)) for name in SERVERS}
        noises.append(
            {n: field.integers(field.subtract(answers[n].sums.astype(np.uint64), exact[n])).tolist() for n in SERVERS}
        )
        house.split()
        house.publish_shares()
    reach = gaussian.NOISE_REACH * answers["east"].noise_std
    assert all(max(map(abs, noise)) < reach for each in noises for noise in each.values())
    assert all(noises[0][name] != noises[1][name] for name in SERVERS)
    assert noises[0]["east"] != noises[0]["west"]
    assert house.charges() == [2, 2]


def test_a_snapshot_published_again_is_charged_again(trained: tuple[Split, JobSession]) -> None:
    """The servers draw fresh noise on the same shares, as the owner chose to."""
    house, _ = trained
    house.publish_shares()
    house.run()
    assert house.charges() == [2, 2]


# --- both or neither ------------------------------------------------------------------------------------------


def refused(house: Split, wanted: str, *overrides: str) -> BlindfitError:
    before = house.charges()
    with pytest.raises(BlindfitError, match=wanted) as refusal:
        house.run(*overrides)
    assert house.charges() == before
    return refusal.value


def refused_by_a_deadline(house: Split, wanted: str) -> None:
    """Check the refusal under the shortest deadline that leaves a busy machine enough time for the steps before."""
    for seconds in (1, 4, 16):
        error = refused(house, f"waited {seconds} s for", f"timeouts.step_s={seconds}")
        if re.search(wanted, str(error)):
            return
    raise error


def test_servers_with_different_splits_both_refuse(trained: tuple[Split, JobSession]) -> None:
    house, _ = trained
    house.split()
    house.publish("west")
    refused(house, "different splits")


def test_tables_of_different_ids_are_refused(house: Split) -> None:
    house.publish("east")
    table = pq.read_table(house.root / "west.parquet")
    pq.write_table(table.slice(0, len(table) - 1), house.root / "west.parquet")
    refused(house, "do not list the same ids")


def test_a_partial_split_is_refused_by_row(house: Split) -> None:
    old = pq.read_table(house.root / "west.parquet")
    house.split()
    new = pq.read_table(house.root / "west.parquet")
    mixed = pa.concat_tables([new.slice(0, 50), old.slice(50)])
    pq.write_table(mixed, house.root / "west.parquet")
    with pytest.raises(DataError, match=r"row 51.*another split than the first row"):
        house.publish("west")


def one_more(rows: ConsumerRows) -> ConsumerRows:
    weights = rows.weights.copy()
    weights[0, 0] += 1
    return replace(rows, weights=weights)


def another_id(rows: ConsumerRows) -> ConsumerRows:
    """Put a held-out row of the shop in the place of the first row."""
    other = next(f"row {i}" for i in range(120) if f"row {i}" not in rows.ids)
    return replace(rows, ids=(other, *rows.ids[1:]))


@pytest.mark.parametrize("change", [one_more, another_id])
@pytest.mark.parametrize("server", SERVERS)
def test_a_consumer_that_sends_the_servers_different_rows_is_refused(
    house: Split, server: str, change: Callable[[ConsumerRows], ConsumerRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = listen(house, monkeypatch, {server: change})
    house.publish_shares()
    refused(house, "asked for different things")
    assert not answers


@pytest.mark.parametrize("poor", SERVERS)
def test_a_budget_spent_at_one_server_costs_the_other_nothing(house: Split, poor: str) -> None:
    house.write_party(poor, budget=0.5)
    house.publish_shares()
    refused(house, "budget")


def test_a_server_asked_alone_does_not_answer(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active party calls only one of them within the job: that server waits for the other, and charges nothing."""
    ask = Servers._ask

    async def asked(self: Servers, server: Any, request: Any, rows: Any) -> Any:
        if server.member.name == "west":
            await asyncio.sleep(60)
        return await ask(self, server, request, rows)

    monkeypatch.setattr(Servers, "_ask", asked)
    house.publish_shares()
    refused_by_a_deadline(house, "for east, which waits for west at step Agreement")


def test_a_server_whose_rows_come_waits_for_the_other_whose_rows_do_not(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = walr.roles.receive_rows

    async def received(request: Any, consumer: str, channel: Any, desk: Any) -> Any:
        if desk.service.name == "west":
            await asyncio.sleep(60)
        return await receive(request, consumer, channel, desk)

    monkeypatch.setattr(walr.roles, "receive_rows", received)
    house.publish_shares()
    refused_by_a_deadline(house, "for (east, which waits for west at step Counted|west at step NoisySum)")


def test_shares_are_released_within_a_job_of_two_servers_alone(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Servers._ask

    async def asked(self: Servers, server: Any, request: Any, rows: Any) -> Any:
        return await ask(self, server, replace(request, session="of another name"), rows)

    monkeypatch.setattr(Servers, "_ask", asked)
    house.publish_shares()
    refused(house, "only a job of two measurement servers")


def test_a_second_question_in_one_job_is_refused(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Servers._ask

    async def asked(self: Servers, server: Any, request: Any, rows: Any) -> Any:
        await ask(self, server, request, rows)
        changed = replace(request, request_id="another", epsilon=0.5)
        return await ask(self, server, changed, rows)

    monkeypatch.setattr(Servers, "_ask", asked)
    with pytest.raises(BlindfitError, match="asked for something else before"):
        house.run()
    assert max(house.charges()) == 1


def test_persons_that_differ_between_the_servers_are_refused(tmp_path: Path) -> None:
    """Other rows would count: neither server answers or charges."""
    house = Split(tmp_path, persons=True)
    table = pq.read_table(tmp_path / "west.parquet")
    persons = pa.array(["one person"] * len(table))
    pq.write_table(table.set_column(table.column_names.index("person"), "person", persons), tmp_path / "west.parquet")
    house.set("policy.min_rows", 1, *SERVERS)
    house.publish_shares()
    refused(house, "cannot answer this request")


def test_too_few_rows_that_count_at_one_server_cost_the_other_nothing(tmp_path: Path) -> None:
    house = Split(tmp_path, persons=True)
    house.set("policy.min_rows", 80, "west")
    house.publish_shares()
    refused(house, "cannot answer this request")


# --- servers that fail, or lie ----------------------------------------------------------------------------------


def test_a_server_lost_between_charge_and_answer_is_charged_once(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own ledger has the charge; both memories answer the repeated job, with the charged noise."""
    release, lost = MeasurementService.release, []

    def losing(self: MeasurementService, *args: Any) -> NoisySum:
        made = release(self, *args)
        if self.name == "west" and not lost:
            lost.append(made)
            raise SystemError("the process is gone")
        return made

    monkeypatch.setattr(MeasurementService, "release", losing)
    with pytest.raises(BlindfitError):
        house.run()
    assert house.charges()[1] == 1
    answers = listen(house, monkeypatch)
    house.run()
    assert house.charges() == [1, 1]
    assert answers["west"].sums.tolist() == lost[0].sums.tolist()


def test_a_server_lost_before_its_charge_is_charged_by_the_next_job(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server had answered, and its charge stays."""
    release, lost = MeasurementService.release, []

    def losing(self: MeasurementService, *args: Any) -> NoisySum:
        if self.name == "west" and not lost:
            lost.append(self)
            raise SystemError("the process is gone")
        return release(self, *args)

    monkeypatch.setattr(MeasurementService, "release", losing)
    with pytest.raises(BlindfitError):
        house.run()
    assert house.charges()[1] == 0
    house.run()
    assert house.charges() == [1, 1]


@pytest.mark.parametrize("wrong", ["too large", "negative", "of another split"])
def test_an_answer_that_no_honest_server_gives_ends_the_job(
    house: Split, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server signs its answer, so the lie itself must be noticed."""
    release, draft, here = MeasurementService.release, walr.step_5_draft, threading.local()

    def lying(self: MeasurementService, *args: Any) -> NoisySum:
        here.server = self.name
        return release(self, *args)

    def drawn(*args: Any, **more: Any) -> walr.Draft:
        made = draft(*args, **more)
        if here.server != "west":
            return made
        sums = {
            "too large": made.released.sums + field.P,
            "negative": made.released.sums - field.P,
            "of another split": (made.released.sums + field.P // 3) % field.P,
        }[wrong]
        return replace(made, released=walr.Released(sums))

    monkeypatch.setattr(MeasurementService, "release", lying)
    monkeypatch.setattr(walr, "step_5_draft", drawn)
    errors: list[BaseException] = []
    original = Servers.release

    async def noted(self: Servers, *args: Any) -> Any:
        try:
            return await original(self, *args)
        except BlindfitError as error:
            errors.append(error)
            raise

    monkeypatch.setattr(Servers, "release", noted)
    with pytest.raises(BlindfitError):
        house.run()
    (error,) = errors
    if wrong == "of another split":
        assert "add up to a sum that no labels can have" in str(error)
    else:
        assert isinstance(error, MalformedMessage)
        assert error.culprit == "west"


# --- what does not go together -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "parties", "wanted"),
    [
        ("trusted", ("shop", "east", "west"), "exactly one measurement server"),
        ("two-servers", ("shop", "whole"), "exactly two"),
    ],
)
def test_a_job_names_as_many_servers_as_it_trusts(
    house: Split, trust: str, parties: tuple[str, ...], wanted: str
) -> None:
    house.write_job("job.toml", trust, parties)
    with pytest.raises(ConfigError, match=wanted):
        load_job(house.root / "job.toml")


@pytest.mark.parametrize(
    ("trust", "parties", "wanted"),
    [
        ("trusted", ("shop", "east"), "holds shares of labels"),
        ("two-servers", ("shop", "east", "whole"), "holds labels, and no shares"),
    ],
)
def test_shares_and_labels_are_not_taken_for_each_other(
    house: Split, trust: str, parties: tuple[str, ...], wanted: str
) -> None:
    house.write_job("job.toml", trust, parties)
    with pytest.raises(BlindfitError, match=wanted):
        house.run()


def test_a_sum_that_could_pass_half_the_modulus_is_refused_before_anything_is_sent(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = listen(house, monkeypatch)
    house.publish_shares()
    monkeypatch.setattr(two_servers, "fits", lambda _request: False)
    refused(house, "shop cannot take part")
    assert not asked
    assert not house.asked


@pytest.mark.parametrize("job", ["job.toml", "shares.toml"])
def test_a_forecast_counts_both_noises(house: Split, job: str) -> None:
    """The forecasts of `plan` and `check`, and the job's report, have the square root of 2 times one trusted server's
    noise.

    The penalty that follows from the noise grows as well.
    """
    planned, checked, released, penalties = {}, {}, {}, {}
    for each in (job, "trusted.toml"):
        done = blindfit(house.root, "plan", each, "--draws", "2", "--epsilon", "1", "--out", "plan")
        assert done.returncode == 0, done.stderr
        (row,) = json.loads((house.root / "plan/plan.json").read_text())["epsilons"]
        planned[each] = row["noise_std"]
        said = blindfit(house.root, "check", each).stdout
        said = " ".join(said.split())
        ((text, l2),) = re.findall(
            r"standard deviation ([\d.]+) on each coordinate of the mean, default l2 ([\d.]+)", said
        )
        report = house.report(house.run(job=each))
        checked[each], released[each] = float(text), report["privacy"]["noise_std_of_mean"]
        penalties[each] = report["fit"]["l2"]
        assert float(l2) == pytest.approx(penalties[each], rel=0.1)
    for stds in (planned, released, penalties):
        assert stds[job] == pytest.approx(stds["trusted.toml"] * 2**0.5, rel=1e-3)
    for each in (job, "trusted.toml"):
        assert planned[each] == pytest.approx(released[each], rel=0.05)  # other rows are held out
        assert checked[each] == pytest.approx(released[each], rel=0.1)  # two digits


def test_a_forecast_of_an_evaluation_counts_both_noises(house: Split) -> None:
    found = {}
    for job, trust in (("job.toml", "two-servers"), ("shares.toml", "shared-rows"), ("trusted.toml", "trusted")):
        house.write_evaluation(job, trust, "any")
        (text,) = re.findall(r"within (\d+) / n", blindfit(house.root, "check", "evaluate.toml").stdout)
        found[trust] = float(text)
    assert found["two-servers"] == found["shared-rows"] == pytest.approx(found["trusted"] * 2**0.5, abs=1)
    assert found["trusted"] > 10


def test_an_evaluation_asks_both_and_is_charged_at_both(trained: tuple[Split, JobSession]) -> None:
    """The figures contain both noises; an evaluation by only one server, or by a trusted job, is refused."""
    house, session = trained
    for rows in ("held-out", "all"):
        house.write_evaluation("job.toml", "two-servers", session.id, rows=rows, figures=["calibration"])
        evaluated = house.run(job="evaluate.toml")
        path = house.root / "state" / "shop" / "evaluations" / evaluated.id / "report.json"
        report = json.loads(path.read_text())
        rate = report["figures"]["positive_rate"]
        true = 0.4 if rows == "all" else None
        assert true is None or abs(rate["value"] - true) < 3 * (rate["high"] - rate["value"])  # 6 deviations
        assert report["privacy"]["epsilon_of_both"] < 1
        assert len(report["servers"]) == 2
    assert house.charges() == [3, 3]
    house.edit("evaluate.toml", "two-servers", "trusted")
    with pytest.raises(ConfigError, match="needs exactly one measurement server"):
        house.run(job="evaluate.toml")
