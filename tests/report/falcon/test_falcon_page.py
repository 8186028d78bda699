"""report.html of a training in shares, and what the terminal shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from blindfit.coordinator.jobs.party_page import render_party
from tests.report.falcon.conftest import MadeUpShares
from tests.report.falcon.page_texts import text_of
from tests.report.pages import (
    HOSTILE,
    Elements,
    check_it_ends_with_the_privacy_statement,
    check_nothing_is_loaded_or_run,
    on_screen,
)


def test_the_page_shows_the_key_figures(page) -> None:
    text = text_of(page())
    for shown in (
        "840 of 1,200; 240 for the test",
        "3 + 1 + 1",
        "the validation loss no longer fell",
        "AUC 0.8731 0.819 to 0.911, on 240 test rows",
        "Epsilon none no differential privacy",
        "Bits of a label 0.009524 at most, in a passive party's weights",
        "Logistic regression in secret shares with MACs, on 1,200 rows that all parties have",
        "batches of 128 rows, l2 0.01",
    ):
        assert shown in text
    for heading in ("Weights of bank", "Weights of shop", "Evaluation", "Opened weights", "Defences", "Time"):
        assert heading in text
    for heading in ("Rows and columns", "Parties", "All weights (5)", "The job, with every default"):
        assert heading in text
    assert "falcon.patience" in text
    assert "taylor." not in text
    assert "Hold-out" not in text


def test_the_confusion_matrix(page) -> None:
    cells = re.findall(r'<td class="(right|wrong)" title="([a-z ]+)">(\d+)</td>', page())
    assert cells == [
        ("right", "true positives", "91"),
        ("wrong", "false negatives", "22"),
        ("wrong", "false positives", "23"),
        ("right", "true negatives", "104"),
    ]


def test_what_passive_parties_weights_have(page, shares: MadeUpShares) -> None:
    assert told_of_labels(page()) == {
        "post": ["1", "8", "8", "0.009524"],
        "shop": ["1", "8", "8", "0.009524"],
        "together": ["2", "8", "16", "0.01905"],
    }
    assert told_of_labels(shares.with_two().written().html_path.read_text("utf-8")).keys() == {"shop"}


def told_of_labels(page: str) -> dict[str, list[str]]:
    """Return the table of opened weights: by party, weights, bits of each, of all labels, of each label."""
    table = page[page.index("Of each label</th>") :]
    rows = re.findall(r"<tr><td><strong>(\w+)</strong></td>(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
    return {name: re.findall(r'<td class="number">([^<]*)</td>', cells) for name, cells in rows}


def test_weights_that_were_not_rounded(page, shares: MadeUpShares) -> None:
    shares.with_(unsafe=["weight-bits"])
    text = text_of(page())
    assert "Bits of a label no limit weights were not rounded" in text
    assert "Of each label" not in text
    assert "Rounded weights off" in text


def test_nothing_is_loaded_or_run(page) -> None:
    check_nothing_is_loaded_or_run(page(), plots=3)


def test_it_ends_with_the_privacy_statement(page) -> None:
    check_it_ends_with_the_privacy_statement(page())


def test_names_are_escaped(page, shares: MadeUpShares) -> None:
    shares.name = HOSTILE
    shares.weights["bank"] = {HOSTILE: 0.5}
    shares.report["rows"]["dropped_columns"] = [HOSTILE]
    elements = Elements(page())
    assert "script" not in elements.tags
    assert elements.text.count(HOSTILE) >= 4  # title, heading, plot, tables


def test_a_submitted_jobs_page_says_where_the_parts_are(shares: MadeUpShares) -> None:
    text = text_of(shares.submitted().html_path.read_text("utf-8"))
    assert "This page holds no weight" in text
    assert "kept by shop" in text
    assert "0.8731" in text  # the active party reports to the coordinator what it opened
    assert "All weights" not in text


def test_without_an_evaluation_the_page_says_why(page, shares: MadeUpShares) -> None:
    shares.report["evaluation"] = None
    assert "have one class, nothing is evaluated" in text_of(page())
    shares.without_test()
    assert "no rows were kept for a test" in text_of(page())


@pytest.mark.parametrize("party", ["bank", "shop"])
def test_a_partys_own_page(shares: MadeUpShares, tmp_path: Path, party: str) -> None:
    directory = shares.write_party(party, tmp_path / "own")
    render_party(directory)
    text = text_of((directory / "report.html").read_text("utf-8"))
    for shown in (*shares.weights[party], "falcon.batch_rows", "What notary (key node) learnt", "All weights"):
        assert shown in text
    assert ("0.8731" in text) == (party == "bank")
    # A passive party sees what its own weights reveal, and the active party sees none of it.
    assert ("shop's 1 weight of 8 bits have" in text) == (party == "shop")


# --- the terminal --------------------------------------------------------------------------------------------


def shown(shares: MadeUpShares, *, here: bool, **changes: Any) -> str:
    return " ".join(on_screen((shares.written if here else shares.submitted)(**changes), width=110).split())


def test_the_summary_in_the_terminal(shares: MadeUpShares) -> None:
    text = shown(shares, here=True)
    for part in (
        "1,200 in common: 840 trained on, 120 validation, 240 test",
        "3 of bank, 1 of post, 1 of shop",
        "logistic, in shares with MACs, 4 epochs",
        "AUC 0.8731, KS 0.6123, log loss 0.4321, accuracy 0.8125",
        "secret shares, checks by MACs, rounded weights and shortened rows",
        "8 bits each: a passive party has at most 0.009524 bits of each label",
        "No differential privacy",
        "11 s",
        str(shares.out / "shop" / "model.json"),
    ):
        assert part in text


def test_the_terminal_where_less_is_on(shares: MadeUpShares) -> None:
    shares.report["evaluation"] = None
    shares.with_(security="semi-honest", unsafe=["weight-bits"])
    text = shown(shares, here=False)
    assert "in shares without MACs" in text
    assert "secret shares and shortened rows" in text
    assert "of each label at most" not in text
    assert "known only to bank, if its test rows have both classes" in text
    assert "kept by shop" in text


def test_a_linear_model(shares: MadeUpShares, page) -> None:
    shares.with_(model="linear", l1=0.05, l2=0.0, sampling="replacement")
    shares.report["evaluation"] = {"rows": 240, "mse": 3.25, "r2": 0.7153}
    shown = " ".join(page().split())
    assert "Linear regression in secret shares" in shown
    assert "each drawn from all rows, l1 0.05" in shown
    assert "R squared" in shown
    assert "Mean absolute error" not in shown
    assert "AUC" not in shown
    assert "the sum of the squared errors" in shown
    assert "one class" not in shown
    for model in ("linear", "logistic"):
        shares.with_(model=model, **({"class_weights": "balanced"} if model == "logistic" else {}))
        assert ("equal total weight for both classes" in page()) == (model == "logistic")
