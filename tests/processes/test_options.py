"""Every option that is read has an effect."""

from __future__ import annotations

import pytest

from tests.processes.reading import error_line


@pytest.mark.parametrize(
    ("party", "option", "expected"),
    [
        ("shop", "policy.min_rows=10", "without the protocol dp-lr, policy.min_rows does nothing, remove it"),
        ("shop", 'datasets.rows.unknown_rows="zero"', "datasets.rows.unknown_rows: does nothing here, remove it"),
        ("shop", "datasets.rows.row_is=visit", "datasets.rows.row_is: does nothing here, remove it"),
        ("meter", 'datasets.labels.features="rest"', "datasets.labels.features: does nothing here, remove it"),
        ("meter", "datasets.labels.missing=drop", "datasets.labels.missing: does nothing here, remove it"),
        ("meter", "datasets.labels.max_rows_per_person=3", "max_rows_per_person: does nothing here, remove it"),
        ("meter", "datasets.labels.label_kind=number", "such as [0.0, 100.0]; an aggregate needs binary labels"),
    ],
)
def test_an_option_of_another_role_is_refused(project, party, option, expected):
    refused = project.blindfit("party", f"{party}.toml", "--set", option)
    assert refused.returncode == 2
    assert error_line(refused).endswith(expected)


def test_a_quantile_beside_a_bound_is_refused(project):
    options = ("--set", "walr.norm_bound=5.0", "--set", "walr.norm_quantile=0.9")
    refused = project.blindfit("show", "job.toml", *options)
    assert "norm_quantile does nothing" in error_line(refused)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("snapshot", "meter.toml", "--remove-older"), "without DATASET, published snapshots are listed"),
        (("snapshot", "meter.toml", "--other-people"), "without DATASET, published snapshots are listed"),
        (("approve", "meter.toml", "--refuse"), "without SESSION, waiting jobs are listed"),
        (("ledger", "c.jsonl", "--verify", "--export", "x"), "--verify checks an exported chain"),
        (("ledger", "c.jsonl", "--verify", "--acknowledge", "lost"), "--verify checks an exported chain"),
        (("ledger", "c.jsonl", "--verify", "--set", "a=1"), "--verify checks an exported chain"),
        (("verify", "release", "--id", "name"), "without --features no model is fitted again"),
    ],
)
def test_an_option_of_another_use_of_a_command_is_refused(project, words, said):
    refused = project.blindfit(*words)
    assert refused.returncode == 2
    option = next(word for word in reversed(words) if word.startswith("--"))
    assert error_line(refused) == f"error: {option} does nothing: {said}"
