"""The report of a label-dp job: regression on labels that were released row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from algorithms.statistics.label_regression_model import LabelRegressionModel
from coordinator.report.label_regression.cautions import cautions_of
from coordinator.report.label_regression.figures import figures_of
from coordinator.report.label_regression.page import render
from coordinator.report.label_regression.statement import privacy_statement, two_sentences
from coordinator.report.label_regression.summary import summary

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
    LabelRegressionModel.from_dict(model)


def members_in(party_report: Mapping[str, Any]) -> Mapping[str, str]:
    return {str(party_report["server"]): "measurement"}
