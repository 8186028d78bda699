"""Events that a coordinator sees while it watches a session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from blindfit.algorithms.errors import PolicyRefused
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import ENDS, State
from blindfit.parties.store.receipts import SignedReceipt
from blindfit.parties.wire import codec, error_codes
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2
from blindfit.protos.measurement_pb2 import SignedReceipt as SignedReceiptMessage

PROGRESS_EVERY_S = 0.1


async def watch(session: Session[JobParameters]) -> AsyncIterator[pb.Event]:
    """Yield events until the session ends: every change of state, and the newest progress from time to time."""
    shown: tuple[State, pb.Progress | None] = (State.NEW, None)
    given: SignedReceipt = (b"", b"")
    while True:
        state, progress, receipt = session.state, session.progress, session.receipt
        if state in ENDS:
            yield _last_event(session)
            return
        if (state, progress) != shown or receipt != given:
            # At once, not at the end: a charge stays a charge, in any end of the session.
            yield pb.Event(
                state=state_to_pb(state), progress=progress, receipt=_receipt(receipt if receipt != given else None)
            )
            shown, given = (state, progress), receipt
        await session.wait_for_change(PROGRESS_EVERY_S)


def state_to_pb(state: State) -> pb.SessionState:
    return cast(pb.SessionState, pb.SessionState.Value(state))


def _last_event(session: Session[JobParameters]) -> pb.Event:
    state, receipt = state_to_pb(session.state), _receipt(session.receipt)
    if session.state is State.DONE:
        return pb.Event(state=state, summary=codec.parameters_to_pb(session.summary), receipt=receipt)
    if session.error is not None:
        return pb.Event(state=state, error=error_codes.status_of(session.error), receipt=receipt)
    if session.state is State.REFUSED:
        refused = PolicyRefused(party=session.me.name, field="policy.approve", reason="its operator did not approve it")
        return pb.Event(state=state, error=error_codes.status_of(refused), receipt=receipt)
    return pb.Event(state=state, error=error_codes.status_of_code(errors_pb2.CANCELLED), receipt=receipt)


def _receipt(receipt: SignedReceipt | None) -> SignedReceiptMessage | None:
    if receipt is None or not receipt[0]:
        return None
    return SignedReceiptMessage(statement=receipt[0], signature=receipt[1])
