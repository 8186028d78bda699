"""The last line of `blindfit check` says whether a run would be refused."""

from __future__ import annotations

from typing import get_args

from blindfit.coordinator.preflight.findings import Finding, Level, verdict_of
from tests.each_case import each_case


@each_case(
    "refusals, warnings, verdict",
    [
        (0, 0, "nothing here refuses this job"),
        (0, 2, "nothing here refuses this job; 2 warnings"),
        (1, 0, "1 line above would refuse this job"),
        (2, 1, "2 lines above would refuse this job; 1 warning"),
    ],
)
def test_the_verdict_counts_refusals_and_warnings(refusals: int, warnings: int, verdict: str) -> None:
    levels: list[Level] = [*get_args(Level)[:2], *["refuses"] * refusals, *["warning"] * warnings]
    assert verdict_of([Finding(level, "bank", "text") for level in levels]) == verdict
