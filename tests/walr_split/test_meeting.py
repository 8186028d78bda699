"""Messages between two servers, in any order, and for any number of calls by the active party."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import CannotAnswer, PeerTimeout, PolicyRefused
from blindfit.algorithms.protocols.walr.two_servers import Agreement, Counted
from blindfit.parties.measurement.ways.two_servers import Meeting, meet
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import State

MINE = Agreement("split", b"ids", b"request", "")


class Wire:
    """A session's wire: the other server sends these messages, after this many timeouts."""

    def __init__(self, says: list[Any], timeouts: int = 0) -> None:
        self.says, self.timeouts, self.sent = says, timeouts, []

    async def wait_for(self, done: Any, peer: str, step: str, timeout_s: float) -> None:
        await done

    async def send(self, to: str, message: Any) -> None:
        self.sent.append(message)

    async def receive(self, sender: str, kind: type) -> Any:
        await asyncio.sleep(0)
        if self.timeouts:
            self.timeouts -= 1
            raise PeerTimeout(peer=sender, step=kind.__name__, timeout_s=1.0)
        return self.says.pop(0)


def meeting(wire: Wire, session_s: float = 60.0) -> Meeting:
    timeouts = SimpleNamespace(step_s=0.0, session_s=session_s)
    members = {name: SimpleNamespace(name=name, role="measurement") for name in ("east", "west")}
    session: Any = SimpleNamespace(
        channel=wire,
        job=SimpleNamespace(timeouts=timeouts),
        members=members,
        me=members["east"],
        state=State.RUNNING,
        _shared={},
    )
    made = Session.once(session, meet)
    assert made is not None
    assert Session.once(session, meet) is made
    made.begin()
    return made


def test_each_thing_is_said_once_however_often_the_consumer_calls() -> None:
    async def calls() -> list[Any]:
        wire = Wire([MINE, Counted(b"rows")])
        made = meeting(wire)
        cut = asyncio.create_task(made.agree(MINE))
        await asyncio.sleep(0)
        cut.cancel()
        for _ in range(3):
            await made.agree(MINE)
            await made.compare(Counted(b"rows"))
        await made.end()
        return wire.sent

    assert asyncio.run(calls()) == [MINE, Counted(b"rows")]


def test_a_second_question_is_refused_and_nothing_is_sent() -> None:
    async def calls() -> list[Any]:
        wire = Wire([MINE])
        made = meeting(wire)
        await made.agree(MINE)
        with pytest.raises(PolicyRefused, match="something else before"):
            await made.agree(Agreement("split", b"ids", b"another request", ""))
        return wire.sent

    assert asyncio.run(calls()) == [MINE]


def test_other_rows_that_counted_are_refused() -> None:
    async def calls() -> None:
        with pytest.raises(CannotAnswer):
            await meeting(Wire([Counted(b"other rows")])).compare(Counted(b"rows"))

    asyncio.run(calls())


@pytest.mark.parametrize(("mine", "waits"), [(Counted(b"rows"), True), (MINE, False)])
def test_the_rows_of_the_other_server_may_take_long_its_word_on_the_request_may_not(mine: Any, waits: bool) -> None:
    async def calls() -> Any:
        made = meeting(Wire([mine], timeouts=3))
        return await made._exchange(mine)

    if waits:
        assert asyncio.run(calls()) == mine
    else:
        with pytest.raises(PeerTimeout):
            asyncio.run(calls())


def test_patience_ends_with_the_session() -> None:
    async def calls() -> None:
        with pytest.raises(PeerTimeout):
            await meeting(Wire([], timeouts=1), session_s=0.0).compare(Counted(b"rows"))

    asyncio.run(calls())


def test_nothing_is_sent_before_the_session_has_begun() -> None:
    async def calls() -> list[Any]:
        wire = Wire([MINE])
        made = meeting(wire)
        made._begun.clear()
        asking = asyncio.create_task(made.agree(MINE))
        for _ in range(5):
            await asyncio.sleep(0)
        before = list(wire.sent)
        asking.cancel()
        made.cancel()
        return before

    assert asyncio.run(calls()) == []


@pytest.mark.parametrize(
    "changes", [{"state": State.ACCEPTED}, {"members": {"east": SimpleNamespace(name="east", role="measurement")}}]
)
def test_a_session_that_does_not_run_or_has_one_server_has_no_meeting_yet(changes: dict[str, Any]) -> None:
    members = {name: SimpleNamespace(name=name, role="measurement") for name in ("east", "west")}
    about: dict[str, Any] = {"members": members, "me": members["east"], "state": State.RUNNING, "_shared": {}}
    session: Any = SimpleNamespace(**about | changes | {"me": (changes.get("members") or members)["east"]})
    assert Session.once(session, meet) is None
    session.__dict__.update(about)
    made = Session.once(session, meet)
    assert isinstance(made, Meeting)
    session.state = State.DONE
    assert Session.once(session, meet) is made
