"""Choose the way to trust measurement servers: from the request at a server, from the job elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blindfit.algorithms.protocols.walr.blocks import Block
from blindfit.parties.measurement.call import Call
from blindfit.parties.measurement.trust import ENCRYPTED_ROWS, SHARED_ROWS, TRUSTED, TWO_SERVERS, SumJob, Trust
from blindfit.parties.measurement.ways import encrypted_rows, several_parties, shared_rows, trusted, two_servers
from blindfit.parties.measurement.ways.way import AtActiveParty, AtServer
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session

AT_ACTIVE_PARTY: Mapping[Trust, type[AtActiveParty]] = {
    TRUSTED: trusted.AtActiveParty,
    TWO_SERVERS: two_servers.AtActiveParty,
    ENCRYPTED_ROWS: encrypted_rows.AtActiveParty,
    SHARED_ROWS: shared_rows.AtActiveParty,
}


def way_at_server(call: Call) -> AtServer:
    """Return the way of one call. Its `check` refuses a request that contradicts the dataset or the session."""
    request = call.request
    if call.dataset.is_of_shares:
        return shared_rows.AtServer(call) if request.in_shares else two_servers.AtServer(call)
    if request.key:
        return encrypted_rows.AtServer(call)
    if request.blocks and not request.in_shares:
        return several_parties.AtServer(call)
    return trusted.AtServer(call)


async def way_at_active_party(
    party: Party, session: Session[SumJob], servers: Sequence[str], blocks: Sequence[Block]
) -> AtActiveParty:
    if blocks:
        return several_parties.AtActiveParty(session, servers, blocks)
    return await AT_ACTIVE_PARTY[session.job.trust].open(party, session, servers)


def meet(session: Session[Any]) -> two_servers.Meeting | None:
    return session.once(shared_rows.meet if session.job.shares_rows else two_servers.meet)
