"""The report of a WALR job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from algorithms.privacy.ledger import Receipt
from algorithms.statistics.walr_model import WALRModel
from coordinator.report.walr.cautions import cautions_of
from coordinator.report.walr.figures import figures_of
from coordinator.report.walr.page import render
from coordinator.report.walr.statement import privacy_statement, two_sentences
from coordinator.report.walr.summary import summary

__all__ = [
    "cautions",
    "check_model",
    "in_short",
    "members_in",
    "owners",
    "privacy_statement",
    "render",
    "summary",
]


def cautions(report: Mapping[str, Any]) -> list[str]:
    return cautions_of(figures_of(report))


def in_short(report: Mapping[str, Any]) -> str:
    return two_sentences(figures_of(report))


def owners(report: Mapping[str, Any]) -> list[str]:
    return [figures_of(report).active]


def check_model(model: Mapping[str, Any]) -> None:
    WALRModel.from_dict(model)


def members_in(party_report: Mapping[str, Any]) -> Mapping[str, str]:
    """A party's report names no peer, but the receipt that it holds does."""
    return {Receipt.from_statement(party_report["privacy"]["receipt"].encode()).server: "measurement"}
