"""The text of a privacy statement."""

from __future__ import annotations

from typing import Any

from blindfit.coordinator.falcon.statement import privacy_statement
from tests.report.falcon.conftest import MadeUpShares

TOPICS = [
    "promise",
    "defences",
    "opened",
    "weights",
    "learnt-active",
    "learnt-passive",
    "learnt-key-node",
    "learnt-coordinator",
    "collusion",
    "out-of-model",
    "not-covered",
]


def text_of(shares: MadeUpShares, topic: str, *, here: bool = False, **changes: Any) -> str:
    content = (shares.written if here else shares.submitted)(**changes).content
    (section,) = [s for s in privacy_statement(content) if s.topic == topic]
    return " ".join(section.sentences)
