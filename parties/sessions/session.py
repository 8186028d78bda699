"""One session at one party: what its role works with, and what a party can do in a system."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from blindfit.algorithms.errors import LocalProtocolError, forget_frames
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols.table import Table
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.proposal import Member, Proposed, digest_of, digest_of_question, membership
from blindfit.parties.sessions.state import State
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.receipts import SignedReceipt
from blindfit.parties.wire.exchange import ExchangeChannel
from blindfit.parties.wire.link import Signal
from blindfit.parties.work.counted_threads import Work
from blindfit.protos import control_pb2 as pb

T = TypeVar("T")
J_co = TypeVar("J_co", bound=JobParameters, covariant=True)


@dataclass(repr=False)
class Session(Generic[J_co]):
    """One job at this party. `job`, `members` and `channel` are what its role works with."""

    id: str
    proposed_by: str
    members: Mapping[str, Member]
    parameters: Mapping[str, ParameterValue]
    job: J_co
    channel: ExchangeChannel
    me: Member
    snapshot: Snapshot | None = None  # of its own dataset; a key node has none
    snapshots: Mapping[str, str] = field(default_factory=dict)  # of every member that has a dataset, by name
    state: State = State.NEW
    error: BaseException | None = None
    summary: dict[str, ParameterValue] = field(default_factory=dict)
    progress: pb.Progress | None = None
    changed: Signal = field(default_factory=Signal)  # its state
    task: asyncio.Task[None] | None = None
    operator: asyncio.Task[None] | None = None  # waits for one who cancels
    receipt: SignedReceipt = (b"", b"")  # of what it was charged here; the coordinator keeps it
    start_by: float = 0.0  # its coordinator is to have started it, by the loop's clock
    patience_s: float = 0.0  # how long it may take to do so, from when it was heard of last
    watchers: int = 0  # calls by which its coordinator watches it
    began: float = 0.0  # when it started, by the same clock
    work: Work = field(default_factory=Work)
    _shared: dict[Callable[..., Any], Any] = field(default_factory=dict)

    @property
    def membership(self) -> dict[str, ParameterValue]:
        return membership(self.members.values(), self.proposed_by)

    @property
    def digest(self) -> str:
        """Of what this session does, whatever was approved."""
        return digest_of(self.id, self.job.protocol, self.membership, self.parameters)

    def with_role(self, role: str) -> Member:
        return next(member for member in self.members.values() if member.role == role)

    @property
    def published(self) -> Snapshot:
        if self.snapshot is None:
            raise LocalProtocolError("a party without a dataset reads none", session=self.id)
        return self.snapshot

    @property
    def question(self) -> bytes:
        """Return a digest of all that the outcome depends on but for what is drawn, the members' snapshots included."""
        return digest_of_question(self.job, self.members.values(), self.snapshots)

    @property
    def proposed_question(self) -> bytes:
        """Return the same digest without the snapshots, which a party knows as soon as the job is proposed."""
        return digest_of_question(self.job, self.members.values())

    def shared(self, make: Callable[[Session[Any]], T]) -> T:
        """Return what `make` makes, once for the session's seat and the calls to its services.

        What is None is asked for again the next time.
        """
        if self._shared.get(make) is None:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made

    def forget_work(self) -> None:
        """An ended session is remembered for a while, for who asks how it ended; not its rows, keys and ciphertexts,
        which the frames of its task hold."""
        self.task = None
        if self.error is not None:
            forget_frames(self.error)

    async def wait_for_change(self, max_s: float) -> None:
        """Return after it, or after so long. It takes no lock: one who is cancelled leaves nothing held."""
        state = self.state
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max_s):
                await self.changed.until(lambda: self.state != state)

    def report(self, step: str, done: int = 0, total: int = 0, unit: str = "", waiting_for: str = "") -> None:
        """What the coordinator shows; the newest counts."""
        self.progress = pb.Progress(
            step=step, unit=unit, done=max(done, 0), total=max(total, 0), waiting_for=waiting_for
        )

    def waits(self, peer: str, message: str) -> None:
        """For a peer's message; in the midst of something that is counted, that stays what is shown."""
        now = self.progress
        if now is not None and now.done < now.total:
            self.report(now.step, now.done, now.total, now.unit, waiting_for=peer)
        else:
            self.report(message, waiting_for=peer)


Check = Callable[[Any, Member], None]
CheckMembers = Callable[[Proposed], None]
Run = Callable[[Session[Any]], Awaitable[dict[str, ParameterValue]]]


@dataclass(frozen=True)
class Part:
    """What this party can do in one protocol.

    Args:
        check_members: refuses what the other parties of a proposal make wrong; called after `check`.
        tables: what the members of a session send each other once they have shaken hands.
        wrong_roles: of all members of a job -> which it needs; "" if these.
    """

    check: Check
    run: Run
    tables: Sequence[Table] = ()
    wrong_roles: Callable[[Sequence[str]], str] = lambda _roles: ""
    check_members: CheckMembers = lambda _asked: None
