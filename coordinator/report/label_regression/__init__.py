"""The report of a label-dp job: regression on labels that were released row by row."""

from __future__ import annotations

from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.label_regression.cautions import cautions_of
from blindfit.coordinator.report.label_regression.figures import figures_of
from blindfit.coordinator.report.label_regression.page import render
from blindfit.coordinator.report.label_regression.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.label_regression.summary import summary

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
