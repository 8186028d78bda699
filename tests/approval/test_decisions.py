"""An operator approves a digest: that of the job that was shown, not of another job with its name."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from rich.console import Console
from structlog.testing import capture_logs

from blindfit.algorithms.errors import ConfigError, DataError, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.messages import ParameterValue
from blindfit.coordinator.operator import deciding as operator
from blindfit.parties.job.tables import PrivacySettings, TimeoutSettings
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.proposal import read_proposal
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Writes
from blindfit.parties.systems import read_proposed
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb
from tests.statuses import reason_of
from tests.wire.calls import proposal
from tests.wire.meter import settings_of

LONG_S = 30.0  # any answer comes within a second


@dataclass
class Asking:
    """A measurement server in this process, which asks its operator, and that operator."""

    node: PartyNode
    directory: Path

    @property
    def file(self) -> Path:
        return self.directory / "party.toml"

    async def propose(self, session: str, epsilon: float = 0.5, **times: float) -> str:
        """Return the digest that is shown to the operator."""
        asked = proposal(session)
        timeouts = TimeoutSettings(**{"step_s": 1, "reconnect_s": 0.1} | times)
        job = WalrJob(privacy=PrivacySettings(epsilon=epsilon), timeouts=timeouts)
        asked.parameters.CopyFrom(codec.parameters_to_pb(job.to_parameters()))
        await self.node.sessions.propose(asked, "coordinator")
        return self.shown().split()[-1]

    def shown(self) -> str:
        console = Console(file=io.StringIO(), width=400)
        operator.list_held(self.node.settings, self.file).show(console)
        return console.file.getvalue()

    def decide(self, session: str, digest: str | None, *, refuse: bool = False) -> None:
        console = Console(file=io.StringIO())
        operator.decide(self.node.settings, self.file, session, digest, refuse=refuse).show(console)

    def change(self, query: str) -> None:
        """Change the database as no part of Blindfit does."""
        with contextlib.closing(sqlite3.connect(self.directory / "state" / "party.sqlite")) as database:
            database.execute(query)
            database.commit()

    def forget(self, session: str) -> None:
        """Forget the session, as if names could be used twice."""
        self.change("DELETE FROM sessions")
        del self.node.sessions._sessions[session]

    async def decided(self, session: str) -> str:
        found = self.node.sessions.get(session)
        async with asyncio.timeout(LONG_S):
            while found.state == "HELD":
                await asyncio.sleep(0.01)
        return found.state


@pytest.fixture
async def asking(authority: Path, tmp_path: Path) -> AsyncIterator[Asking]:
    policy = PolicySettings(min_rows=1, approve="ask", max_epsilon=5.0)
    node = PartyNode(settings_of(authority, tmp_path).model_copy(update={"policy": policy}), tmp_path)
    await node.start()
    yield Asking(node, tmp_path)
    await node.stop()


async def test_what_was_shown_is_approved_and_runs(asking: Asking) -> None:
    digest = await asking.propose("monday")
    assert f"blindfit approve {asking.file} monday {digest}" in asking.shown()
    asking.decide("monday", digest)
    assert await asking.decided("monday") == "ACCEPTED"
    row = asking.node.party.store.reader().session("monday")
    assert (row.digest, row.proposal) == (digest, b"")
    assert (await asking.node.sessions.start("monday")).state == "RUNNING"


@pytest.mark.parametrize("digest", ["", "0" * 32, None])
async def test_another_digest_or_none_is_one_clear_line_and_changes_nothing(asking: Asking, digest: str | None) -> None:
    await asking.propose("monday")
    with pytest.raises(ConfigError, match="is not the digest of the job that waits here as monday"):
        asking.decide("monday", digest)
    assert asking.node.party.store.reader().session("monday").state == "HELD"


async def test_a_part_of_the_digest_is_not_the_digest(asking: Asking) -> None:
    digest = await asking.propose("monday")
    for part in (digest[:-1], digest[:8], digest.upper() if digest.upper() != digest else digest + "0"):
        with pytest.raises(ConfigError, match="is not the digest"):
            asking.decide("monday", part)


async def test_a_name_that_was_cancelled_comes_with_no_other_job(asking: Asking) -> None:
    digest = await asking.propose("monday", epsilon=0.5)
    await asking.node.sessions.cancel("monday")
    with pytest.raises(PolicyRefused, match="there was a session of this name"):
        await asking.propose("monday", epsilon=2.0)
    with pytest.raises(ConfigError, match="monday is not a job that waits here"):
        asking.decide("monday", digest)
    assert "no job waits" in asking.shown()


async def test_another_job_behind_the_name_that_was_shown(asking: Asking) -> None:
    """Even if names could be used twice."""
    digest = await asking.propose("monday", epsilon=0.5)
    await asking.node.sessions.cancel("monday")
    asking.forget("monday")
    assert await asking.propose("monday", epsilon=2.0) != digest
    with pytest.raises(ConfigError, match=f"{digest} is not the digest of the job that waits here as monday"):
        asking.decide("monday", digest)
    assert asking.node.sessions.get("monday").state == "HELD"


async def test_a_yes_to_another_digest_is_none(asking: Asking) -> None:
    """The row here differs from what waits in memory."""
    await asking.propose("monday")
    asking.change(f"UPDATE sessions SET state = 'ACCEPTED', digest = '{'0' * 32}'")
    assert await asking.decided("monday") == "REFUSED"


async def test_what_runs_is_held_against_what_was_approved(asking: Asking) -> None:
    asking.decide("monday", await asking.propose("monday", epsilon=0.5))
    await asking.decided("monday")
    session = asking.node.sessions.get("monday")
    session.parameters = {**session.parameters, "privacy.epsilon": 2.0}
    with pytest.raises(PolicyRefused, match="the job is not the one that was approved here"):
        await asking.node.sessions.start("monday")
    assert session.state == "ACCEPTED"


async def test_a_row_that_shows_another_job_than_it_would_approve(asking: Asking) -> None:
    await asking.propose("monday", epsilon=0.5)
    other = proposal("monday").SerializeToString().replace(b"labels", b"clicks")
    asking.change(f"UPDATE sessions SET proposal = x'{other.hex()}'")
    with pytest.raises(DataError, match="monday: the party's database shows another job"):
        asking.shown()


async def test_a_refusal_needs_no_digest_but_not_another_ones(asking: Asking) -> None:
    digest = await asking.propose("monday")
    with pytest.raises(ConfigError, match="is not the digest"):
        asking.decide("monday", "0" * 32, refuse=True)
    asking.decide("monday", None, refuse=True)
    assert await asking.decided("monday") == "REFUSED"
    with pytest.raises(ConfigError, match="is not a job that waits"):
        asking.decide("monday", digest)


# --- reports to a coordinator ---------------------------------------------------------------------------


async def last_event(asking: Asking, session: str) -> tuple[int, str]:
    """State, and the reason of the error."""
    async with asyncio.timeout(LONG_S):
        events = [event async for event in asking.node.sessions.watch(session)]
    return events[-1].state, reason_of(events[-1].error) if events[-1].HasField("error") else ""


async def test_an_operator_who_says_nothing_in_time_has_not_approved(asking: Asking) -> None:
    await asking.propose("monday", approval_s=1e-6)
    assert await last_event(asking, "monday") == (pb.REFUSED, "POLICY_REFUSED")
    with pytest.raises(ConfigError, match="monday is not a job that waits"):
        asking.decide("monday", None, refuse=True)


async def test_a_database_that_cannot_be_read_for_a_moment_loses_no_job(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, failed = await asking.propose("monday"), asyncio.Event()

    def fail(_reader: object, _session: str) -> None:
        failed.set()
        raise LedgerUnavailable("disk I/O error")

    with monkeypatch.context() as busy:
        busy.setattr(type(asking.node.party.store.reader()), "session", fail)
        await failed.wait()
        await asyncio.sleep(0)
    asking.decide("monday", digest)
    assert await asking.decided("monday") == "ACCEPTED"


@contextlib.contextmanager
def full_disk() -> Iterator[asyncio.Event]:
    """Make every change of a session fail; yield an event that is set once a change has failed."""
    failed = asyncio.Event()

    def fail(*_: object, **__: object) -> None:
        failed.set()
        raise sqlite3.OperationalError("database or disk is full")

    with mock.patch.object(Writes, "change_session", fail):
        yield failed


async def test_an_approval_that_cannot_be_written_for_a_moment_loses_no_job(asking: Asking) -> None:
    asking.decide("monday", await asking.propose("monday"))
    with full_disk() as failed:
        await failed.wait()
        await asyncio.sleep(0)
        assert asking.node.sessions.get("monday").state == "HELD"
    assert await asking.decided("monday") == "ACCEPTED"


async def test_a_start_that_cannot_be_written_starts_nothing_and_can_be_asked_again(asking: Asking) -> None:
    asking.decide("monday", await asking.propose("monday"))
    await asking.decided("monday")
    with full_disk(), pytest.raises(LedgerUnavailable, match="this step released nothing and charged nothing"):
        await asking.node.sessions.start("monday")
    assert asking.node.sessions.get("monday").state == "ACCEPTED"
    assert (await asking.node.sessions.start("monday")).state == "RUNNING"


async def test_who_watches_hears_of_an_end_that_cannot_be_written(asking: Asking) -> None:
    with full_disk():
        await asking.propose("in-no-time", approval_s=1e-6)
        assert await last_event(asking, "in-no-time") == (pb.REFUSED, "POLICY_REFUSED")
        await asking.propose("cancelled")
        await asking.node.sessions.cancel("cancelled")
        assert await last_event(asking, "cancelled") == (pb.ENDED, "CANCELLED")


@pytest.mark.parametrize(
    ("fails", "end"),
    [
        (None, (pb.DONE, "")),
        (LedgerUnavailable("full"), (pb.FAILED, "LEDGER_UNAVAILABLE")),
    ],
)
async def test_who_watches_hears_how_a_run_ended_that_cannot_be_written(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, fails: Exception | None, end: tuple[int, int]
) -> None:
    """The report states that the run is done: its answers have left, and were charged."""

    async def run(_session: object) -> dict[str, ParameterValue]:
        await failed.wait()
        if fails is not None:
            raise fails
        return {}

    async def shakes_hands(_session: object) -> None:
        failed.set()

    sessions = asking.node.sessions
    asking.decide("monday", await asking.propose("monday"))
    await asking.decided("monday")
    monkeypatch.setattr(sessions, "_take_snapshot", lambda _session: None)
    monkeypatch.setattr(sessions, "_handshake", shakes_hands)
    monkeypatch.setitem(
        sessions.admission.parts, "walr", dataclasses.replace(sessions.admission.parts["walr"], run=run)
    )
    failed = asyncio.Event()
    session = await sessions.start("monday")
    with full_disk() as tried, capture_logs() as logs:
        assert await last_event(asking, "monday") == end
        assert tried.is_set()
    assert session.state in ("DONE", "FAILED")
    assert asking.node.party.store.reader().session("monday").state == "RUNNING"
    assert "the end of a session could not be written" in [line["event"] for line in logs]


async def test_a_job_that_its_coordinator_cancelled(asking: Asking) -> None:
    await asking.propose("monday")
    await asking.node.sessions.cancel("monday")
    assert await last_event(asking, "monday") == (pb.ENDED, "CANCELLED")


async def test_watchers_who_go_hold_up_no_change(asking: Asking) -> None:
    """A call is cancelled when its coordinator leaves or the party stops, even while news arrives."""
    await asking.propose("monday")
    for turns in range(6):
        watchers = [asyncio.create_task(last_event(asking, "monday")) for _ in range(8)]
        for _ in range(3 + turns):
            await asyncio.sleep(0)
        asking.node.sessions.get("monday").changed.notify()
        for _ in range(turns):
            await asyncio.sleep(0)
        for _ in range(2):
            for watcher in watchers:
                watcher.cancel()
            await asyncio.sleep(0)
    stays = asyncio.create_task(last_event(asking, "monday"))
    await asking.node.sessions.cancel("monday")
    assert await stays == (pb.ENDED, "CANCELLED")


def digest_of(by: str = "coordinator", protocol: str = "walr", session: str = "s", **of_shop: str) -> str:
    asked = proposal(session)
    asked.protocol = protocol
    for field, value in of_shop.items():
        setattr(asked.members[0], field, value)
    return read_proposal(asked, by, read_proposed).digest


def test_whatever_an_operator_sees_is_in_the_digest() -> None:
    """A test above covers its parameters. An address is not in the digest: a party is the name in its certificate."""
    changes = ("by", "protocol", "session", "name", "role", "dataset")
    digests = {digest_of(), *(digest_of(**{change: "other"}) for change in changes)}
    assert len(digests) == 1 + len(changes)
    assert digest_of(address="other") == digest_of()


# --- who sits at the terminal --------------------------------------------------------------------------


async def test_who_sees_the_job_may_say_yes_to_what_he_sees(asking: Asking) -> None:
    digest = await asking.propose("monday")
    console = Console(file=io.StringIO(), width=400)
    questions: list[str] = []

    def answer(question: str) -> bool:
        questions.append(question)
        assert digest in console.file.getvalue()  # shown before it is asked
        return len(questions) > 1

    for state in ("HELD", "ACCEPTED"):
        operator.approve_shown(asking.node.settings, asking.file, "monday", console, answer).show(console)
        assert asking.node.party.store.reader().session("monday").state == state
        told = {"HELD": "monday: not approved, and still waiting", "ACCEPTED": "monday: approved"}
        assert console.file.getvalue().splitlines()[-1] == told[state]
    assert questions == [f"Approve {digest}?"] * 2


async def test_a_job_that_is_swapped_while_the_operator_thinks(asking: Asking) -> None:
    await asking.propose("monday", epsilon=0.5)
    other = "0" * 32

    def swapped(_question: str) -> bool:
        asking.change(f"UPDATE sessions SET digest = '{other}'")
        return True

    console = Console(file=io.StringIO())
    with pytest.raises(ConfigError, match="is not the digest"):
        operator.approve_shown(asking.node.settings, asking.file, "monday", console, swapped)


async def test_nobody_at_the_terminal(asking: Asking) -> None:
    await asking.propose("monday")
    console = Console(file=io.StringIO(), width=400)
    with pytest.raises(ConfigError, match="the digest is missing"):
        operator.approve_shown(asking.node.settings, asking.file, "monday", console, None)
    with pytest.raises(ConfigError, match="tuesday is not a job that waits"):
        operator.approve_shown(asking.node.settings, asking.file, "tuesday", console, None)
