"""A study of faults: they happen at their moments, and a timeline records all parties and the job."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

from blindfit.algorithms.errors import BlindfitError, root_party
from blindfit.algorithms.rehearsal import with_stamp
from blindfit.coordinator.running.faults import Fault
from blindfit.coordinator.running.launcher import Launched, log_of
from blindfit.coordinator.running.network.relays import Relays
from blindfit.coordinator.running.progress import EPOCH
from blindfit.coordinator.terminal.wording import duration, plain
from blindfit.parties.job.tables import TimeoutSettings
from blindfit.parties.wire.limits import Limits
from blindfit.protos import control_pb2 as pb

STEPS_KEPT = 1000
STEPS_SHOWN = 8  # for each party after a fault; the rest is counted
SILENT_S = Limits().keepalive_time_s + Limits().keepalive_timeout_s  # until a connection is given up
WORDS_S = 2.0  # for a party to write how its session ended
ENDS = ("session is done", "session failed", "session is cancelled")  # events of a party's log


@dataclass(frozen=True)
class Entry:
    """One line of a timeline.

    Attributes:
        at_s: seconds since the job began.
        party: party of the entry; empty for the job.
        kind: "fault", "step" (action of a party), "said" (line of a party's log) or "job".
    """

    at_s: float
    party: str
    kind: str
    text: str


@dataclass
class Study:
    """The faults of one command, which may run a job several times: again after each restart of a party."""

    faults: Sequence[Fault]
    timeouts: TimeoutSettings
    say: Callable[[str], None] = lambda _line: None
    relays: Relays | None = None
    stamp: str = ""  # of a rehearsal
    happened: dict[Fault, float] = field(default_factory=dict)  # faults that happened, and the time of each
    sessions: list[str] = field(default_factory=list)
    blamed: str = ""  # party that the last failed session named as the cause
    epoch_begun: bool = False
    _entries: list[Entry] = field(default_factory=list)
    _began: float = field(default_factory=time.time)
    _launched: Launched | None = None
    _now: dict[str, str] = field(default_factory=dict)  # current action of each party
    _reported: set[str] = field(default_factory=set)  # steps other than epochs
    _steps: dict[str, int] = field(default_factory=dict)  # lines of steps of a party since the last fault
    _standing: dict[str, Fault] = field(default_factory=dict)  # faults that a time or the end of the job mends
    _timers: list[asyncio.TimerHandle] = field(default_factory=list)
    _restarted: list[str] = field(default_factory=list)  # parties restarted in this session

    async def run(self, work: Coroutine[Any, Any, None], session: str, launched: Launched) -> None:
        """Run a session in which faults happen."""
        self._begin(session, launched)
        try:
            self._set_timers()
            await work
        finally:
            work.close()
            for timer in self._timers:
                timer.cancel()
            self._timers.clear()
            for party in list(self._standing):
                self._mend(party, "the job has ended")

    def _begin(self, session: str, launched: Launched) -> None:
        self.sessions.append(session)
        self.epoch_begun, self._launched, self._restarted = False, launched, []
        self._now.clear()
        self._note("", "job", f"session {session} begins" if len(self.sessions) == 1 else f"goes on as {session}")

    def _set_timers(self) -> None:
        loop = asyncio.get_running_loop()
        for fault in self._waiting():
            if fault.after_s is None:
                continue
            if (left_s := fault.after_s - self._count_seconds()) > 0:
                self._timers.append(loop.call_later(left_s, self._strike, fault))
            else:  # before the first call of the session
                self._strike(fault)

    # --- what the parties report

    def hear(self, party: str, event: pb.Event) -> None:
        step = plain(event.progress.step)
        if not step:
            return
        if EPOCH.match(step):
            self.epoch_begun = True
        elif len(self._reported) < STEPS_KEPT:
            self._reported.add(step)
        waiting = f" (waits for {plain(event.progress.waiting_for)})" if event.progress.waiting_for else ""
        if self._now.get(party) != step + waiting:
            self._now[party] = step + waiting
            self._note_step(party)
        for fault in self._waiting():
            if fault.is_at(step):
                self._strike(fault)

    def _note_step(self, party: str) -> None:
        if self.happened:
            self._steps[party] = count = self._steps.get(party, 0) + 1
            if count <= STEPS_SHOWN:
                self._note(party, "step", self._now[party])

    def _count_the_rest(self) -> None:
        for party, count in self._steps.items():
            if count > STEPS_SHOWN:
                self._note(party, "step", f"and {count - STEPS_SHOWN:,} more steps, now: {self._now.get(party, '')}")
        self._steps.clear()

    # --- what happens to them

    def _waiting(self) -> list[Fault]:
        return [fault for fault in self.faults if fault not in self.happened]

    def _strike(self, fault: Fault) -> None:
        if fault in self.happened or self._launched is None:
            return
        self._count_the_rest()
        self.happened[fault] = self._count_seconds()
        party, do = fault.party, {"kill": self._kill, "restart": self._kill, "freeze": self._freeze, "cut": self._cut}
        do[fault.verb](fault)
        for name, doing in self._now.items():
            self._note(name, "step", f"at that moment: {doing}")
        if fault.for_s is not None:
            self._timers.append(
                asyncio.get_running_loop().call_later(fault.for_s, self._mend, party, "its time is over")
            )

    def _kill(self, fault: Fault) -> None:
        self._signal(fault.party, SIGKILL)
        if self._launched is not None:
            self._launched.struck[fault.party] = f'this command killed it, as the fault "{fault.text}" asks'
        self._restarted += [fault.party] if fault.verb == "restart" else []
        self._note_fault(fault, "is killed (SIGKILL)")

    def _freeze(self, fault: Fault) -> None:
        self._signal(fault.party, SIGSTOP)
        self._standing[fault.party] = fault
        limit_s = min(self.timeouts.step_s, SILENT_S)
        self._note_fault(fault, f"is frozen (SIGSTOP) {_until(fault)}; the job ends if it is silent for {limit_s:g} s")

    def _cut(self, fault: Fault) -> None:
        if self.relays is not None:
            self.relays.cut(fault.party)
        self._standing[fault.party] = fault
        limit_s = min(self.timeouts.step_s, SILENT_S + self.timeouts.reconnect_s)
        self._note_fault(
            fault, f"is cut off from all other parties {_until(fault)}; the job ends if that lasts {limit_s:g} s"
        )

    def _mend(self, party: str, why: str) -> None:
        fault = self._standing.pop(party, None)
        if fault is None:
            return
        if fault.verb == "freeze":
            self._signal(party, SIGCONT)
            self._note_fault(fault, f"goes on (SIGCONT): {why}")
        elif self.relays is not None:
            self.relays.mend(party, still_cut=[name for name, other in self._standing.items() if other.verb == "cut"])
            self._note_fault(fault, f"can be reached again: {why}")

    def _signal(self, party: str, number: int) -> None:
        if self._launched is not None:
            self._launched.processes[party].send_signal(number)

    # --- how it ends

    def end(self, error: BaseException | None, state: str) -> None:
        """Note how a session ended, and what each party wrote about the end.

        Args:
            error: error of the end; None if it ended well.
            state: last state of the session.
        """
        self._count_the_rest()
        for party in self._launched.processes if self._launched is not None else ():
            self._read_log(party)
        named = ""
        if cause := find_cause(error):
            self.blamed, named = cause, f"; names {cause} as the cause"
        self._note("", "job", "is done" if error is None else f"{state.lower()}: {error_text(error)}{named}")

    def take_restarts(self) -> list[str]:
        """Return the parties to start again after the session that has ended."""
        taken, self._restarted = self._restarted, []
        return taken

    def start_again(self, parties: Sequence[str], launched: Launched) -> Launched:
        """Start parties again, and return the addresses of all parties."""
        for party in parties:
            launched = launched.start_again(party)
            self._note(party, "fault", "is started again")
        return launched if self.relays is None else replace(launched, routes=self.relays.open(launched.addresses))

    def _read_log(self, party: str) -> None:
        if self._launched is None:
            return
        session, give_up = self.sessions[-1], time.monotonic() + WORDS_S
        while True:
            records = [record for record in log_of(self._launched.out, party) if record.get("session") == session]
            has_begun = any(record.get("event") == "session starts" for record in records)
            is_over = any(record.get("event") in ENDS for record in records) or not has_begun
            if is_over or self._launched.processes[party].poll() is not None or time.monotonic() > give_up:
                break
            time.sleep(0.02)
        for record in records:
            if text := _words_of(record):
                self._entries.append(Entry(self._count_seconds(_time_of(record)), party, "said", text))
        if self._launched.processes[party].poll() is not None:
            self._note(party, "said", "nothing: its process has ended")
        elif has_begun and not is_over:
            self._note(party, "said", "nothing about the end")

    @property
    def never(self) -> list[str]:
        """Return a line for each fault that never happened, once the job has ended."""
        return [
            f'the fault "{fault.text}" never happened: {fault.explain_absence(self._reported)}'
            for fault in self._waiting()
        ]

    @property
    def timeline(self) -> list[Entry]:
        return sorted(self._entries, key=lambda entry: entry.at_s)

    def document(self) -> dict[str, Any]:
        """Return the study for a report or a file."""
        content = {
            "asked": [{"fault": fault.text, "at_s": self.happened.get(fault)} for fault in self.faults],
            "never": self.never,
            "sessions": list(self.sessions),
            "cause": self.blamed,
            "timeline": [asdict(entry) for entry in self.timeline],
        }
        return with_stamp(content, self.stamp)

    # --- the lines

    def _note_fault(self, fault: Fault, text: str) -> None:
        self._note(fault.party, "fault", text)
        self.say(f"  fault: {fault.party} {text}")

    def _note(self, party: str, kind: str, text: str) -> None:
        self._entries.append(Entry(self._count_seconds(), party, kind, text))

    def _count_seconds(self, now: float | None = None) -> float:
        return round((time.time() if now is None else now) - self._began, 3)


def _until(fault: Fault) -> str:
    return "until the job ends" if fault.for_s is None else f"for {duration(fault.for_s)}"


def find_cause(error: BaseException | None) -> str:
    """Return the party that an error names as the cause of the end of a job; empty if it names no party."""
    if not isinstance(error, BlindfitError):
        return ""
    named = (getattr(error, name, "") for name in ("peer", "culprit", "party"))
    return root_party(error) or next((str(party) for party in named if party), "")


def error_text(error: BaseException) -> str:
    return plain(error.message if isinstance(error, BlindfitError) else str(error) or type(error).__name__)


def _time_of(record: Mapping[str, Any]) -> float | None:
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    return None


def _words_of(record: Mapping[str, Any]) -> str:
    """Return the text of a log record about the session; empty for a routine record."""
    event = str(record.get("event"))
    if event == "training goes on":
        epoch = record.get("after_epoch")
        return f"goes on after epoch {epoch}" if epoch else "goes on from its first epoch"
    if event not in ENDS and record.get("level") not in ("warning", "error"):
        return ""
    return plain("; ".join(_parts_of(event, record)))


def _parts_of(event: str, record: Mapping[str, Any]) -> Iterator[str]:
    yield f"{event}: {record['reason']}" if record.get("reason") else event
    if record.get("waited_for"):
        yield f"waited for {record['waited_for']}"
    if record.get("blamed"):
        yield f"names {record['blamed']} as the cause"
