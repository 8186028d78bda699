"""The report of a training in shares under differential privacy: the promises, their readers, and what stays closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blindfit.algorithms.privacy.events import UNITS
from blindfit.coordinator.falcon.cautions import cautions_of
from blindfit.coordinator.falcon.figures import figures_of
from blindfit.coordinator.falcon.statement import privacy_statement
from blindfit.coordinator.falcon.view import KIND
from tests.report.falcon.conftest import MadeUpShares

TOPICS = [
    "promise",
    "neighbours",
    "epsilon",
    "delta",
    "noise",
    "composition",
    "defences",
    "opened",
    "learnt-active",
    "learnt-passive",
    "learnt-key-node",
    "learnt-coordinator",
    "collusion",
    "out-of-model",
    "not-covered",
]


@pytest.fixture
def private(shares: MadeUpShares) -> MadeUpShares:
    return shares.with_privacy()


def statement(shares: MadeUpShares) -> dict[str, str]:
    return {section.topic: " ".join(section.sentences) for section in privacy_statement(shares.submitted().content)}


def cautions(shares: MadeUpShares) -> str:
    return " | ".join(cautions_of(figures_of(shares.written().content)))


def test_every_topic_once(private: MadeUpShares) -> None:
    assert list(statement(private)) == TOPICS


def test_the_promise_and_what_it_rests_on(private: MadeUpShares) -> None:
    said = statement(private)
    assert "each row, features of all parties and label, in all opened weights together" in said["promise"]
    assert "if every data party shortened its part of each row" in said["promise"]
    assert "No protocol checks this" in said["promise"]
    assert "notary, which deals what the shares need, is trusted to deal correctly" in said["promise"]
    assert (
        "is replaced by another; their number is public; the set of rows that all parties have is public too"
        in said["neighbours"]
    )
    assert "epsilon = 2." in said["epsilon"]
    assert "does not shorten its rows to their bound" in said["out-of-model"]


def test_whose_noise_it_is(private: MadeUpShares) -> None:
    said = statement(private)
    assert (
        "The noise of one party is large enough by itself, even if all other parties pool their noise" in said["noise"]
    )
    assert "one batch of each of 4 epochs" in said["noise"]
    assert "0.0625" in said["noise"]
    assert "Even if all but one do, epsilon 2, delta 1e-05 bounds what they learn about a row" in said["collusion"]


def test_every_ledger_is_told(private: MadeUpShares) -> None:
    said = statement(private)["composition"]
    for name in private.chain:
        assert f"{name}: epsilon 3 of 8 is spent on its population customers." in said
    assert "together protect where" not in said
    private.report["privacy"]["spent_neighbours"] = UNITS["row"][1]
    assert "together protect where one row's label changes" in statement(private)["composition"]


def test_nothing_is_opened_but_weights(private: MadeUpShares) -> None:
    said = statement(private)
    assert "after each of" not in said["opened"]
    assert "the weights of its own columns, not rounded" in said["opened"]
    assert "one bit" not in said["learnt-passive"]
    assert "made with noise of every data party" in said["learnt-active"]


def test_page_and_terminal(private: MadeUpShares, page: Callable[..., str]) -> None:
    text = page()
    assert "Epsilon" in text
    assert "no differential privacy" not in text
    assert "epsilon does not pay for figures of test rows" in text
    lines = list(KIND.summary(private.submitted().content))
    assert ("budget", "shop: 3 of 8 spent on customers, 5 left") in lines
    assert [text for what, text in lines if what == "privacy"] == [
        "epsilon 2, delta 1e-05, each row, features of all parties and label"
    ]
    assert KIND.in_short(private.submitted().content).startswith("Epsilon 2 at delta 1e-05 protects")


def test_cautions(private: MadeUpShares) -> None:
    assert "Noise moves" not in cautions(private)
    private.report["fit"]["weight_noise_std"] = 0.75
    private.settings["privacy"]["delta"] = 1e-3
    private.weights["shop"]["spent"] = -80.0
    said = cautions(private)
    assert "Noise moves a weight by up to 0.75" in said
    assert "is not below one in the number of rows" in said
    assert "shop has a weight beyond 64: the training has diverged" in said
