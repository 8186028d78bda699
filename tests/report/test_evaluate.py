"""The coordinator's report of an evaluation: who learnt what, and what a party may have sent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.evaluate import report as evaluate
from blindfit.coordinator.job.job import read_job

TOLD: dict[str, Any] = {
    "rows.sent": 10,
    "rows.counted": 8,
    "privacy.population": "people",
    "privacy.unit": "each label",
    "privacy.neighbours": "one label is another",
    "privacy.epsilon": 1.0,
    "privacy.delta": 1e-5,
    "privacy.max_rows_per_person": 0,
    "privacy.mechanism": "analytic Gaussian",
    "privacy.sensitivity": 2.0,
    "privacy.noise_std_of_sum": 8.0,
    "privacy.norm_bound": 2.0,
    "privacy.releases": 1,
    "privacy.snapshot": "5eed",
    "privacy.spent_epsilon": 1.0,
    "privacy.budget_epsilon": 3.0,
    "privacy.budget_delta": 1e-5,
}
SERVERS = {"meter": {"role": "measurement", "dataset": "labels"}, "registry": {"role": "measurement", "dataset": "l"}}
DEALER = {"notary": {"role": "key-node"}}


def written(out: Path, *, trust: str = "trusted", told: dict[str, Any] | None = None) -> evaluate.Written:
    servers = SERVERS if trust in ("two-servers", "shared-rows") else {"meter": SERVERS["meter"]}
    dealer = DEALER if trust == "shared-rows" else {}
    job = {
        "name": "tried",
        "protocol": "evaluate",
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
        "evaluate": {"session": "monday", "trust": trust},
        "parties": {"shop": {"role": "active", "dataset": "rows"}, **servers, **dealer},
    }
    session: Any = SimpleNamespace(
        job=read_job(job),
        id="tried-1",
        state="DONE",
        seconds={"job": 1.0},
        summaries={"shop": TOLD | (told or {})},
        notes={},
    )
    return evaluate.write(session, out, [])


# --- who learnt what --------------------------------------------------------------------------------------

SCORES = "and their scores, rounded."


@pytest.mark.parametrize(
    ("trust", "learnt"),
    [
        ("trusted", f"meter learnt the ids of 10 rows, {SCORES}"),
        ("two-servers", f"meter and registry learnt the ids of 10 rows, {SCORES}"),
        (
            "encrypted-rows",
            "meter learnt the ids of 10 rows, and no score: the scores came encrypted under a key of shop.",
        ),
        (
            "shared-rows",
            "meter and registry learnt the ids of 10 rows, and no score or label: each server has uniform numbers in "
            "their place, which reveal nothing by themselves.",
        ),
    ],
)
def test_what_servers_learnt_hangs_on_how_they_are_trusted(tmp_path: Path, trust: str, learnt: str) -> None:
    statement = written(tmp_path, trust=trust).content["statement"]
    assert [sentence for sentence in statement if " learnt the ids " in sentence] == [learnt]
    assert (SCORES in " ".join(statement)) == (SCORES in learnt)


def test_rows_that_no_server_could_check_are_named_as_the_check_says(tmp_path: Path) -> None:
    statement = " ".join(written(tmp_path, trust="encrypted-rows").content["statement"])
    assert "protects each label, if shop follows the protocol." in statement
    assert "meter's operator has allowed unchecked-rows (policy.unsafe): rows come encrypted, so" in statement
    assert "unchecked-rows" not in " ".join(written(tmp_path, trust="trusted").content["statement"])


def test_who_must_not_collude_where_scores_are_in_shares(tmp_path: Path) -> None:
    of_both = {"privacy.epsilon_of_both": 0.6}
    statement = " ".join(written(tmp_path, trust="shared-rows", told=of_both).content["statement"])
    assert "notary dealt masks for the rows and their columns, and learnt only their numbers." in statement
    assert "if both collude, or one of them with notary, labels and scores are known." in statement
    statement = " ".join(written(tmp_path, trust="two-servers", told=of_both).content["statement"])
    assert "if both collude, the labels are known." in statement


# --- reports that a party may have sent --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "value", "said"),
    [
        ("rows.sent", None, "rows.sent is missing"),
        ("rows.sent", "many", "rows.sent is not an integer"),
        ("rows.sent", True, "rows.sent is not an integer"),
        ("rows.sent", -1, "rows.sent is not at least 0"),
        ("rows.counted", 11, "rows.counted is not from 0 to 10"),
        ("privacy.epsilon", 1e308, "privacy.epsilon is not from 0 to 700"),
        ("privacy.delta", 2.0, "privacy.delta is not from 0 to 1"),
        ("privacy.budget_epsilon", 0.0, "privacy.budget_epsilon is not at least 1e-300"),
        ("privacy.budget_delta", -1.0, "privacy.budget_delta is not from 0 to 1"),
        ("privacy.spent_epsilon", -1.0, "privacy.spent_epsilon is not at least 0"),
        ("privacy.epsilon_of_both", "much", "privacy.epsilon_of_both is not a finite number"),
        ("privacy.epsilon_of_both", -1.0, "privacy.epsilon_of_both is not from 0 to 700"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_is_written(tmp_path: Path, figure: str, value: Any, said: str) -> None:
    with pytest.raises(DataError, match=f"^the report of shop: {said}$"):
        written(tmp_path, trust="shared-rows", told={figure: value})
    assert list(tmp_path.iterdir()) == []
