"""The report of a vertical training."""

from __future__ import annotations

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.report import joint
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.vertical.cautions import cautions_of
from blindfit.coordinator.report.vertical.figures import figures_of
from blindfit.coordinator.report.vertical.page import render
from blindfit.coordinator.report.vertical.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.vertical.summary import summary

KIND = Kind(
    figures_of=figures_of,
    cautions_of=cautions_of,
    two_sentences=two_sentences,
    privacy_statement=privacy_statement,
    render=render,
    summary=summary,
    owners_of=lambda facts: list(facts.roles.chain),
    check_model=VerticalModelPart.from_dict,
    members_in=joint.members_in,
)
