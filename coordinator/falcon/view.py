"""The view of a falcon job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.falcon import preflight, statement
from blindfit.coordinator.falcon.cautions import cautions_of
from blindfit.coordinator.falcon.defences import GIVEN_UP
from blindfit.coordinator.falcon.figures import figures_of
from blindfit.coordinator.falcon.page import render
from blindfit.coordinator.falcon.summary import summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.vertical.report import members_in
from blindfit.coordinator.view import View

KIND = Kind(
    figures_of, cautions_of, statement, render, summary, check_model=VerticalModelPart.from_dict, members_in=members_in
)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    figures_of=figures_of,
    report=KIND,
    given_up=GIVEN_UP,
    growth=preflight.growth,
)
