"""How a coordinator shows a dp-lr job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.coordinator.dp_lr import preflight
from blindfit.coordinator.dp_lr.cautions import cautions_of
from blindfit.coordinator.dp_lr.figures import figures_of
from blindfit.coordinator.dp_lr.page import render
from blindfit.coordinator.dp_lr.statement import privacy_statement, released, two_sentences
from blindfit.coordinator.dp_lr.summary import summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.view import View

KIND = Kind(
    figures_of=figures_of,
    cautions_of=cautions_of,
    two_sentences=two_sentences,
    privacy_statement=privacy_statement,
    render=render,
    summary=summary,
    owners_of=lambda facts: [facts.active],
    check_model=DPLogisticModel.from_dict,
    members_in=lambda _party_report: {},
)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    report=KIND,
    released=released,
)
