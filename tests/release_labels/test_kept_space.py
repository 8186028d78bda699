"""All answers to one peer that a server keeps for ever fit into that peer's share of the disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.parties.measurement import release_labels, service
from blindfit.parties.measurement.charging import KEPT_BYTES_OF_A_LABEL, KEPT_BYTES_OF_LABELS
from blindfit.parties.settings import PolicySettings
from tests.hints.following import refused_value
from tests.release_labels.house import LABELS, LAPLACE, Counter
from tests.world import World

OpenCounter = Callable[..., Counter]
SMALL = replace(LAPLACE, epsilon=1e-3)  # a thousand of them for epsilon 1
MIB = 2**20


def policy(**options: Any) -> PolicySettings:
    return PolicySettings(min_rows=1, max_epsilon=50.0, max_delta=1e-5, **options)


def taken(counter: Counter) -> int:
    """Return the bytes on the disk of all releases, in blocks."""
    places = (counter.house.directory / "label_releases").rglob("*")
    return sum(place.stat().st_blocks * 512 for place in places)


def ask_until_refused(counter: Counter, most: int) -> int:
    for number in range(most):
        try:
            counter.ask(settings=SMALL, release=f"r{number}", request_id=f"r{number}")
        except PolicyRefused as refused:
            if refused.field != "max_kept_mib":
                raise
            return number
    return most


def test_many_small_releases_do_not_fill_the_disk(open_counter: OpenCounter) -> None:
    counter = open_counter(policy=policy(max_kept_mib=1))
    made = ask_until_refused(counter, 60)
    assert made == MIB // (KEPT_BYTES_OF_LABELS + KEPT_BYTES_OF_A_LABEL * len(LABELS))
    assert counter.charges == made  # the refused one was not charged
    assert taken(counter) <= MIB
    first = counter.ask(settings=SMALL, release="r0", request_id="r0")  # the remembered answer comes again
    assert len(first.steps) == len(LABELS)
    assert counter.ask(settings=SMALL, release="theirs", request_id="theirs", consumer="bank").release
    counter.restart()
    with pytest.raises(PolicyRefused, match=r"MiB on this server's disk.*raise max_kept_mib"):
        counter.ask(settings=SMALL, release="one more", request_id="one more")


def test_without_the_share_all_are_made(open_counter: OpenCounter) -> None:
    """The attack without a defence: it shows that the test above can fail."""
    assert ask_until_refused(open_counter(policy=policy(max_kept_mib=4096)), 60) == 60


def test_a_release_takes_no_more_than_was_estimated(open_counter: OpenCounter) -> None:
    counter = open_counter(policy=policy())
    counter.ask(settings=SMALL)
    assert taken(counter) <= counter.house.service.store.reader().count_kept_bytes("shop")


def test_few_releases_are_open_at_once(open_counter: OpenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_labels, "MOST_OPEN", 2)
    counter = open_counter(policy=policy())
    first = counter.ask(settings=SMALL, release="r0", request_id="r0").steps.tolist()
    for number in range(1, 6):
        counter.ask(settings=SMALL, release=f"r{number}", request_id=f"r{number}")
    assert len(counter.releases._open) == 2
    assert not counter.releases._making
    assert counter.ask(settings=SMALL, release="r0", request_id="r0").steps.tolist() == first


# --- jobs -----------------------------------------------------------------------------------------------


def refused_for_space(world: World, *overrides: str) -> None:
    """Check that nothing is charged, and that more space lets the job go on."""
    charges = len(world.ledger("meter"))
    with pytest.raises(BlindfitError) as caught:
        world.run(*overrides)
    refused_value("ask the server's operator to raise max_kept_mib", str(caught.value))
    assert len(world.ledger("meter")) == charges
    world.edit("meter.toml", "max_kept_mib = 1\n", "max_kept_mib = 64\n")
    world.run(*overrides)
    assert len(world.ledger("meter")) == charges + 1


def test_a_job_for_a_release_that_does_not_fit_is_not_charged(tmp_path: Path) -> None:
    ids = np.arange(44_000)  # 24 bytes each are more than a MiB
    own = {"systems": ["label-dp"]}
    world = World(tmp_path).active("shop", {"id": ids, "x": ids % 7}, policy=own)
    about = {"label_kind": "number", "label_range": [0, 10]}
    world.server("meter", {"id": ids, "label": ids % 10}, about=about, policy={**own, "max_kept_mib": 1})
    world.job("label-dp", privacy={"epsilon": 1.0}, label_dp={"mechanism": "laplace"})
    refused_for_space(world)


def test_an_aggregate_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "KEPT_BYTES", MIB // 2)
    ids = np.arange(300)
    world = World(tmp_path).active("shop", {"id": ids, "x": ids % 7})
    world.server("meter", {"id": ids, "label": ids % 2}, policy={"max_kept_mib": 1})
    world.walr(epsilon=0.1)
    world.run()
    refused_for_space(world, "privacy.epsilon=0.2")
    world.run()  # the remembered answer comes again
