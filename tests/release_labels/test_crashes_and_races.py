"""A release of labels is charged before it leaves, however the process ends; the last unit has one winner."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.privacy.ledger import verify_chain
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.parties.measurement.charging import ChargingService
from blindfit.parties.measurement.release_labels import LOST, LabelReleases
from tests.measurement.house import House
from tests.measurement.talking import await_answers, child, tell, told
from tests.release_labels import children
from tests.release_labels.children import BUDGET, LAST_UNIT
from tests.release_labels.house import NAMES, Counter, make_labels

CHILDREN = "tests.release_labels.children"
KILLS_A_LEDGER = 5


def answers_in(directory: Path) -> dict[str, str]:
    """Return all that left the server, by the name of the release; every repetition was the same."""
    answers: dict[str, str] = {}
    path = directory / "answers"
    for line in path.read_text().splitlines() if path.exists() else ():
        name, answer = line.split()
        assert answers.setdefault(name, answer) == answer
    return answers


def check_charged(counter: Counter, answers: dict[str, str]) -> None:
    verify_chain(counter.house.entries)
    assert counter.house.spent() <= BUDGET.epsilon * (1 + 1e-9)
    stored = {kept.release: kept for kept in counter.house.service.store.reader().label_releases()}
    assert [kept.position for kept in stored.values()] == [entry.position for entry in counter.house.entries]
    made = {name: kept for name, kept in stored.items() if not kept.is_under_way}
    assert len(stored) - len(made) <= KILLS_A_LEDGER
    directories = counter.house.directory / "label_releases"
    assert {path.name for path in directories.glob("release-*")} == {kept.directory for kept in made.values()}
    for kept in made.values():
        remembered = (directories / kept.directory / "label").read_bytes()
        assert hashlib.sha256(remembered).hexdigest() == kept.labels_sha256
    charged = counter.charges
    for name in stored.keys() - made.keys():
        assert name not in answers
        with pytest.raises(PolicyRefused, match=LOST[:40]):
            counter.ask(release=name)
    for name, answer in answers.items():
        assert children.octets(counter.ask(release=name)) == answer
    assert counter.charges == charged


def kill_at_random(tmp_path: Path, kills: int, seed: int) -> int:
    rng, dataset, n_answers = random.Random(seed), make_labels(tmp_path / "index"), 0
    with child(CHILDREN, "releasing", str(tmp_path / "child")) as process:
        for number in range(kills):
            directory = tmp_path / str(number // KILLS_A_LEDGER)
            directory.mkdir(exist_ok=True)
            tell(process, str(directory))
            pid = int(told(process))
            await_answers(directory / "answers", rng.randint(0, 4))
            time.sleep(rng.uniform(0, 0.02))
            os.kill(pid, signal.SIGKILL)
            assert told(process) == "dead"
            house = House(directory, {"prices": dataset}, BUDGET)
            check_charged(Counter(house), answers_in(directory))
            house.close()
            n_answers = max(n_answers, len(answers_in(directory)))
    return n_answers


def test_whenever_it_is_killed_what_left_was_charged(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 12, seed=1) > 3


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_thousand_kills(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 1000, seed=2) > 3


def test_the_last_unit_has_one_winner(tmp_path: Path) -> None:
    """Two processes have one database and separate indexes under other keys; in the last round all send one request."""
    dataset = make_labels(tmp_path / "index")
    with child(CHILDREN, "racing", "8") as one, child(CHILDREN, "racing", "8") as two:
        for number in range(4):
            directory, same = tmp_path / str(number), number == 3
            house = House(directory, {"prices": dataset}, LAST_UNIT)
            start = time.time() + (3.0 if number == 0 else 1.0)
            for name, process in (("one", one), ("two", two)):
                tell(process, f"{directory} {start} {'same' if same else name}")
            results = [result for process in (one, two) for result in told(process).split()]
            answers = [result for result in results if result != "-"]
            assert len(results) == 16
            assert len(set(answers)) == 1
            assert len(answers) == (16 if same else 1)
            assert len(house.entries) == 1
            winner = house.service.store.reader().label_releases()[0].release
            assert children.octets(Counter(house).ask(NAMES, release=winner)) == answers[0]
            house.close()


@pytest.mark.parametrize("same", [False, True])
def test_two_that_were_both_admitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    """Each has passed every check; the transaction that charges decides, and the loser draws nothing."""
    both_charge, charge, drawn = threading.Barrier(2), LabelReleases._charge, []

    def charge_together(*arguments: Any) -> Any:
        both_charge.wait(60)
        return charge(*arguments)

    draw = release_labels.step_5_randomise
    monkeypatch.setattr(LabelReleases, "_charge", charge_together)
    monkeypatch.setattr(release_labels, "step_5_randomise", lambda *asked: drawn.append(asked) or draw(*asked))
    dataset = make_labels(tmp_path)
    counters = [Counter(House(tmp_path, {"prices": dataset}, LAST_UNIT)) for _ in range(2)]
    names = ["same", "same"] if same else ["one", "two"]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(children.race, counters, names, [0.0, 0.0]))
    assert not both_charge.broken
    assert len(drawn) == 1
    assert len(set(results) - {"-"}) == 1
    assert results.count("-") == (0 if same else 1)
    assert counters[0].charges == 1
    assert len(list((tmp_path / "label_releases").glob("release-*"))) == 1
    for counter in counters:
        counter.house.close()


def test_one_whose_very_release_is_charged_between_two_of_its_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process sees no charge, and then no budget: the other process has charged and made the same release."""
    dataset, chargeable = make_labels(tmp_path), ChargingService.check_chargeable
    late, other = (Counter(House(tmp_path, {"prices": dataset}, LAST_UNIT)) for _ in range(2))
    looks, answers = [0], []

    def look_before_the_other(charging: ChargingService, *arguments: Any) -> None:
        if charging is late.house.service:
            looks[0] += 1
            if looks[0] == 2:  # the first look is at admission, the second at the release, after no charge was seen
                answers.append(children.race(other, "same", 0.0))
        chargeable(charging, *arguments)

    monkeypatch.setattr(ChargingService, "check_chargeable", look_before_the_other)
    assert children.race(late, "same", 0.0) == answers[0] != "-"
    assert late.charges == 1
    for counter in (late, other):
        counter.house.close()
