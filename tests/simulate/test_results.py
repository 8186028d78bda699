"""Runs of several repeats become one row with means, spreads and a forecast."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from blindfit.coordinator.simulate import shown
from blindfit.coordinator.simulate.kept import Failed
from blindfit.coordinator.simulate.results import Spread
from blindfit.coordinator.terminal.html import render_text
from tests.simulate.studies import done, repeat, results


def test_a_row_has_the_mean_and_the_spread_of_its_repeats() -> None:
    (row,) = results({("taylor", None): [done(0.8, 10.0), done(0.9, 14.0)]}).rows
    assert row.quality["auc"].mean == pytest.approx(0.85)
    assert row.quality["auc"].std == pytest.approx(math.sqrt(0.005))
    assert row.quality["auc"].text(3) == "0.850 ± 0.071"
    assert row.seconds == Spread(12.0, pytest.approx(math.sqrt(8)))
    assert (row.runs, row.failed, row.why) == (2, 0, "")


def test_set_up_stays_and_the_rest_grows() -> None:
    (by_rule,) = results({("walr", 1.0): [done(0.8, 12.0)]}).rows
    assert by_rule.forecast_s == 2 + 10 * 10
    (counted,) = results({("taylor", None): [done(0.8, 12.0, growth=7.5)]}).rows
    assert counted.forecast_s == 2 + 7.5 * 10
    assert "as counted" in counted.forecast_rule
    assert "as counted" not in by_rule.forecast_rule


def test_a_run_that_failed_leaves_the_others() -> None:
    found = results({("taylor", None): [done(0.8), Failed("a party was lost")], ("falcon", None): [Failed("no")] * 2})
    assert [row.name for row in found.done] == ["taylor"]
    assert shown.failures(found) == [
        ("taylor", "1 of 2 repeats ended without a result: a party was lost"),
        ("falcon", "no"),
    ]


def test_a_system_that_does_not_fit_has_a_row_that_says_so() -> None:
    cut = repeat(not_for={"label-dp": "not for this label: it is not a number"})
    found = results({("walr", 1.0): [done(0.8)]}, repeats=[cut])
    (other,) = [row for row in found.rows if row.system == "label-dp"]
    assert (other.why, other.fits) == ("not for this label: it is not a number", False)


def test_the_table_the_sheet_and_the_document_agree() -> None:
    found = results({("walr", 0.5): [done(0.8, bits={"labels": 31.0})], ("falcon", None): [Failed("no")]})
    lines = list(csv.DictReader(io.StringIO(shown.to_csv(found).decode())))
    assert [line["system"] for line in lines] == [
        "joined, no privacy",
        "active party only",
        "constant",
        "walr",
        "falcon",
    ]
    assert (lines[3]["auc"], lines[3]["epsilon"], lines[3]["bits_labels"]) == ("0.8", "0.5", "31.0")
    assert (lines[4]["auc"], lines[4]["why_no_result"]) == ("", "no")
    table = render_text([shown.terminal_table(found)])
    assert "labels 31" in table
    assert "falcon" not in table
    document = json.loads(json.dumps(shown.document(found), allow_nan=False))
    assert [row["system"] for row in document["rows"]] == ["walr", "falcon"]


def test_a_figure_has_no_negative_zero() -> None:
    assert Spread(-0.0001, None).text(3) == "0.000"
    assert Spread(-0.0101, 0.002).text(3) == "-0.010 ± 0.002"
