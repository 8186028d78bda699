"""The key node's own file on a linkage: its findings, only for its owner."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from blindfit.algorithms.alignment.matching import Histogram
from blindfit.algorithms.alignment.sensitivity import ExpectedErrors
from blindfit.algorithms.protocols.linkage import LinkageSummary
from blindfit.parties.files.written import write_json
from blindfit.parties.vertical.linkage_report import EFFECT, TOO_LOW, content_of


def summary(wrong_most: float = 4.0) -> LinkageSummary:
    bars = Histogram((0.7, 0.8, 0.9, 1.0), (0, 30, 70), (40, 5, 0))
    return LinkageSummary((150, 120), 100, 0.8, bars, ExpectedErrors(100, 2.0, wrong_most, 8.0))


def test_it_says_what_was_found_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "notary" / "linkage.json"
    write_json(path, content_of(summary()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = json.loads(path.read_text())
    assert written == content_of(summary())
    assert (written["matches"], written["records"]) == (100, [150, 120])
    assert written["expected_errors"] == {"wrong_share": [0.02, 0.04], "missed_share": pytest.approx(0.0755, abs=1e-4)}
    assert [bar["matches"] for bar in written["similarities"]] == [0, 30, 70]
    assert written["what_errors_do"] == EFFECT


def test_a_threshold_that_is_too_low_is_told() -> None:
    assert TOO_LOW in content_of(summary(wrong_most=30.0))["what_errors_do"]
