"""If several parties ended a job, the party that ended it first is named, for any order in which they report."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError, PeerAborted, PeerTimeout, PeerUnreachable
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.running import launcher
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity.identity import Identity
from blindfit.parties.wire.waits import Report
from tests.certificates import demo_authority, make_identity

BANK_STOPPED = PeerAborted(culprit="bank", code="CANCELLED")
PASSED_ON = PeerAborted(culprit="shop-a", code="CANCELLED")  # the abort of shop-a came before the bank's
LOST = PeerUnreachable(peer="bank", address="a:1", step="Watch", reason="the connection was lost")


PARTIES = {
    "bank": {"role": "active", "dataset": "rows"},
    "shop-a": {"role": "passive", "dataset": "rows"},
    "shop-b": {"role": "passive", "dataset": "rows"},
    "notary": {"role": "key-node"},
}
Ends = Sequence[tuple[str, BlindfitError]]


class Hearing(JobSession):
    """A coordinator that receives these ends one after the other."""

    def hear(self, ends: Ends) -> None:
        self._ends = dict(ends)
        self.addresses = dict.fromkeys(self._ends, "a:1")

    async def _ask(self, name: str) -> Report:
        return Report(has_ended=True)

    async def _watch(self, name: str) -> None:
        await asyncio.sleep(0.01 * list(self._ends).index(name))
        raise self._ends[name]


async def named(ends: Ends, own: Identity) -> BlindfitError:
    session = Hearing(read_job({"protocol": "taylor", "parties": PARTIES}), {}, own)
    session.hear(ends)
    with pytest.raises(BlindfitError) as raised:
        await session._watch_all()
    return raised.value


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return make_identity(demo_authority(tmp_path_factory.mktemp("root-cause")), "coordinator")


ENDS = [("bank", BANK_STOPPED), ("shop-a", BANK_STOPPED), ("shop-b", PASSED_ON), ("notary", PASSED_ON)]


@pytest.mark.parametrize(
    "ends", list(itertools.permutations(ENDS)), ids=lambda ends: "-".join(party for party, _ in ends)
)
async def test_who_was_stopped_is_named_whoever_is_heard_first(ends: Ends, own: Identity) -> None:
    assert (await named(ends, own)).message == "bank ended the session: CANCELLED"


@pytest.mark.parametrize("ends", list(itertools.permutations([("bank", LOST), *ENDS[1:]])))
async def test_who_has_a_reason_of_its_own_is_named(ends: Ends, own: Identity) -> None:
    assert await named(ends, own) is LOST


async def test_two_that_name_each_other_are_no_riddle(own: Identity) -> None:
    other = PeerAborted(culprit="shop-b", code="CANCELLED")
    error = await named([("shop-b", PASSED_ON), ("shop-a", other)], own)
    assert error in (PASSED_ON, other)


TOLD = PeerAborted(culprit="shop-b", code="it could not accept rows: are longer than the norm bound", step="MaskedRows")
# The notice of the bank's end, which answered it.
ECHO = PeerAborted(culprit="bank", code="PEER_ABORTED", step="MaskedRows")


@pytest.mark.parametrize(
    "ends", list(itertools.permutations([("bank", TOLD), ("shop-a", ECHO), ("shop-b", ECHO), ("notary", ECHO)]))
)
async def test_of_two_that_name_each_other_the_one_with_a_reason_is_named(ends: Ends, own: Identity) -> None:
    """A call gives the bank the reason; the others learn only that the bank ended at that step."""
    assert await named(ends, own) is TOLD


FOUND = PeerAborted(culprit="shop-a", code="it could not accept rows: are longer than the norm bound", step="Rows")
HEARD = PeerAborted(culprit="shop-a", code="MALFORMED_MESSAGE", step="Rows")
SECOND = PeerAborted(culprit="bank", code="PEER_ABORTED", step="Rows", lost="shop-a")


@pytest.mark.parametrize(
    "ends", list(itertools.permutations([("shop-a", FOUND), ("bank", HEARD), ("shop-b", SECOND), ("notary", SECOND)]))
)
async def test_who_found_a_fault_says_which_however_many_pass_its_end_on(ends: Ends, own: Identity) -> None:
    assert await named(ends, own) is FOUND


SILENT = PeerTimeout(peer="notary", step="Keys", timeout_s=60, found="silent", by="bank")
BEHIND = PeerTimeout(peer="notary", step="Keys", timeout_s=60, found="silent", through=("bank",), by="shop-a")
GAVE_UP = PeerAborted(
    culprit="bank", code="PEER_TIMEOUT", step="Keys", lost="notary"
)  # the key node receives this when it wakes


@pytest.mark.parametrize(
    "ends",
    list(itertools.permutations([("bank", SILENT), ("shop-a", BEHIND), ("shop-b", BEHIND), ("notary", GAVE_UP)])),
)
async def test_of_a_party_that_woke_up_the_others_say_what_they_waited_for(ends: Ends, own: Identity) -> None:
    assert await named(ends, own) in (SILENT, BEHIND)


@pytest.mark.parametrize("ends", list(itertools.permutations([("bank", SILENT), ("shop-a", LOST), ("shop-b", LOST)])))
async def test_of_several_that_blame_others_the_most_count(ends: Ends, own: Identity) -> None:
    assert await named(ends, own) is LOST


def test_a_reason_is_found_in_a_log_that_a_crash_has_cut(tmp_path: Path) -> None:
    record = {"error": "DataError", "reason": "labels.csv: row 3 has no label", "hint": "mend it"}
    (tmp_path / "meter").mkdir()
    (tmp_path / "meter" / launcher.LOG).write_text(f'{json.dumps(record)}\n{{"error": "DataError", "rea')
    assert launcher.reason_in_log(tmp_path, "meter", "DataError") == (record["reason"], record["hint"])
    assert launcher.reason_in_log(tmp_path, "shop", "DataError") == ("", "")
