"""The same job by `check` and by `run`: each refusal, and its place in the code."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, CannotAnswer, CannotTakePart
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.jobs.check import Finding, check
from blindfit.coordinator.running.launcher import check_member, coordinator_name, party_settings
from blindfit.coordinator.running.snapshots import publish_first
from tests.certificates import quick_connections
from tests.quick_keys import quick_keys
from tests.refusals.sites import reached
from tests.world import World

ANYBODY = "a party"
OWN = ("DataError", "ConfigError", "RangeError", "ComputeFailed", "UnknownId", "DuplicateId", "TooFewRows")


@dataclass(frozen=True)
class Refusal:
    """
    Attributes:
        said: message and advice, as a user reads them.
        at: places in the code that made errors.
    """

    said: str
    at: frozenset[str]


def refusal_of_run(world: World, *sets: str) -> Refusal:
    """Do what `blindfit run` does, with parties in this process."""
    with reached() as at, capture_logs() as logs, pytest.raises(BlindfitError) as caught:
        _run(world, world.load(*sets))
    return Refusal(_in_full(caught.value, logs), frozenset(at))


def _run(world: World, job: Job[Any]) -> None:
    for name in job.parties:
        check_member(job, name)
    coordinator_name(job)
    publish_first(job, {name: party_settings(job, name) for name in job.parties}, lambda _line: None)
    with quick_keys(), quick_connections(world.root / "ca"):
        asyncio.run(_run_to_its_end(world, job))


async def _run_to_its_end(world: World, job: Job[Any]) -> None:
    async with world.up(job, first_snapshots=False) as nodes:
        await world.session(job, nodes).run()


def _in_full(error: BlindfitError, logs: Iterable[Mapping[str, Any]]) -> str:
    """Return what `blindfit run` prints: the reason of a party on this machine is in that party's log."""
    if isinstance(error, CannotTakePart | CannotAnswer):
        found = [log for log in logs if log.get("reason") and log.get("error") in OWN]
        if found:
            hint = found[-1].get("hint", "")
            return f"{found[-1]['reason']}" + (f" ({hint})" if hint else "")
    return str(error)


def refusals_of_check(world: World, *sets: str) -> tuple[list[Finding], frozenset[str]]:
    with reached() as at:
        findings = check(world.load(*sets))
    return [finding for finding in findings if finding.refuses], frozenset(at)


def _without_party(text: str) -> str:
    return re.sub(r"^[a-z-]+ refuses the job", "a party refuses the job", text)


def assert_equal(world: World, party: str, at: str, sets: tuple[str, ...] = (), *, is_same_place: bool = True) -> str:
    """Check that both refuse the job, in the same words, of the same party, by the same place in the code.

    Args:
        at: beginning of the place's name; empty if it is outside of the table.
        is_same_place: False: `check` makes the same words from the same numbers elsewhere.

    Returns:
        Message of the refusal.
    """
    found, checked_at = refusals_of_check(world, *sets)
    run = refusal_of_run(world, *sets)
    if party == ANYBODY:  # every party finds the same, and the first one ends the job
        said = {_without_party(finding.text) for finding in found}
    else:
        said = {finding.text for finding in found if finding.about == party or party in finding.text}
    assert (_without_party(run.said) if party == ANYBODY else run.said) in said, (
        f"run: {run.said!r}\ncheck: {[(f.about, f.text) for f in found]}"
    )
    assert not at or [place for place in run.at if place.startswith(at)], f"run: {sorted(run.at)}"
    if is_same_place:
        assert not at or [place for place in checked_at if place.startswith(at)], f"check: {sorted(checked_at)}"
    return run.said
