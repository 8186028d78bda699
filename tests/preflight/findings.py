"""Findings of the pre-flight, by their texts."""

from __future__ import annotations

from blindfit.coordinator.jobs.check import Finding


def levels(findings: list[Finding], level: str) -> list[str]:
    return [f"{finding.about}: {finding.text}" for finding in findings if finding.level == level]


def only(findings: list[Finding], level: str) -> str:
    (found,) = levels(findings, level)
    return found


def said(findings: list[Finding], about: str) -> str:
    return " | ".join(finding.text for finding in findings if finding.about == about)
