"""The report of a dp-lr job: logistic regression under differential privacy of whole rows, of one party alone."""

from __future__ import annotations

from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.coordinator.report.dp_lr.cautions import cautions_of
from blindfit.coordinator.report.dp_lr.figures import figures_of
from blindfit.coordinator.report.dp_lr.page import render
from blindfit.coordinator.report.dp_lr.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.dp_lr.summary import summary
from blindfit.coordinator.report.kind import Kind

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
