"""One measurement server is trusted with the labels and reads the rows of the one party that holds columns."""

from __future__ import annotations

from blindfit.parties.measurement.ways import several_parties, way
from blindfit.parties.measurement.ways.way import AtActiveParty as AtActiveParty


class AtServer(way.AtServer):
    def check(self) -> None:
        if self.request.in_shares:
            self.call.refuse("in_shares", "its labels are not shares")
        several_parties.refuse_blocks(self.call)
