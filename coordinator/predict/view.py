"""How a coordinator shows a predict job."""

from __future__ import annotations

from functools import partial

from blindfit.coordinator.predict import preflight
from blindfit.coordinator.predict.figures import figures_of
from blindfit.coordinator.predict.page import render
from blindfit.coordinator.predict.statement import privacy_statement, two_sentences
from blindfit.coordinator.predict.summary import places, summary
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.output import write
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.view import View

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

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    report=KIND,
)
