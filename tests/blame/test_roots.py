"""A chain of waits leads to one party, for any reports of the others, and a process notices its own standstill."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import PeerTimeout
from blindfit.parties.wire import pulse as module
from blindfit.parties.wire import waits
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.wire.waits import SILENT, Report, Root, Wait, Waits, ask_all, most_blamed, root_of
from blindfit.protos import control_pb2 as pb
from tests.each_case import each_case

STEP_S = 60.0


def report(*peers: str, still_s: float = 0.0) -> Report:
    return Report(tuple(Wait(peer, f"of {peer}", 1.0) for peer in peers), still_s)


CASES: dict[str, tuple[Mapping[str, Report], Root]] = {
    "nobody was asked": ({}, Root("b", "s")),
    "silent": ({"b": SILENT}, Root("b", "s", "silent")),
    "at work": ({"b": report()}, Root("b", "s", "working")),
    "a chain to a silent one": (
        {"b": report("c"), "c": report("d"), "d": SILENT},
        Root("d", "of d", "silent", ("b", "c")),
    ),
    "a chain to one at work": ({"b": report("c"), "c": report()}, Root("c", "of c", "working", ("b",))),
    "one that stood still, and waits now for the others": (
        {"b": report("c"), "c": report("a", "b", still_s=45)},
        Root("c", "of c", "still", ("b",), 45),
    ),
    "one that was held up for a moment": (
        {"b": report("c", still_s=2), "c": SILENT},
        Root("c", "of c", "silent", ("b",)),
    ),
    "of two waits, the one that leads to somebody silent": (
        {"b": report("c", "d"), "c": report(), "d": SILENT},
        Root("d", "of d", "silent", ("b",)),
    ),
    "two that wait for each other": ({"b": report("a")}, Root("b", "s", "waiting")),
    "a circle": ({"b": report("c"), "c": report("d"), "d": report("b")}, Root("d", "of d", "waiting", ("b", "c"))),
    "a wait for oneself": ({"b": report("b")}, Root("b", "s", "waiting")),
}


@each_case("what", list(CASES))
def test_a_chain_ends_at_its_root(what: str) -> None:
    reports, root = CASES[what]
    assert root_of(Wait("b", "s"), reports, STEP_S, "a") == root


NAMES = st.sampled_from("abcdefgh")
ANY = st.builds(
    lambda peers, still, silent: SILENT if silent else report(*peers, still_s=still),
    st.lists(NAMES, max_size=4),
    st.floats(0, 100),
    st.booleans(),
)


@given(st.dictionaries(NAMES, ANY), NAMES)
def test_every_chain_has_an_end(reports: dict[str, Report], first: str) -> None:
    root = root_of(Wait(first, "s"), reports, STEP_S, "a")
    assert len(set(root.through)) == len(root.through)
    assert root.party not in root.through


@given(st.permutations("bcdef"), st.integers(1, 5))
def test_one_silent_party_is_always_the_root_of_a_chain(order: list[str], length: int) -> None:
    """Any party may ask: it is where all waits end."""
    chain = order[:length]
    reports = {name: report(after) for name, after in itertools.pairwise(chain)} | {chain[-1]: SILENT}
    for first in chain:
        assert root_of(Wait(first, "s"), reports, STEP_S, "a").party == chain[-1]


@each_case(
    ("claims", "reports", "blamed"),
    [
        ({"a": "c", "b": "c", "c": "a"}, {}, "c"),  # cut off, it blames another
        ({"a": "c", "b": "d"}, {"d": SILENT, "e": SILENT}, "d"),  # an observation counts more than a claim
        ({"a": "c", "b": "c"}, {"e": SILENT}, "c"),  # but a party for which nobody waits is not to blame
        ({"a": "b", "b": "a"}, {"b": report(still_s=50)}, "b"),
        ({}, {"e": SILENT}, ""),
    ],
)
def test_of_several_claims_the_most_counts(claims: dict[str, str], reports: dict[str, Report], blamed: str) -> None:
    assert most_blamed(claims, reports, STEP_S) == blamed


async def test_one_that_alone_says_nothing_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "ALONE_S", 0.05)
    monkeypatch.setattr(waits, "MOST_S", 600.0)

    async def answers(after_s: float) -> Report:
        await asyncio.sleep(after_s)
        return report("c")

    found = await ask_all({"b": lambda: answers(0.3), "c": lambda: answers(1000.0)})  # b is late, and is waited for
    assert found == {"b": report("c"), "c": SILENT}
    assert await ask_all({}) == {}


async def test_nobody_is_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOST_S", 0.05)
    found = await ask_all({name: lambda: asyncio.sleep(1000, report()) for name in "bc"})
    assert found == {"b": SILENT, "c": SILENT}


# --- what a party says of itself ---------------------------------------------------------------------------


async def test_a_wait_that_failed_is_still_what_a_party_waits_for() -> None:
    waiting = Waits()
    with waiting.on("b", "Keys"):
        assert [(wait.peer, wait.step) for wait in waiting.report()] == [("b", "Keys")]
    assert waiting.report() == ()
    with pytest.raises(PeerTimeout), waiting.on("b", "Keys"):
        raise PeerTimeout(peer="b", step="Keys", timeout_s=1)
    with waiting.on("c", "Rows"):
        assert [wait.peer for wait in waiting.report()] == ["b", "c"]  # the oldest first
    with waiting.on("b", "Keys"):
        pass
    assert waiting.report() == ()  # the peer tried again, and came


@each_case("seconds", [math.nan, math.inf, -1.0])
def test_a_claim_is_only_a_claim(seconds: float) -> None:
    wait = pb.Wait(peer="b", step="\x1b[31m" + "x" * 500, since_s=seconds)
    answer = pb.WaitingAnswer(waits=[wait, pb.Wait(peer="stranger")] * 100, still_s=seconds)
    found = waits.report_from_pb(answer, ("a", "b"))
    assert found.still_s == 0.0
    assert {(w.peer, w.since_s) for w in found.waits} == {("b", 0.0)}
    assert len(found.waits) <= waits.MOST_WAITS
    assert all(w.step.isprintable() and len(w.step) <= 64 for w in found.waits)


async def test_the_time_that_a_process_stood_still_is_no_part_of_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.02)
    monkeypatch.setattr(module, "LATE_S", 0.1)
    pulse, came = Pulse(), asyncio.Event()
    pulse.start()
    since = asyncio.get_running_loop().time()
    waiting = asyncio.create_task(pulse.patient(came.wait, 0.3))
    await asyncio.sleep(0.05)
    time.sleep(0.6)  # as if it was stopped: meanwhile its deadline passes
    asyncio.get_running_loop().call_later(0.1, came.set)  # its message was on the way
    assert await waiting
    assert pulse.longest_s(since) > 0.4
    assert pulse.longest_s(asyncio.get_running_loop().time()) == 0.0
    pulse.stop()


async def test_a_deadline_passes_all_the_same() -> None:
    pulse = Pulse()
    pulse.start()
    with pytest.raises(TimeoutError):
        await pulse.patient(asyncio.Event().wait, 0.05)
    pulse.stop()
