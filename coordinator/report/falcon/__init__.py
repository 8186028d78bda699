"""The report of a vertical training in secret shares."""

from __future__ import annotations

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.report import joint
from blindfit.coordinator.report.falcon.cautions import cautions_of
from blindfit.coordinator.report.falcon.figures import figures_of
from blindfit.coordinator.report.falcon.page import render
from blindfit.coordinator.report.falcon.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.falcon.summary import summary
from blindfit.coordinator.report.kind import Kind

KIND = Kind(
    figures_of=figures_of,
    cautions_of=cautions_of,
    two_sentences=two_sentences,
    privacy_statement=privacy_statement,
    render=render,
    summary=summary,
    owners_of=lambda facts: [] if facts.stays_shared else list(facts.roles.chain),
    check_model=VerticalModelPart.from_dict,
    members_in=joint.members_in,
)
