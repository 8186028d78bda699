"""The report of a vertical training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from algorithms.statistics.vertical_model import VerticalModelPart
from coordinator.report.vertical.cautions import cautions_of
from coordinator.report.vertical.figures import figures_of
from coordinator.report.vertical.page import render
from coordinator.report.vertical.statement import privacy_statement, two_sentences
from coordinator.report.vertical.summary import summary

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
    return list(figures_of(report).roles.chain)


def check_model(model: Mapping[str, Any]) -> None:
    VerticalModelPart.from_dict(model)


def members_in(party_report: Mapping[str, Any]) -> Mapping[str, str]:
    me = party_report["party"]
    return {str(name): str(role) for name, role in dict(party_report["members"]).items() if name != me}
