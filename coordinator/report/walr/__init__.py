"""The report of a WALR job."""

from __future__ import annotations

from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.coordinator.report.kind import Kind, Report
from blindfit.coordinator.report.walr.cautions import cautions_of
from blindfit.coordinator.report.walr.figures import figures_of
from blindfit.coordinator.report.walr.page import render
from blindfit.coordinator.report.walr.statement import privacy_statement, two_sentences
from blindfit.coordinator.report.walr.summary import summary


def _members_in(party_report: Report) -> dict[str, str]:
    """A party's report names no peer but servers of shares; the receipt that it holds does."""
    if servers := party_report.get("servers"):
        return {str(server["server"]): "measurement" for server in servers}
    return {Receipt.from_statement(party_report["privacy"]["receipt"].encode()).server: "measurement"}


KIND = Kind(
    figures_of=figures_of,
    cautions_of=cautions_of,
    two_sentences=two_sentences,
    privacy_statement=privacy_statement,
    render=render,
    summary=summary,
    owners_of=lambda facts: [facts.active],
    check_model=WALRModel.from_dict,
    members_in=_members_in,
)
