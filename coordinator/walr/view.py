"""The view of a walr job."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.algorithms.statistics.vertical.model import FORMAT as PART
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.measured.trust import GIVEN_UP
from blindfit.coordinator.report.kind import Kind, Report
from blindfit.coordinator.report.output import write
from blindfit.coordinator.view import View
from blindfit.coordinator.walr import preflight, statement
from blindfit.coordinator.walr.cautions import cautions_of
from blindfit.coordinator.walr.figures import figures_of
from blindfit.coordinator.walr.page import render
from blindfit.coordinator.walr.plan import plan
from blindfit.coordinator.walr.statement import describe_release
from blindfit.coordinator.walr.summary import summary


def _members_in(party_report: Report) -> dict[str, str]:
    """Return the peers that a report names; if it names none, the server that the party's receipt names."""
    if "members" in party_report:
        me = party_report["party"]
        return {str(name): str(role) for name, role in party_report["members"].items() if name != me}
    if servers := party_report.get("servers"):
        return {str(server["server"]): "measurement" for server in servers}
    return {Receipt.from_statement(party_report["privacy"]["receipt"].encode()).server: "measurement"}


def _check_model(content: Mapping[str, Any]) -> object:
    """Return a whole model, or one party's part of it."""
    return (VerticalModelPart if content.get("format") == PART else WALRModel).from_dict(content)


KIND = Kind(figures_of, cautions_of, statement, render, summary, check_model=_check_model, members_in=_members_in)

VIEW = View(
    leaks=preflight.leaks,
    check_rows=preflight.check_rows,
    write=partial(write, KIND),
    figures_of=figures_of,
    report=KIND,
    released=describe_release,
    given_up=GIVEN_UP,
    plan=plan,
)
