"""How many rows of a person count, of whose labels a WALR release hides all: its noise grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import join_names


@dataclass(frozen=True)
class RowsOfUnit:
    """
    Args:
        of_person: the unit is a person, not a row.
        assumed: what was taken for granted, in words that begin with "if"; none where it is known.
    """

    count: int
    of_person: bool
    assumed: str = ""

    @classmethod
    def of(cls, job: Job[Any], here: Sequence[PartyHere]) -> RowsOfUnit:
        """As the job says; else as the servers' datasets declare it, where their files are here."""
        if (asked := job.parameters.required_privacy.max_rows_per_person) is not None:
            return cls(asked, of_person=True)
        servers = job.with_role("measurement")
        found = [p.settings.datasets.get(p.dataset_name) for p in here if p.name in servers]
        datasets = [dataset for dataset in found if dataset is not None]
        if not datasets:
            unknown = (
                f"if {join_names(servers)} count{'s' if len(servers) == 1 else ''} no more than one row of a person"
            )
            return cls(1, of_person=False, assumed=unknown)
        declared = [dataset.max_rows_per_person for dataset in datasets if dataset.person]
        return cls(max(declared, default=1), of_person=bool(declared))

    @property
    def caveat(self) -> str:
        """To put after a number that hangs on it."""
        return f", {self.assumed}" if self.assumed else ""
