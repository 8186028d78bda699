"""How a coordinator shows a falcon job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.falcon import preflight
from blindfit.coordinator.falcon.cautions import cautions_of
from blindfit.coordinator.falcon.defences import GIVEN_UP
from blindfit.coordinator.falcon.figures import figures_of
from blindfit.coordinator.falcon.page import render
from blindfit.coordinator.falcon.statement import privacy_statement, two_sentences
from blindfit.coordinator.falcon.summary import summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.view import View

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

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    report=KIND,
    given_up=GIVEN_UP,
)
