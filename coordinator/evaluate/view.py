"""The view of an evaluate job."""

from __future__ import annotations

from blindfit.coordinator.evaluate import preflight
from blindfit.coordinator.evaluate.report import figures_of, write
from blindfit.coordinator.measured.trust import GIVEN_UP
from blindfit.coordinator.view import View

VIEW = View(
    leaks=preflight.leaks, check_rows=preflight.check_rows, write=write, figures_of=figures_of, given_up=GIVEN_UP
)
