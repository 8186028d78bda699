"""Of a job that several parties ended, the party is named that ended it first, in whatever order they are heard."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from blindfit.algorithms.errors import BlindfitError, PeerAborted, PeerUnreachable
from blindfit.coordinator.session import JobSession

BANK_STOPPED = PeerAborted(culprit="bank", code="CANCELLED")
PASSED_ON = PeerAborted(culprit="shop-a", code="CANCELLED")  # whose abort came before the bank's
LOST = PeerUnreachable(peer="bank", address="a:1", step="Watch", reason="the connection was lost")


async def named(ends: list[tuple[str, BlindfitError]]) -> BlindfitError:
    """What a coordinator says that hears these one after the other."""

    class Hearing(JobSession):
        async def _watch(self, name: str) -> None:
            names = [party for party, _ in ends]
            await asyncio.sleep(0.01 * names.index(name))
            raise dict(ends)[name]

    session = Hearing(None, {party: "a:1" for party, _ in ends}, None, id="s")  # type: ignore[arg-type]
    with pytest.raises(BlindfitError) as raised:
        await session._watch_all()
    return raised.value


ENDS = [("bank", BANK_STOPPED), ("shop-a", BANK_STOPPED), ("shop-b", PASSED_ON), ("notary", PASSED_ON)]


@pytest.mark.parametrize(
    "ends", list(itertools.permutations(ENDS)), ids=lambda ends: "-".join(party for party, _ in ends)
)
async def test_who_was_stopped_is_named_whoever_is_heard_first(ends: tuple[tuple[str, BlindfitError], ...]) -> None:
    assert str(await named(list(ends))) == "bank ended the session: CANCELLED"


@pytest.mark.parametrize("ends", list(itertools.permutations([("bank", LOST), *ENDS[1:]])))
async def test_who_has_a_reason_of_its_own_is_named(ends: tuple[tuple[str, BlindfitError], ...]) -> None:
    assert await named(list(ends)) is LOST


async def test_two_that_name_each_other_are_no_riddle() -> None:
    other = PeerAborted(culprit="shop-b", code="CANCELLED")
    error = await named([("shop-b", PASSED_ON), ("shop-a", other)])
    assert error in (PASSED_ON, other)
