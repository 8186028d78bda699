"""The report of a training whose weights stay in shares: who has what, and no word of opened weights."""

from __future__ import annotations

from blindfit.coordinator.falcon.view import KIND
from tests.report.falcon.conftest import MadeUpShares
from tests.report.falcon.page_texts import text_of as page_text
from tests.report.falcon.statement_texts import TOPICS, text_of

SHARED = {"weights": "shared"}


def test_the_statement_says_who_holds_what(shares: MadeUpShares) -> None:
    shares.with_(**SHARED)
    assert [section["topic"] for section in shares.submitted().content["privacy_statement"]] == TOPICS
    held = text_of(shares, "weights")
    assert (
        "bank, post and shop each keep the scaling of their own columns, and their shares of all weights, their MACs"
        in held
    )
    assert "notary keeps nothing: each prediction has its own seeds and MAC key" in held
    assert "counts what the end of a training reveals about its labels, and nothing else of this training" in held
    assert "No weight was opened to anybody." in text_of(shares, "opened")
    assert text_of(shares, "learnt-active").startswith("No weight, not even of its own columns")
    assert "without the shares of one of them, they have nothing of it" in text_of(shares, "collusion")
    assert "no epsilon bounds what figures of test rows reveal" in text_of(shares, "promise")


def test_what_is_said_of_opened_weights_is_not_said(shares: MadeUpShares) -> None:
    shares.with_(**SHARED)
    for topic in TOPICS:
        assert "opened weights" not in text_of(shares, topic).lower(), topic
    content = shares.submitted().content
    facts = KIND.figures_of(content)
    assert (facts.opened, facts.most_told, facts.pooled) == ({}, None, None)
    assert KIND.owners(content) == []
    assert dict(KIND.summary(content))["weights"].startswith("in shares: nobody has the model")


def test_the_page(shares: MadeUpShares) -> None:
    text = page_text(shares.with_(**SHARED).submitted().html_path.read_text("utf-8"))
    assert "Nobody has the model: no weight was opened." in text
    assert "Bits of a label 0 in weights: nobody has a weight" in text
    assert "its shares" in text
    assert "Opened weights" not in text
    assert "model.json" not in text
