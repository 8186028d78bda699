"""The report of a joint prediction."""

from __future__ import annotations

from blindfit.coordinator.report import joint
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.prediction.figures import figures_of
from blindfit.coordinator.report.prediction.page import render
from blindfit.coordinator.report.prediction.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.prediction.summary import places, summary

KIND = Kind(
    figures_of=figures_of,
    cautions_of=lambda _facts: [],
    two_sentences=two_sentences,
    privacy_statement=privacy_statement,
    render=render,
    summary=summary,
    owners_of=lambda _facts: [],
    check_model=None,
    members_in=joint.members_in,
    places=places,
)
