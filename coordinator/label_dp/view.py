"""How a coordinator shows a label-dp job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.coordinator.label_dp import preflight
from blindfit.coordinator.label_dp.cautions import cautions_of
from blindfit.coordinator.label_dp.figures import figures_of
from blindfit.coordinator.label_dp.page import render
from blindfit.coordinator.label_dp.plan import plan
from blindfit.coordinator.label_dp.statement import privacy_statement, released, two_sentences
from blindfit.coordinator.label_dp.summary import summary
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
    check_model=LabelRegressionModel.from_dict,
    members_in=lambda party_report: {str(party_report["server"]): "measurement"},
)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    report=KIND,
    released=released,
    plan=plan,
)
