"""`blindfit check` of a training in shares: its findings in the local files, and the cost."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.coordinator.jobs.check import Finding
from blindfit.parties.account.account import Account
from tests.preflight.conftest import N_ROWS
from tests.preflight.findings import levels, only, said
from tests.world import World


def test_a_job_without_trouble(shares: World) -> None:
    findings = shares.check()
    assert not levels(findings, "refuses")
    assert not levels(findings, "warning")
    assert said(findings, "psi") == "600 rows in common"
    assert "420 rows to train on, batches of 128 or more; 60 for the validation loss, 120 to test on" in said(
        findings, "split"
    )
    assert "61 bits hold every number; probabilities are right up to" in said(findings, "field")
    assert "600 rows, 3 features" in said(findings, "bank")
    assert "650 rows, 2 features" in said(findings, "shop")


def test_who_learns_what_and_if_whom_colludes(shares: World) -> None:
    findings = shares.check()
    for who in ("bank (active party)", "each of post and shop (passive parties)", "notary (key node)", "coordinator"):
        assert who in said(findings, "who learns what")
    assert "Together with any one of bank, post and shop it reads everything" in said(findings, "who colludes")
    assert "MACs make all others abort" in said(findings, "who colludes")
    assert "notary can make the result wrong by itself" in said(findings, "out of the model")
    assert "MACs make" not in said(shares.check("falcon.security=semi-honest"), "who colludes")


# --- parties -----------------------------------------------------------------------------------------------


def test_policies_of_all_parties(shares: World) -> None:
    shares.set("policy", {"systems": ["taylor"]}, "shop")
    assert [text.partition(" (")[0] for text in levels(shares.check(), "refuses")] == [
        "shop: shop refuses the job: protocol: falcon is not a system in which it takes part"
    ]


def test_labels_go_with_the_model(shares: World) -> None:
    assert "bank: datasets.loans.label_kind does not go with falcon.model" in only(
        shares.check("falcon.model=linear"), "refuses"
    )
    shares.set("datasets.loans.label_kind", "number", "bank")
    assert "bank: datasets.loans.label_kind does not go with falcon.model" in only(shares.check(), "refuses")
    findings = shares.check("falcon.model=linear")
    assert not levels(findings, "refuses")
    assert "residuals are right up to" in said(findings, "field")
    assert "scores up to 56 deviations of the label; nothing proves" in said(findings, "range")
    assert "The sum of the squared errors" in said(findings, "who learns what")


def test_a_party_that_is_elsewhere(shares: World) -> None:
    shares.set("parties.shop.config", None, "job")
    findings = shares.check()
    assert said(findings, "rows") == "rows of shop cannot be read here, so the training was not tried"
    assert not said(findings, "weights")


def test_bad_data_are_named(shares: World) -> None:
    shares.columns("post", post1=np.array(["x", *shares.table("post")["post1"][1:]]))
    assert "column post1" in only(shares.check(), "refuses")


# --- rows ----------------------------------------------------------------------------------------------------


def test_too_few_rows_in_common(shares: World) -> None:
    ids = shares.table("shop")["id"]
    shares.columns("shop", id=np.array([i if n < 300 else f"v{n}" for n, i in enumerate(ids)]))
    assert not any(text.startswith("psi") for text in levels(shares.check(), "refuses"))
    refused = levels(shares.check("align.min_common=400"), "refuses")
    few = "rows in common are fewer than the job needs: set align.min_common = "
    assert any(few in text for text in refused), refused
    shares.columns("shop", id=np.array([f"v{n}" for n in range(650)]))
    assert "trial: 0 common rows" in only(shares.check(), "refuses")


def test_many_columns_and_few_test_rows(shares: World) -> None:
    shares.columns("bank", **{f"more{j}": np.random.default_rng(j).normal(size=N_ROWS).round(3) for j in range(33)})
    warnings = levels(shares.check("split.test_fraction=0.1"), "warning")
    assert warnings == ["rows: 60 test rows give rough figures: set split.test_fraction = 0.2, or more"]
    assert levels(shares.check("split.test_fraction=0.25"), "warning") == [
        "rows: 390 rows for 43 weights are few: use at most 39 columns; a larger falcon.l2 lets you use more of them"
    ]


def test_a_constant_column_and_rows_that_stand_out(shares: World) -> None:
    ids = shares.table("shop")["id"]
    shares.columns("shop", shop0=np.where(ids == "u7", 1.0, 0.0))
    shares.columns("post", post0=[1.5] * N_ROWS)
    assert "post0 has the same value in every training row" in said(shares.check(), "post")
    found = [said(shares.check(f"seed={seed}"), "shop") for seed in range(10)]
    assert any("1 of 420 rows stand out, and are shortened" in text for text in found)


# --- numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("waves", "bound"), [("narrow", 12), ("medium", 28), ("wide", 56)])
def test_the_range_is_not_proved(shares: World, waves: str, bound: int) -> None:
    told = said(shares.check(f"falcon.waves={waves}"), "range")
    assert f"scores up to {bound} (falcon.waves = {waves}); nothing proves that beforehand" in told
    assert "one bit is opened, and training ends if a score was larger" in told


def test_numbers_that_do_not_fit(shares: World) -> None:
    """Each step takes away more than a weight at this rate."""
    findings = shares.check("falcon.learning_rate=10", "falcon.l2=0.5")
    assert "falcon.learning_rate times falcon.l2 is 1 or more" in only(findings, "refuses")
    assert not said(findings, "time")  # the training is impossible


# --- what weights reveal about labels -------------------------------------------------------------------------


def test_bits_of_opened_weights(shares: World) -> None:
    """420 rows: steps of 1/32, 8 bits; post has 4 columns, shop 2."""
    findings = shares.check()
    told = said(findings, "weights")
    assert "in steps of 1/32 from -4 to 4, 8 bits each" in told
    assert "4 weights of a passive party have at most 32 bits about 420 labels, 0.08 of each" in told
    account = said(findings, "account")
    assert "at most 38 bits about the labels of loans are revealed" in account
    assert "No single person is promised anything" in account
    assert "with 0 bits revealed before, this stays within 150 bits for these people" in account
    assert "for these people, which allow 2 more such trainings" in account


def test_too_many_passive_columns(shares: World) -> None:
    """105 bits are a quarter of 420 labels: 12 weights of 8 bits, and 5 bits for the place where 20 epochs end."""
    more = {f"more{j}": np.random.default_rng(j).normal(size=N_ROWS).round(3) for j in range(10)}
    shares.columns("post", **dict(list(more.items())[:8]))
    findings = shares.check()
    assert not levels(findings, "refuses")
    assert "for these people, which allow no further training like this" in said(findings, "account")
    shares.columns("post", **more)
    refused = only(shares.check(), "refuses")
    assert "a passive party could learn 0.28 bits of each label from its weights (at most 0.25)" in refused
    assert 'falcon.unsafe = ["weight-bits"] allows it' in refused


def test_trainings_before_count(shares: World) -> None:
    """Trainings before the newest snapshot count too: 38 more bits stay within 150 after 90, and not after 120."""
    for bits, fits in ((90, True), (30, False)):
        shares.publish("bank", "loans")
        with shares.store("bank") as store, store.transaction() as transaction:
            account = Account.of(shares.settings("bank"), "loans")
            entry = account.entry("labels", account.label, ["post"], "weights", f"weights {bits}", bits)
            transaction.add_disclosure(entry)
        shares.columns("bank", bank0=shares.table("bank")["bank0"] + 1.0)
        shares.publish("bank", "loans")
        findings = shares.check()
        if fits:
            assert not levels(findings, "refuses")
            assert "with 90 bits revealed before" in said(findings, "account")
    assert "with earlier trainings on the same people, its weights could reveal more" in only(findings, "refuses")
    told = said(findings, "account")
    assert "120 of at most 150 bits about these people's labels were revealed before" in told
    assert "`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`" in told


def test_weights_as_they_are(shares: World) -> None:
    unsafe = "falcon.unsafe=['weight-bits']"
    refused = levels(shares.check(unsafe), "refuses")
    assert [text.split(":")[0] for text in refused] == ["bank", "post", "shop", "notary"]
    shares.set("policy.unsafe", ["weight-bits"])
    findings = shares.check(unsafe)
    assert not levels(findings, "refuses")
    assert [text.split(":")[0] for text in levels(findings, "warning")] == ["falcon.unsafe", "weights"]
    assert "nearly a gradient, which reveals labels" in said(findings, "weights")


# --- what it takes -----------------------------------------------------------------------------------------------


def test_time_rounds_and_bytes(shares: World) -> None:
    findings = shares.check()
    assert "20 epochs, or fewer, of" in said(findings, "time")
    assert (
        "100 ns for each number that is dealt, from a small training now, 400 ns for a number that is compared"
        in said(findings, "time")
    )
    assert "40 ms from party to party add" in said(findings, "rounds")
    assert "MB to send" in said(findings, "bytes")
    assert "from the key node to the active party" in said(findings, "bytes")
    alone = shares.check("falcon.validation_fraction=0", "falcon.epochs=1")
    assert "1 epoch of" in said(alone, "time")
    assert rounds(alone) < rounds(findings)


def rounds(findings: list[Finding]) -> int:
    """Return the number of rounds in all."""
    return int(said(findings, "rounds").split(" in all")[0].split()[-1].replace(",", ""))


def test_weights_that_stay_shared_tell_nothing(shares: World) -> None:
    """There are as many columns as would be refused if their weights were opened."""
    shares.columns("post", **{f"more{j}": np.random.default_rng(j).normal(size=N_ROWS).round(3) for j in range(10)})
    assert 'or set falcon.weights = "shared"' in only(shares.check(), "refuses")
    findings = shares.check("falcon.weights=shared")
    assert not levels(findings, "refuses")
    told = said(findings, "weights")
    assert "stay in shares: nobody gets a weight" in told
    assert "only the end of training reveals something about labels, 0.014 bits of each" in told  # log2(61) / 420
