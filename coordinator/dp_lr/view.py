"""The view of a dp-lr job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.coordinator.dp_lr import preflight, statement
from blindfit.coordinator.dp_lr.cautions import cautions_of
from blindfit.coordinator.dp_lr.figures import figures_of
from blindfit.coordinator.dp_lr.page import render
from blindfit.coordinator.dp_lr.statement import describe_release
from blindfit.coordinator.dp_lr.summary import summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.view import View

KIND = Kind(figures_of, cautions_of, statement, render, summary, check_model=DPLogisticModel.from_dict)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    figures_of=figures_of,
    report=KIND,
    released=describe_release,
)
