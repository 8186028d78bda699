"""The view of a predict job."""

from __future__ import annotations

from functools import partial

from blindfit.coordinator.predict import preflight, statement
from blindfit.coordinator.predict.figures import figures_of
from blindfit.coordinator.predict.page import render
from blindfit.coordinator.predict.summary import places, summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.vertical.report import members_in
from blindfit.coordinator.view import View

KIND = Kind(
    figures_of, lambda _facts: [], statement, render, summary, check_model=None, members_in=members_in, places=places
)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    figures_of=figures_of,
    report=KIND,
)
