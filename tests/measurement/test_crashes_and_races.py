"""A release is charged durably before it leaves, however the process dies; the last unit of a budget has one winner."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.privacy.ledger import verify_chain
from blindfit.algorithms.protocols.walr import statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.store.database import Reads
from blindfit.protos import measurement_pb2 as pb
from tests.measurement import children
from tests.measurement.children import BUDGET, LAST_UNIT, RELEASE_EPSILON, dataset_of
from tests.measurement.house import House, one_hot
from tests.measurement.talking import await_answers, child, tell, told

CHILDREN = "tests.measurement.children"


# --- kill -9 ----------------------------------------------------------------------------------------


def released(directory: Path) -> dict[str, bytes]:
    """Return all that left the server, by the name of the release; every repetition was the same."""
    answers: dict[str, bytes] = {}
    whole = (directory / "answers").read_text() if (directory / "answers").exists() else ""
    for line in whole.splitlines():
        name, answer = line.split()
        assert answers.setdefault(name, bytes.fromhex(answer)) == bytes.fromhex(answer)
    return answers


def check_charged(house: House, answers: dict[str, bytes]) -> None:
    entries = house.entries
    verify_chain(entries)
    of_request = {entry.request_id: entry for entry in entries}
    assert len(of_request) == len(entries)
    for name, answer in answers.items():
        message = measurement_codec.answer_from_pb(pb.NoisySum.FromString(answer), "labels")
        request = house.request(one_hot(), release=name, epsilon=RELEASE_EPSILON)
        about = Between("labels", "shop", house.datasets["visits"].population)
        assert statement.check_proof(request, message, about) in entries
    for entry in entries:
        stored = house.service.store.reader().answer("shop", entry.request_id)
        assert stored is not None
        assert stored.position == entry.position
    assert house.spent() <= BUDGET.epsilon * (1 + 1e-9)


def kill_at_random(tmp_path: Path, kills: int, seed: int, kills_a_ledger: int = 5) -> int:
    rng = random.Random(seed)
    n_answers = 0
    dataset = dataset_of(tmp_path / "index")
    with child(CHILDREN, "releasing", str(tmp_path / "child")) as process:
        for ledger in range(-(-kills // kills_a_ledger)):
            directory = tmp_path / str(ledger)
            directory.mkdir()
            for _ in range(min(kills_a_ledger, kills - ledger * kills_a_ledger)):
                tell(process, str(directory))
                pid = int(told(process))
                await_answers(directory / "answers", rng.randint(0, 6))
                time.sleep(rng.uniform(0, 0.02))
                os.kill(pid, signal.SIGKILL)
                assert told(process) == "dead"
                house = House(directory, {"visits": dataset}, BUDGET)
                answers = released(directory)
                check_charged(house, answers)
                house.close()
            house = House(directory, {"visits": dataset}, BUDGET)
            charged = len(house.entries)
            for name, answer in answers.items():
                assert house.octets(epsilon=RELEASE_EPSILON, release=name) == answer
                assert house.consumed == ["AggregateOpen"]
            assert len(house.entries) == charged
            house.close()
            n_answers += len(answers)
    return n_answers


def test_whenever_it_is_killed_what_left_was_charged(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 25, seed=1) > 25


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_thousand_kills(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 1000, seed=2, kills_a_ledger=8) > 1000


# --- the last unit ----------------------------------------------------------------------------------

THREADS, PROCESSES = 32, 2


def race(tmp_path: Path, rounds: int) -> None:
    dataset = dataset_of(tmp_path / "index")
    with child(CHILDREN, "racing", str(THREADS)) as one, child(CHILDREN, "racing", str(THREADS)) as two:
        for number in range(rounds):
            directory = tmp_path / str(number)
            house = House(directory, {"visits": dataset}, LAST_UNIT)
            house.close()
            same = number % 5 == 4  # all ask the same: then nobody loses, and it is charged once
            start = time.time() + (1.5 if number == 0 else 0.4)
            for name, process in (("one", one), ("two", two)):
                tell(process, f"{directory} {start} {'same' if same else name}")
            results = [result for process in (one, two) for result in told(process).split()]
            check_race(results, same)
            house.open()
            assert len(house.entries) == 1
            house.close()
            shutil.rmtree(directory)


def check_race(results: list[str], same: bool) -> None:
    assert len(results) == THREADS * PROCESSES
    answers = [result for result in results if result != "-"]
    assert len(set(answers)) == 1
    assert len(answers) == (len(results) if same else 1)


def test_the_last_unit_has_one_winner(tmp_path: Path) -> None:
    race(tmp_path, 10)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_last_unit_has_one_winner_a_thousand_times(tmp_path: Path) -> None:
    race(tmp_path, 1000)


def test_a_loser_of_the_race_was_admitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The race above is one: without the second check, in the transaction that charges, everybody would win."""
    house = House(tmp_path, {"visits": dataset_of(tmp_path)}, LAST_UNIT)
    chargeable = house.service.check_chargeable

    def only_at_admission(reader: Reads, *arguments: Any) -> None:
        if reader._all("SELECT 1 FROM ledger") == []:
            chargeable(reader, *arguments)

    monkeypatch.setattr(house.service, "check_chargeable", only_at_admission)
    with ThreadPoolExecutor(8) as threads:
        start = time.time() + 0.5
        results = list(threads.map(lambda i: children.race(house, str(i), start), range(8)))
    assert len([result for result in results if result != "-"]) > 1
    house.close()
