"""The privacy statement of a training in shares has each claim if it holds, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from blindfit.coordinator.falcon import trust as trust_in_shares
from blindfit.coordinator.falcon.view import KIND
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.falcon.settings import FalconJob
from tests.report.falcon.conftest import MadeUpShares
from tests.report.falcon.statement_texts import TOPICS, text_of

SEMI_HONEST = {"security": "semi-honest"}
UNROUNDED = {"unsafe": ["weight-bits"]}


@pytest.mark.parametrize("settings", [{}, SEMI_HONEST, UNROUNDED])
def test_every_topic_once(shares: MadeUpShares, settings: dict[str, Any]) -> None:
    statement = shares.with_(**settings).submitted().content["privacy_statement"]
    assert [section["topic"] for section in statement] == TOPICS
    assert all(section["sentences"] for section in statement)


# --- what is promised -----------------------------------------------------------------------------------------


def test_no_differential_privacy(shares: MadeUpShares) -> None:
    said = text_of(shares, "promise")
    assert said.startswith("No differential privacy: no epsilon bounds")
    assert "gradients left a party only as secret shares, or masked" in said
    assert (
        "if notary, which deals what the shares need, deals correctly, forgets, and does not collude with anybody"
        in said
    )


def test_macs_are_promised_where_there_are_any(shares: MadeUpShares) -> None:
    on, off = "up to all but one, MACs make all parties abort before anything unmasked is opened", "nothing was checked"
    said = text_of(shares, "promise")
    assert on in said
    assert off not in said
    assert "Checks by MACs: " in text_of(shares, "defences")
    shares.with_(**SEMI_HONEST)
    said = text_of(shares, "promise")
    assert on not in said
    assert off in said
    assert "Checks by MACs (off): bank, post and shop were trusted" in text_of(shares, "defences")


def test_in_short(shares: MadeUpShares) -> None:
    said = KIND.in_short(shares.submitted().content)
    assert said.startswith("No differential privacy: secret shares, checks by MACs, rounded weights and shortened rows")
    assert "notary is trusted: if it colludes with a data party, all features, labels and scores are known" in said
    assert "MACs" not in KIND.in_short(shares.with_(**SEMI_HONEST).submitted().content)


def test_how_many_rows_were_shortened_is_told_their_owner_alone(shares: MadeUpShares) -> None:
    shares.report["rows"]["shrunk"] = 5
    assert "Here 5 of bank" in text_of(shares, "defences", here=True)
    assert "The numbers are in each party's own report" in text_of(shares, "defences")


# --- what was opened ------------------------------------------------------------------------------------------


def test_what_was_opened_to_whom(shares: MadeUpShares) -> None:
    said = text_of(shares, "opened")
    assert "After each of 4 epochs, bank, post and shop learnt two bits: whether all scores and weights were in" in said
    assert "and whether training ended there, by the validation loss" in said
    assert "Each of them, and nobody else, learnt the weights of its own columns, 8 bits each." in said
    assert (
        "Only bank learnt, for 240 test rows: the confusion matrix, the log loss, AUC and KS, the last two over 256"
        in said
    )


def test_without_a_validation_loss_one_bit_is_opened(shares: MadeUpShares) -> None:
    shares.with_(validation_fraction=0.0)
    assert (
        "After each of 4 epochs, bank, post and shop learnt one bit: whether all scores and weights were in range."
        in text_of(shares, "opened")
    )
    assert "After each epoch one bit:" in text_of(shares, "learnt-passive")
    assert "validation" not in text_of(shares, "learnt-passive")


def test_without_a_test_no_figure_is_opened(shares: MadeUpShares) -> None:
    assert "confusion matrix" in text_of(shares, "learnt-active")
    assert "figures of the test rows" in text_of(shares, "learnt-coordinator")
    shares.without_test()
    for topic in ("opened", "learnt-active"):
        assert "confusion matrix" not in text_of(shares, topic)
    for topic in ("learnt-key-node", "learnt-coordinator"):
        assert "figure" not in text_of(shares, topic)


def test_what_weights_tell_of_labels(shares: MadeUpShares) -> None:
    said = text_of(shares, "weights")
    assert "are a release: they depend on bank's labels" in said
    for name in ("post", "shop"):
        assert f"{name}'s 1 weight of 8 bits have at most 8 bits about 840 training labels, 0.009524 for each." in said
    assert "If post and shop pool them: 2 weights of 8 bits have at most 16 bits" in said
    assert "over all trainings on the same people, in all snapshots. It opens at most 0.25 bits" in said


def test_a_label_has_one_bit_at_most(shares: MadeUpShares) -> None:
    shares.weights["shop"] = {f"shop{j}": 0.0 for j in range(200)}
    assert "1,600 bits about 840 training labels, 1 for each." in text_of(shares, "weights")


def test_weights_as_they_are_may_give_labels_away(shares: MadeUpShares) -> None:
    shares.with_(**UNROUNDED)
    said = text_of(shares, "weights")
    assert "post and shop may compute labels from them, above all after few epochs" in said
    assert "at most" not in said
    assert "columns, not rounded." in text_of(shares, "opened")
    assert "without rounding they may reveal labels" in text_of(shares, "learnt-passive")
    assert "Rounded weights (off)" in text_of(shares, "defences")


# --- who learnt what -----------------------------------------------------------------------------------------


def test_what_a_passive_party_learnt(shares: MadeUpShares) -> None:
    said = text_of(shares, "learnt-passive")
    assert "The weights of its own columns, rounded and clipped to [-4, 4); no weight of another party." in said
    assert "Which of its own rows all data parties have" in said
    assert "k weights of b bits reveal at most k b bits about them" in said
    assert "No score, no residual, no gradient, no loss, and no figure of the test rows." in said


def test_what_the_key_node_learnt(shares: MadeUpShares) -> None:
    said = text_of(shares, "learnt-key-node")
    assert "shuffled positions" in said
    assert "receives no opened value" in said


def test_the_coordinator_of_one_machine_sees_more(shares: MadeUpShares) -> None:
    assert "this machine" not in text_of(shares, "learnt-coordinator")
    assert "all parties ran on this machine" in text_of(shares, "learnt-coordinator", here=True)


# --- who may collude, and what nobody promises -----------------------------------------------------------------


def test_a_key_node_that_colludes_reads_everything(shares: MadeUpShares) -> None:
    said = text_of(shares, "collusion")
    assert "notary deals what computing in shares needs. It is trusted to deal correctly, to forget" in said
    assert (
        "Together with any one of bank, post and shop it reads everything that is opened: all features, labels and"
        in said
    )


def test_data_parties_that_deviate(shares: MadeUpShares) -> None:
    assert "Of bank, post and shop, all of them but one may collude and deviate" in text_of(shares, "collusion")
    said = text_of(shares.with_(**SEMI_HONEST), "collusion")
    assert "are trusted to follow the protocol (semi-honest)" in said
    assert "MACs" not in said
    assert "either of them may collude and deviate" in text_of(shares.with_().with_two(), "collusion")


def test_passive_parties_that_pool(shares: MadeUpShares) -> None:
    said = "post and shop may pool their weights, and with them the bits about labels"
    assert f"{said}: the limit counts each party by itself" in text_of(shares, "collusion")
    assert f"{said}." in text_of(shares.with_(**UNROUNDED), "collusion")
    assert "pool" not in text_of(shares.with_().with_two(), "collusion")


def test_what_is_out_of_the_model(shares: MadeUpShares) -> None:
    said = text_of(shares, "out-of-model")
    assert "notary can make the result wrong by itself, and the MACs do not notice. It sees no opened value" in said
    assert "nothing checks that a party's features and labels are correct" in said
    assert "MACs" not in text_of(shares.with_(**SEMI_HONEST), "out-of-model")


def test_what_else_tells_something(shares: MadeUpShares) -> None:
    assert "a separate protocol with separate quotas" in text_of(shares, "not-covered")


@pytest.mark.parametrize("security", ["malicious", "semi-honest"])
def test_before_the_training_the_words_are_the_same(shares: MadeUpShares, security: str) -> None:
    """The pre-flight takes them from the job file, the report from the run."""
    roles = Roles.of(shares.roles)
    said = " ".join(trust_in_shares.colluding(roles, FalconJob(falcon={"security": security})))
    assert text_of(shares.with_(security=security), "collusion") == said
