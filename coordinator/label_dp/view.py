"""The view of a label-dp job."""

from __future__ import annotations

from functools import partial

from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.coordinator.label_dp import preflight, statement
from blindfit.coordinator.label_dp.cautions import cautions_of
from blindfit.coordinator.label_dp.figures import figures_of
from blindfit.coordinator.label_dp.page import render
from blindfit.coordinator.label_dp.plan import plan
from blindfit.coordinator.label_dp.statement import describe_release
from blindfit.coordinator.label_dp.summary import summary
from blindfit.coordinator.report.kind import Kind, Report
from blindfit.coordinator.report.output import write
from blindfit.coordinator.view import View


def _members_in(party_report: Report) -> dict[str, str]:
    return {str(party_report["server"]): "measurement"}


KIND = Kind(
    figures_of,
    cautions_of,
    statement,
    render,
    summary,
    check_model=LabelRegressionModel.from_dict,
    members_in=_members_in,
)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    figures_of=figures_of,
    report=KIND,
    released=describe_release,
    plan=plan,
)
