"""What others see of a run, beside the messages of its protocol."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SAME = "tests/interference/test_neighbours.py::test_others_see_the_same"

MUTANTS = (
    Mutant(
        "figures-on-labels-told-under-label-dp",
        (12, 25),
        "parties/taylor/report.py",
        'evaluation = (not report["privacy"] and report["evaluation"]) or {}',
        'evaluation = report["evaluation"] or {}',
        (f"{SAME}[taylor-label-dp-a-label-coordinator]",),
    ),
    Mutant(
        "who-is-in-the-table-told-by-what-counts",
        (25,),
        "parties/measurement/label_index.py",
        "kept = self._within_cap(joined.person)",
        "kept = self._within_cap(joined.person) & joined.known",
        (f"{SAME}[walr-unknown-a-row-shop]",),
    ),
)
