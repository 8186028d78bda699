"""The states of a session at one party, and its transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from blindfit.algorithms.errors import LocalProtocolError


class State(StrEnum):
    """State of a session. The party's database and control.proto use these names; control.proto lacks the first."""

    NEW = ""
    HELD = "HELD"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    REFUSED = "REFUSED"
    ENDED = "ENDED"


Step = Literal["propose", "hold", "approve", "refuse", "start", "finish", "fail", "cancel", "lose"]
ENDS = frozenset({State.DONE, State.FAILED, State.REFUSED, State.ENDED})
TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.NEW, "propose"): State.ACCEPTED,  # if policy.approve = "auto"
    (State.NEW, "hold"): State.HELD,  # if policy.approve = "ask"
    (State.HELD, "approve"): State.ACCEPTED,  # by the operator, `blindfit approve`, with the job's digest
    (State.HELD, "refuse"): State.REFUSED,  # by the operator, or by time
    (State.ACCEPTED, "start"): State.RUNNING,  # by the coordinator
    (State.RUNNING, "finish"): State.DONE,
    (State.RUNNING, "fail"): State.FAILED,
    # by the coordinator, or by the operator, `blindfit cancel`
    **{(state, "cancel"): State.ENDED for state in (State.HELD, State.ACCEPTED, State.RUNNING)},
    # by a new process of the party: the memory of the process before it is gone
    **{(state, "lose"): State.FAILED for state in (State.HELD, State.ACCEPTED, State.RUNNING)},
}


def next_state(state: State, step: Step, session: str) -> State:
    """Return the next state. Raise LocalProtocolError if the table has no such line."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise LocalProtocolError(f"a session that is {state or 'new'} cannot {step}", session=session) from None
