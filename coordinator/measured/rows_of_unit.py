"""The number of a person's rows that count. A WALR release hides the labels of all, so its noise grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import join_names


@dataclass(frozen=True)
class RowsOfUnit:
    """Number of rows in the protected unit.

    Args:
        of_person: True if the unit is a person, False if it is a row.
        assumed: assumption, in words that begin with "if"; empty if the number is known.
    """

    count: int
    of_person: bool
    assumed: str = ""

    @classmethod
    def of(cls, job: Job[Any], here: Sequence[PartyHere]) -> RowsOfUnit:
        """Return the number from the job; else from the servers' datasets, if their files are here."""
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
        """Text to put after a number that depends on it."""
        return f", {self.assumed}" if self.assumed else ""
