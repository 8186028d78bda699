"""SIGTERM at any moment of a job: an exception that comes up in somebody else's callback is dropped there."""

from __future__ import annotations

import asyncio
import io
import signal

import pytest
from rich.console import Console

from blindfit.coordinator.job import read_job
from blindfit.coordinator.jobs import drive
from blindfit.coordinator.launcher import Launched
from blindfit.coordinator.session import JobSession
from blindfit.coordinator.stopped import Stopped
from tests.wire.test_coordinator import JOB

LONG_S = 20.0  # a signal that is heard ends it at once


class TerminatedHere:
    """As a callback of gRPC's: nobody hears of what it raises."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


class Waits(JobSession):
    """For a wake-up that comes no more."""

    async def run(self) -> None:
        TerminatedHere()
        async with asyncio.timeout(LONG_S):
            await asyncio.Event().wait()


class TellsParties(JobSession):
    """A second signal, while the parties are told."""

    told = False

    async def run(self) -> None:
        try:
            TerminatedHere()
            async with asyncio.timeout(LONG_S):
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.told = True


def driven(session: JobSession) -> None:
    drive(session.job, Launched({}, None), Console(file=io.StringIO()), "quiet", session)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a test fails by its own words
def test_a_signal_within_a_callback_that_drops_what_is_raised() -> None:
    before = signal.getsignal(signal.SIGTERM)
    session = Waits(read_job(JOB), {}, None)  # type: ignore[arg-type]
    with pytest.raises(Stopped, match=f"the parties were told to end {session.id}"):
        driven(session)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_parties_are_told_before_the_job_is_stopped() -> None:
    session = TellsParties(read_job(JOB), {}, None)  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        driven(session)
    assert session.told
