"""One session at one party: the objects that its role uses, and the abilities of a party in a system."""

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
    """One job at this party. Its role uses `job`, `members` and `channel`."""

    id: str
    proposed_by: str
    members: Mapping[str, Member]
    parameters: Mapping[str, ParameterValue]
    job: J_co
    channel: ExchangeChannel
    me: Member
    snapshot: Snapshot | None = None  # snapshot of its own dataset; a key node has no dataset
    snapshots: Mapping[str, str] = field(default_factory=dict)  # snapshot of every member with a dataset, by name
    state: State = State.NEW
    error: BaseException | None = None
    summary: dict[str, ParameterValue] = field(default_factory=dict)
    progress: pb.Progress | None = None
    changed: Signal = field(default_factory=Signal)  # signals a change of its state
    task: asyncio.Task[None] | None = None
    operator: asyncio.Task[None] | None = None  # waits for the operator's cancellation
    receipt: SignedReceipt = (b"", b"")  # for its charge here; the coordinator keeps it
    start_by: float = 0.0  # time by which its coordinator must start it, by the loop's clock
    patience_s: float = 0.0  # time that the coordinator has for that, from its last call
    watchers: int = 0  # number of calls by which its coordinator watches it
    began: float = 0.0  # time of its start, by the same clock
    work: Work = field(default_factory=Work)
    _shared: dict[Callable[..., Any], Any] = field(default_factory=dict)

    @property
    def membership(self) -> dict[str, ParameterValue]:
        return membership(self.members.values(), self.proposed_by)

    @property
    def digest(self) -> str:
        """Digest of this session's own job, without regard to the job that was approved."""
        return digest_of(self.id, self.job.protocol, self.membership, self.parameters)

    def with_role(self, role: str) -> Member:
        return next(member for member in self.members.values() if member.role == role)

    @property
    def published(self) -> Snapshot:
        if self.snapshot is None:
            raise LocalProtocolError("a party without a dataset reads no snapshot", session=self.id)
        return self.snapshot

    @property
    def question(self) -> bytes:
        """Digest of everything that the outcome depends on, except random draws; it covers the members' snapshots."""
        return digest_of_question(self.job, self.members.values(), self.snapshots)

    @property
    def proposed_question(self) -> bytes:
        """The same digest without the snapshots, which a party can compute when the job is proposed."""
        return digest_of_question(self.job, self.members.values())

    def once(self, make: Callable[[Session[Any]], T]) -> T:
        """Return the result of `make`, made once for the session's role and the calls to its services.

        If the result is None, the next call makes it again.
        """
        if self._shared.get(make) is None:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made

    def forget_work(self) -> None:
        """Drop the work of an ended session. The session is remembered for a while, for parties that ask about its end.
        Its rows, keys and ciphertexts, to which its task's frames refer, are not kept.
        """
        self.task = None
        if self.error is not None:
            forget_frames(self.error)

    async def wait_for_change(self, max_s: float) -> None:
        """Return after a change, or after so long. It takes no lock: a caller that is cancelled leaves nothing
        locked.
        """
        state = self.state
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max_s):
                await self.changed.until(lambda: self.state != state)

    def report(self, step: str, done: int = 0, total: int = 0, unit: str = "", waiting_for: str = "") -> None:
        """Set the progress that the coordinator shows; the newest counts."""
        self.progress = pb.Progress(
            step=step, unit=unit, done=max(done, 0), total=max(total, 0), waiting_for=waiting_for
        )

    def waits(self, peer: str, message: str) -> None:
        """Report a wait for a peer's message. Progress that is counted stays visible until its end."""
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
    """A party's abilities in one system.

    Args:
        check_members: function that refuses errors in the other parties of a proposal; called after `check`.
        tables: messages that the members of a session send each other after the handshake.
        wrong_roles: function from the roles of all members of a job to the roles that it needs; "" if they are right.
    """

    check: Check
    run: Run
    tables: Sequence[Table] = ()
    wrong_roles: Callable[[Sequence[str]], str] = lambda _roles: ""
    check_members: CheckMembers = lambda _asked: None
