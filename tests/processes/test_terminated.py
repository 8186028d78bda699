"""SIGTERM at any moment of a job: an exception inside a foreign callback is dropped there."""

from __future__ import annotations

import asyncio
import io
import signal
from typing import Any, TypeVar

import pytest
from rich.console import Console

from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import Launched
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.terminal.stopped import Stopped
from tests.wire.jobs import JOB

LONG_S = 20.0  # a signal that is noticed ends it at once


class TerminatedHere:
    """Raises a signal in a callback, as one of gRPC's, whose errors nobody receives."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


class Waits(JobSession):
    """Waits for a wake-up that never comes."""

    async def run(self) -> None:
        TerminatedHere()
        async with asyncio.timeout(LONG_S):
            await asyncio.Event().wait()


class TellsParties(JobSession):
    """Receives a second signal while it informs the parties."""

    told = False

    async def run(self) -> None:
        try:
            TerminatedHere()
            async with asyncio.timeout(LONG_S):
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.told = True


S = TypeVar("S", bound=JobSession)


def driven(kind: type[S]) -> S:
    """Return a job of this session that was stopped, without a party."""
    nobody: Any = None
    session = kind(read_job(JOB), {}, nobody)
    with pytest.raises(Stopped, match=f"the parties received the order to end {session.id}"):
        drive(session.job, Launched({}, nobody), Console(file=io.StringIO()), "quiet", session)
    return session


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a failing test shows its own message
def test_a_signal_within_a_callback_that_drops_what_is_raised() -> None:
    before = signal.getsignal(signal.SIGTERM)
    driven(Waits)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_parties_are_told_before_the_job_is_stopped() -> None:
    assert driven(TellsParties).told
