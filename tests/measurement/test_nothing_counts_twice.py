"""A label counts once and a charge has one answer, for any actions of active parties and accidents in any order."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from blindfit.algorithms.errors import BudgetExhausted, DataError, MalformedMessage, RequestConflict
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.ledger import Budget, verify_chain
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, RowsEnd
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.measurement.desk import AggregateDesk
from tests.measurement.house import NAMES, ONE, House, make_dataset, one_hot
from tests.walr.seats import talk

BUDGET = Budget(2.0, 1e-6)
EPSILON = 0.7  # a handful of releases fits
DRAW = 2**40  # stand-in for noise: the n-th draw is n times this, so that all draws differ

RELEASES = st.sampled_from(["a", "b", "c"])
CONSUMERS = st.sampled_from(["shop", "bank"])
ROWS = st.lists(st.integers(0, len(NAMES) - 1), min_size=1, max_size=6, unique=True)


class ServerWithAccidents(RuleBasedStateMachine):
    dataset: LabelDataset  # the same for all runs, as nothing changes it
    draws: Iterator[int]

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.house = House(self.directory, {"visits": self.dataset}, BUDGET)
        self.answers: dict[tuple[str, str, str, str], bytes] = {}  # active party, release, rows, snapshot -> the answer
        self.sessions = count(1)
        self.charges = 0

    def teardown(self) -> None:
        if hasattr(self, "house"):
            self.house.close()
            shutil.rmtree(self.directory)

    # --- what active parties do

    @rule(release=RELEASES, consumer=CONSUMERS, chosen=ROWS)
    def ask(self, release: str, consumer: str, chosen: list[int]) -> None:
        rows = one_hot([NAMES[i] for i in chosen], chosen)
        key = (consumer, release, repr(chosen), self.snapshot)
        try:
            answer, _ = self.house.send(rows, self.request(rows, release, session=f"s{next(self.sessions)}"), consumer)
        except BudgetExhausted:
            assert key not in self.answers
            return
        octets = measurement_codec.answer_to_pb(answer).SerializeToString()
        self.charges += key not in self.answers
        assert self.answers.setdefault(key, octets) == octets
        cells = [cell % DRAW for cell in answer.sums.tolist()]
        assert cells == [ONE * (i % 2) if i in chosen else 0 for i in range(len(cells))]

    @rule(release=RELEASES, consumer=CONSUMERS)
    def ask_again(self, release: str, consumer: str) -> None:
        for who, name, chosen, snapshot in list(self.answers):
            if (who, name, snapshot) == (consumer, release, self.snapshot):
                self.ask(release, consumer, [int(i) for i in chosen.strip("[]").split(",")])

    @rule(release=RELEASES, chosen=ROWS, sent=st.sampled_from(["open", "rows", "all"]))
    def lose_the_answer(self, release: str, chosen: list[int], sent: str) -> None:
        """End the call as the active party: before its rows, before the end of the rows, or before the
        answer arrives.
        """
        rows = one_hot([NAMES[i] for i in chosen], chosen)
        said = [self.request(rows, release), *rows.batches(), RowsEnd()]
        said = {"open": said[:1], "rows": said[:-1], "all": said}[sent]
        desk = AggregateDesk(self.house.service, "shop")
        key = ("shop", release, repr(chosen), self.snapshot)
        try:
            answer = asyncio.run(talk_until_silence(desk, said))
        except BudgetExhausted:
            return
        finally:
            desk.close()
        if answer is not None:
            octets = measurement_codec.answer_to_pb(answer).SerializeToString()
            self.charges += key not in self.answers
            assert self.answers.setdefault(key, octets) == octets

    @rule(release=RELEASES, chosen=ROWS, twice=st.integers(0, 5))
    def count_a_row_twice(self, release: str, chosen: list[int], twice: int) -> None:
        chosen = [*chosen, chosen[twice % len(chosen)]]
        rows = one_hot([NAMES[i] for i in chosen], chosen)
        with pytest.raises((DataError, BudgetExhausted)):
            self.house.send(rows, self.request(rows, release))

    @rule(release=RELEASES, chosen=ROWS)
    def reuse_an_id(self, release: str, chosen: list[int]) -> None:
        rows = one_hot([NAMES[i] for i in chosen], chosen)
        for consumer, name, other, snapshot in list(self.answers):
            asked = (consumer, name, snapshot) == ("shop", release, self.snapshot)
            if asked and other != repr(chosen):
                old_chosen = [int(i) for i in other.strip("[]").split(",")]
                old = one_hot([NAMES[i] for i in old_chosen], old_chosen)
                request = self.request(rows, release, request_id=self.request(old, release).request_id)
                with pytest.raises(RequestConflict):
                    self.house.send(rows, request)

    @rule(release=RELEASES, chosen=ROWS)
    def send_other_rows(self, release: str, chosen: list[int]) -> None:
        """Send other rows than those of the digest."""
        rows = one_hot([NAMES[i] for i in chosen], chosen)
        promised = self.request(rows, release)
        if ("shop", release, repr(chosen), self.snapshot) in self.answers:
            return
        heavier = ConsumerRows(rows.ids, rows.weights * 2)
        with pytest.raises((MalformedMessage, BudgetExhausted)):
            self.house.send(heavier, promised)

    # --- what the operator does

    @rule()
    def publish(self) -> None:
        """Publish the same labels again: another snapshot, and so another question."""
        anew = replace(self.house.datasets["visits"], snapshot=f"{next(self.sessions):032x}")
        self.house.datasets["visits"] = anew

    @property
    def snapshot(self) -> str:
        return self.house.datasets["visits"].snapshot

    # --- accidents

    @rule()
    def restart(self) -> None:
        self.house.reopen()

    # --- what holds

    @invariant()
    def every_answer_is_charged_once(self) -> None:
        if not hasattr(self, "house"):
            return
        entries = self.house.entries
        verify_chain(entries)
        assert len(entries) == self.charges == len(self.answers)
        assert self.house.spent() <= BUDGET.epsilon * (1 + 1e-9)

    def request(self, rows: ConsumerRows, release: str, **changes: Any) -> walr.AggregateOpen:
        return self.house.request(rows, release=release, epsilon=EPSILON, **changes)


async def talk_until_silence(desk: AggregateDesk, messages: list[object]) -> walr.NoisySum | None:
    """Run the server's role with an active party that sends these messages and then nothing, not even
    that it is gone.
    """
    talking = asyncio.ensure_future(talk(desk, *messages))
    answered = asyncio.ensure_future(asyncio.sleep(60 if len(messages) > 2 else 0.02))
    done, _ = await asyncio.wait([talking, answered], return_when=asyncio.FIRST_COMPLETED)
    answered.cancel()
    if talking in done:
        return talking.result()
    talking.cancel()
    await asyncio.wait([talking])
    return None


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sequences: int, steps: int) -> None:
    draws = count(1)

    def numbered(n: int, sigma_squared: Fraction, uniform: Any) -> list[int]:
        return [DRAW * next(draws)] * n

    monkeypatch.setattr(gaussian, "sample_vector", numbered)
    monkeypatch.setattr(ServerWithAccidents, "dataset", dataset_in(tmp_path), raising=False)
    run_state_machine_as_test(
        ServerWithAccidents,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


def dataset_in(directory: Path) -> LabelDataset:
    return make_dataset(directory, {name: i % 2 for i, name in enumerate(NAMES)})


def test_nothing_counts_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(monkeypatch, tmp_path, sequences=150, steps=8)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_counts_twice_in_ten_thousand_sequences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(monkeypatch, tmp_path, sequences=10_000, steps=20)
