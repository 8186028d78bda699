"""The report of a dp-lr job: logistic regression under differential privacy of whole rows, of one party alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from algorithms.statistics.dp_logistic_model import DPLogisticModel
from coordinator.report.dp_lr.cautions import cautions_of
from coordinator.report.dp_lr.figures import figures_of
from coordinator.report.dp_lr.page import render
from coordinator.report.dp_lr.statement import privacy_statement, two_sentences
from coordinator.report.dp_lr.summary import summary

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
    DPLogisticModel.from_dict(model)


def members_in(_party_report: Mapping[str, Any]) -> Mapping[str, str]:
    """It has no peers."""
    return {}
