"""`blindfit check` of a vertical training: its findings in the local files, and the cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.preflight.conftest import N_ROWS
from tests.preflight.findings import levels, only, said
from tests.world import World
from tests.world.loans import loans


def test_a_job_without_trouble(project: World) -> None:
    findings = project.check()
    assert not levels(findings, "refuses")
    assert not levels(findings, "warning")
    assert said(findings, "psi") == "600 rows in common"
    assert "390 rows to train on, batches of 128 or more; 90 for the hold-out loss, 120 to test on" in said(
        findings, "split"
    )
    assert "2048 bits hold every number" in said(findings, "key")
    assert "600 rows, 3 features" in said(findings, "bank")
    assert "650 rows, 2 features" in said(findings, "shop")


def test_a_check_leaves_nothing_behind(project: World) -> None:
    """A key node gets no database either: it has nothing to publish."""

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}

    before = files()
    project.check()
    assert files() == before


def test_who_learns_what_and_if_whom_colludes(project: World) -> None:
    findings = project.check()
    learnt = said(findings, "who learns what")
    for who in (
        "bank (active party)",
        "each of post and shop (passive parties)",
        "notary (key node)",
        "the coordinator",
    ):
        assert who in learnt
    assert "With post or shop it reads scores and labels" in said(findings, "who colludes")
    assert "submits another ciphertext" in said(findings, "out of the model")


def test_an_unsafe_flag_is_a_warning_where_every_party_lets_it_pass(project: World) -> None:
    project.set("policy.unsafe", ["label-bits"])
    findings = project.check("taylor.unsafe=['label-bits']")
    assert "label-bits is allowed" in said(findings, "taylor.unsafe")
    assert not levels(findings, "refuses")


def test_an_unsafe_flag_that_a_party_does_not_let_pass(project: World) -> None:
    """This holds for any role; an operator who is asked decides personally."""
    project.set("policy.unsafe", ["label-bits"])
    project.set("policy.unsafe", None, "shop", "notary")
    project.set("policy", {"systems": ["taylor"], "approve": "ask"}, "bank")
    reason = "unsafe: its policy.unsafe does not list label-bits, and its operator is not asked"
    refused = levels(project.check("taylor.unsafe=['label-bits']"), "refuses")
    assert [text.partition(" (")[0] for text in refused] == [
        f"{name}: {name} refuses the job: {reason}" for name in ("shop", "notary")
    ]


# --- parties -----------------------------------------------------------------------------------------------


def test_policies_of_all_parties(project: World) -> None:
    project.set("policy", {"systems": ["walr"], "max_epsilon": 0.5, "approve": "ask"}, "shop")
    findings = project.check("privacy.epsilon=0.8")
    assert [text.partition(" (")[0] for text in levels(findings, "refuses")] == [
        "shop: shop refuses the job: protocol: taylor is not a system in which it takes part",
        "shop: shop refuses the job: privacy.epsilon: 0.8 is more than its max_epsilon = 0.5",
    ]
    assert "its operator approves each job" in said(findings, "shop")


def test_a_delta_that_is_too_large(project: World) -> None:
    project.set("policy.max_delta", 1e-6, "post")
    assert only(project.check("privacy.epsilon=0.8"), "refuses") == (
        "post: post refuses the job: privacy.delta: 1e-05 is more than its max_delta = 1e-06 (lower privacy.delta, or "
        "have post's operator raise policy.max_delta)"
    )


def test_whose_keys_are_kept_unlocked(project: World) -> None:
    project.set("secrets", {"passphrase_file": "words"}, "shop")
    project.set("identity.passphrase_file", "words", "bank")  # the same for both
    said = [f.about for f in project.check() if "keeps its keys and checkpoints without encryption" in f.text]
    assert said == ["post", "notary"]


def test_another_role_or_dataset(project: World) -> None:
    project.set("parties.post.dataset", "others", "job")
    assert "post.toml has no dataset named others (the datasets of that file are loans)" in only(
        project.check(), "refuses"
    )


def test_a_party_that_is_elsewhere(project: World) -> None:
    project.set("parties.shop.config", None, "job")
    assert "parties.shop.config is missing" in only(project.check(), "refuses")
    project.set("parties.shop.address", "shop.example.org:7100", "job")
    findings = project.check()
    assert "has no config here" in said(findings, "shop")
    assert said(findings, "rows") == "rows of shop cannot be read here, so the training was not tried"
    assert not levels(findings, "refuses")


def test_bad_data_are_named(project: World) -> None:
    project.columns("post", post1=np.array(["x", *project.table("post")["post1"][1:]]))
    refused = only(project.check(), "refuses")
    assert "post.csv" in refused
    assert "column post1" in refused


def test_a_constant_column(project: World) -> None:
    project.columns("shop", shop0=[1.5] * 650)
    findings = project.check()
    assert not levels(findings, "refuses")
    assert "shop0 has the same value in every training row, so its weight will be 0" in said(findings, "shop")


# --- rows ------------------------------------------------------------------------------------------------------


def test_too_few_rows_in_common(project: World) -> None:
    ids = project.table("shop")["id"]
    project.columns("shop", id=np.array([i if n < 100 else f"v{n}" for n, i in enumerate(ids)]))
    refused = levels(project.check("align.min_common=200"), "refuses")
    reason = "rows in common are fewer than the job needs: set align.min_common = "
    assert any(reason in text for text in refused)


def test_too_few_rows_to_split(project: World) -> None:
    project.columns("shop", id=np.array([f"v{n}" for n in range(650)]))
    assert "0 common rows" in only(project.check(), "refuses")


def test_many_features_and_few_test_rows(project: World) -> None:
    project.columns("post", **{f"more{j}": np.random.default_rng(j).normal(size=N_ROWS).round(3) for j in range(26)})
    warnings = levels(project.check("split.test_fraction=0.1"), "warning")
    assert "rows: 450 rows for 36 weights" not in warnings
    assert any("60 test rows give rough figures" in text for text in warnings)
    few = levels(project.check("split.test_fraction=0.5"), "warning")
    assert any("210 rows for 36 weights are few" in text for text in few)


@pytest.fixture
def small(tmp_path: Path, speed_is_not_measured: None) -> World:
    """The smallest fraction of its rows is 10 rows."""
    return loans(tmp_path, "taylor", 200)


def test_a_small_hold_out(small: World) -> None:
    refused = only(small.check("taylor.validation_fraction=0.05"), "refuses")
    assert refused.startswith("hold-out: bank refuses the job: hold-out: the key node would see the loss of only 10 ")
    assert 'taylor.unsafe = ["small-hold-out"]' in refused


def test_few_test_rows(small: World) -> None:
    refused = only(small.check("split.test_fraction=0.05"), "refuses")
    assert refused.startswith("test rows: bank refuses the job: test rows: the coordinator would see the figures of ")


# --- what gradients would give away --------------------------------------------------------------------------


def test_label_bits_count_all_passive_columns(project: World) -> None:
    """6 columns at jitter 0.25: 3 log2(5) = 7 bits."""
    assert "at most 7 bits about its 128 labels, to all 6 passive columns" in said(project.check(), "labels")
    refused = levels(project.check("taylor.batch_rows=20"), "refuses")
    assert any("the 6 columns of all passive parties could reveal 7 bits" in text for text in refused)


@pytest.mark.parametrize(
    ("option", "flag", "about"),
    [
        ("taylor.jitter=0", "no-jitter", ["labels"]),
        ("taylor.gradient_noise=0", "no-gradient-noise", ["gradient noise"]),
        ("taylor.class_weights=balanced", "class-weights", ["class weights"]),
    ],
)
def test_a_defence_that_is_switched_off(project: World, option: str, flag: str, about: list[str]) -> None:
    refused = levels(project.check(option), "refuses")
    assert [text.split(":")[0] for text in refused] == about
    assert all(f'taylor.unsafe = ["{flag}"]' in text for text in refused)
    project.set("policy.unsafe", [flag])
    allowed = project.check(option, f"taylor.unsafe=['{flag}']")
    assert not levels(allowed, "refuses")
    assert [text.split(":")[0] for text in levels(allowed, "warning")] == ["taylor.unsafe", *about]


def test_a_row_that_stands_out(project: World) -> None:
    """One column that is not zero on one common row only."""
    ids = project.table("shop")["id"]
    project.columns("shop", shop0=np.where(ids == "u7", 1.0, 0.0))
    found = [said(project.check(f"seed={seed}"), "shop") for seed in range(20)]
    assert any("after 1 of 390 were shortened" in text for text in found)


# --- label DP ------------------------------------------------------------------------------------------------


def test_label_dp(project: World) -> None:
    findings = project.check("privacy.epsilon=1.0")
    assert not levels(findings, "refuses")
    assert "budget of customers: epsilon 0 of 2 is spent" in said(findings, "bank")
    assert "on each coordinate of an epoch's mean gradient" in said(findings, "noise")
    assert not said(findings, "labels")  # epsilon bounds what jitter would
    for party in ("bank", "post", "shop"):
        assert "no row stands out" in said(findings, party)
    assert "0 for the hold-out loss" in said(findings, "split")


def test_a_delta_of_one_in_the_rows(project: World) -> None:
    project.set("populations.customers.epsilon", 50.0, "bank")
    project.set("policy.max_delta", 0.1)
    findings = project.check("privacy.epsilon=1.0", "privacy.delta=0.01")
    assert "0.01 is not below one in the number of rows" in said(findings, "privacy.delta")
    assert not said(project.check("privacy.epsilon=1.0"), "privacy.delta")


def test_under_label_dp_what_protects_features_stays_on(project: World) -> None:
    """A partner reads a column of few values from differences of gradients, in which the kept noise cancels."""
    refused = levels(project.check("privacy.epsilon=1.0", "taylor.gradient_noise=0"), "refuses")
    assert [text.split(":")[0] for text in refused] == ["gradient noise"]
    assert all('taylor.unsafe = ["no-gradient-noise"]' in text for text in refused)
    project.set("policy.unsafe", ["no-gradient-noise"])
    allowed = project.check("privacy.epsilon=1.0", "taylor.gradient_noise=0", "taylor.unsafe=['no-gradient-noise']")
    assert not levels(allowed, "refuses")
    warned = [text.split(":")[0] for text in levels(allowed, "warning")]
    assert warned == ["taylor.unsafe", "gradient noise"]


def test_the_bits_of_a_training_come_with_whom_they_hold_against(project: World) -> None:
    assert "against passive parties that follow the protocol" in said(project.check(), "account")


def test_label_dp_of_numbers_needs_their_public_range(project: World) -> None:
    labels = np.random.default_rng(0).normal(50, 10, N_ROWS).round(1)
    project.columns("bank", paid=labels)
    project.set("datasets.loans.label_kind", "number", "bank")
    options = ("privacy.epsilon=1.0", "taylor.model=linear")
    assert "datasets.loans.label_range is missing" in only(project.check(*options), "refuses")
    project.set("datasets.loans.label_range", [0.0, 100.0], "bank")
    assert not levels(project.check(*options), "refuses")


def test_a_budget_that_would_be_passed(project: World) -> None:
    project.set("policy.max_epsilon", 9)
    assert "the budget of customers would be passed" in only(project.check("privacy.epsilon=3"), "refuses")


def test_label_dp_without_a_budget(project: World) -> None:
    project.set("populations", None, "bank")
    project.set("datasets.loans.population", None, "bank")
    assert "datasets.loans.population is missing" in only(project.check("privacy.epsilon=1"), "refuses")


@pytest.mark.parametrize("name", ["bank", "shop"])
def test_label_dp_of_persons(project: World, name: str) -> None:
    project.set("datasets.loans.person", "id2", name)
    project.columns(name, id2=project.table(name)["id"])
    said = [finding for finding in project.check("privacy.epsilon=1") if finding.refuses]
    assert [finding.about for finding in said] == [name]
    assert "protects rows" in said[0].text


def test_noise_that_leaves_little(project: World) -> None:
    warned = only(project.check("privacy.epsilon=0.1"), "warning")
    assert "expect a weak model" in warned


# --- linkage -----------------------------------------------------------------------------------------------------


def test_fewer_common_rows_than_a_policy_asks_for(project: World) -> None:
    project.set("policy.min_common", 120, "post")
    reason = "100 is less than its policy.min_common = 120: set align.min_common = 120, or more"
    assert levels(project.check(), "refuses") == [f"post: post refuses the job: align.min_common: {reason}"]
    assert not levels(project.check("align.min_common=120"), "refuses")


def test_linked_rows(project: World) -> None:
    linked = {"method": "linkage", "fields": ["id", "bank0", "bank1"]}
    project.job("taylor", parties=("bank", "shop", "notary"), align=linked)
    findings = project.check()
    assert "650 slots" in said(findings, "linkage")
    assert "0 to test on" in said(findings, "split")
    assert not levels(findings, "refuses")
    assert "to test by whether 100 rows match who is in the other party's data" in said(findings, "out of the model")
    few = "align.min_common: 99 is less than its policy.taylor.min_linked = 100"
    reason = f"{few}: set align.min_common = 100, or more"
    refused = levels(project.check("align.min_common=99"), "refuses")
    assert refused == [f"{name}: {name} refuses the job: {reason}" for name in ("bank", "shop")]


# --- what it takes -------------------------------------------------------------------------------------------


def test_time_and_bytes(project: World) -> None:
    findings = project.check()
    assert "20 epochs, or fewer, of" in said(findings, "time")
    assert "µs for a product mod n^2" in said(findings, "time")
    assert "MB to send" in said(findings, "bytes")
    assert "20 epochs of" in said(project.check("taylor.patience=0"), "time")


@pytest.mark.parametrize(("epsilon", "noise", "less"), [(0.5, 1, True), (1, 2, True), (0.5, 3, False), (2, 1, False)])
def test_at_a_small_epsilon_more_fresh_noise_is_advised(
    project: World, epsilon: float, noise: float, less: bool
) -> None:
    findings = project.check(f"privacy.epsilon={epsilon}", f"taylor.gradient_noise={noise}")
    hidden = said(findings, "post")
    assert "hides columns of few values" in hidden
    assert ("less than 3 would do at this epsilon (taylor.gradient_noise)" in hidden) == less
