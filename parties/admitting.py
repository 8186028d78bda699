"""The admission of a party: its seats, and what a proposal passes before it has a session of it.

A party process has one, and `blindfit check` makes one of a party whose file is on this machine. So both refuse the
same jobs, in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from blindfit.parties.identity import connections as tls
from blindfit.parties.sessions.admission import Admission
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Part
from blindfit.parties.sessions.system import ChecksMembers, Seat, System
from blindfit.parties.systems import read_proposed, seats_of, system

MakePart = Callable[[System[Any], Seat[Any]], Part]


def part_of(its: System[Any], seat: Seat[Any]) -> Part:
    part = Part(seat.check, seat.run, its.tables(), its.wrong_roles)
    return replace(part, check_members=seat.check_members) if isinstance(seat, ChecksMembers) else part


def admission_of(party: Party, seats: Mapping[str, Seat[Any]], make_part: MakePart = part_of) -> Admission:
    """
    Args:
        seats: by system, as `seats_of` opens them.
        make_part: what the party does in a system, from its seat.
    """
    return Admission(
        party.settings,
        party.store,
        party.limits,
        lambda peer, address: tls.open_channel(party.identity, peer, address, party.limits),
        read_proposed,
        {name: make_part(system(name), seat) for name, seat in seats.items()},
        party.snapshots,
        lambda: party.receipts,
        party.pulse,
    )


def open_admission(party: Party) -> Admission:
    """Open the seats of a party that serves nobody."""
    return admission_of(party, seats_of(party))
