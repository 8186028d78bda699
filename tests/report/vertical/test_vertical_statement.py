"""The privacy statement of a vertical training has each claim if it holds, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report import Written
from blindfit.coordinator.taylor.cautions import cautions_of
from blindfit.coordinator.taylor.figures import figures_of
from blindfit.coordinator.taylor.statement import privacy_statement
from blindfit.coordinator.vertical.roles import Roles
from tests.each_case import each_case
from tests.report.pages import on_screen
from tests.report.vertical.conftest import MadeUpTraining

LINKED = {"align": {"method": "linkage", "fields": ["name", "born:date", "postcode"]}}


def text_of(training: MadeUpTraining, topic: str, *, here: bool = False, **changes: Any) -> str:
    content = (training.written if here else training.submitted)(**changes).content
    (section,) = [s for s in privacy_statement(content) if s.topic == topic]
    return " ".join(section.sentences)


def cautions(written: Written) -> list[str]:
    return cautions_of(figures_of(written.content))


def topics(training: MadeUpTraining) -> list[str]:
    return [section["topic"] for section in training.submitted().content["privacy_statement"]]


LEARNT = ["learnt-active", "learnt-passive", "learnt-key-node", "learnt-coordinator"]
LAST = ["collusion", "out-of-model", "not-covered"]


def test_every_topic_once(training: MadeUpTraining) -> None:
    assert topics(training) == ["promise", "defences", *LEARNT, *LAST]


def test_every_topic_once_under_label_dp(training: MadeUpTraining) -> None:
    promise = ["unit", "neighbours", "epsilon", "delta", "mechanism", "noise", "composition"]
    assert topics(training.with_label_dp()) == [*promise, *LEARNT, *LAST]


# --- without differential privacy --------------------------------------------------------------------------


def test_nothing_is_promised_that_is_not(training: MadeUpTraining) -> None:
    said = text_of(training, "promise")
    assert said.startswith("No differential privacy: no epsilon bounds")
    assert "jitter, noisy gradients, leverage limit, kept batches and masks" in said


@pytest.mark.parametrize("topic", ["promise", "out-of-model"])
def test_it_says_whom_its_bits_hold_against_and_what_to_do(training: MadeUpTraining, topic: str) -> None:
    said = text_of(training, topic)
    assert "counted for labels hold against passive parties that follow the protocol" in said
    assert "sends other columns in each epoch or session reads nearly every label" in said
    assert 'falcon.weights = "shared"' in said
    assert "linkages" not in said


def test_after_linkage_it_says_so_of_linkages_too(training: MadeUpTraining) -> None:
    training.settings |= LINKED
    training.with_roles(bank="active", shop="passive", notary="key_node")
    training.report |= {"evaluation": None}
    training.report["rows"]["test"] = 0
    assert "one more bit each time, and no entry counts it" in text_of(training, "out-of-model")


def test_epsilon_too_holds_against_those_who_follow_the_protocol(training: MadeUpTraining) -> None:
    said = text_of(training.with_label_dp(), "unit")
    assert "Epsilon holds against passive parties that follow the protocol" in said
    assert "cancels the kept noise" in said


def test_defences_say_what_they_are_worth(training: MadeUpTraining) -> None:
    said = text_of(training, "defences")
    assert "standard deviation 0.25 to the term of each label" in said
    # Two passive columns: log2(1 + 1 / (4 / 16)) bits.
    assert "at most 2 bits about its labels, which are 128 or more, to all 2 passive columns together" in said


@pytest.mark.parametrize(
    ("settings", "off", "said"),
    [
        ({"jitter": 0.0, "unsafe": ["no-jitter"]}, "Jitter (off)", "bank added no noise to the terms of its labels"),
        (
            {"gradient_noise": 0.0, "unsafe": ["no-gradient-noise"]},
            "Noisy gradients (off)",
            "decrypted gradients without noise",
        ),
        ({"unsafe": ["leverage"]}, "Leverage limit (off)", "rows that a party's gradient singles out without a change"),
    ],
)
def test_a_defence_that_is_off(training: MadeUpTraining, settings: dict[str, Any], off: str, said: str) -> None:
    training.settings["taylor"] = settings
    text = text_of(training, "defences")
    assert off in text
    assert said in text
    assert off.split(" (")[0].lower() not in text_of(training, "promise")


def test_how_many_rows_stood_out_is_told_their_owner_alone(training: MadeUpTraining) -> None:
    training.report["rows"]["shrunk"] = 5
    assert "Here 5 of bank" in text_of(training, "defences", here=True)
    assert "The numbers are in each party's own report" in text_of(training, "defences")


# --- under label DP --------------------------------------------------------------------------------------------


def test_the_figures_are_the_trainings(training: MadeUpTraining) -> None:
    training.with_label_dp()
    assert "the label of one row, a loan, against everybody but bank" in text_of(training, "unit")
    assert "e^epsilon = 7.389" in text_of(training, "epsilon")
    assert "here 1/960" in text_of(training, "delta")
    assert "For any number of epochs" in text_of(training, "mechanism")
    assert "jitter" not in text_of(training, "mechanism").lower()
    composed = text_of(training, "composition")
    assert "After this job epsilon 3 is spent; 5 is left." in composed
    assert "publishing them is a separate release" in composed


def test_what_protects_features_is_on_under_label_dp_too(training: MadeUpTraining) -> None:
    said = text_of(training.with_label_dp(), "mechanism")
    assert "adds noise of standard deviation 1 to every coordinate of a batch's sum, new in each epoch;" in said
    assert "Each party shortens its rows that its gradient would single out" in said
    assert "Bounded labels" not in said
    sentences = shown(training, here=False)
    assert "noisy gradients, leverage limit, kept batches and masks protect features" in " ".join(sentences.split())


def test_what_protects_features_may_be_off_under_label_dp(training: MadeUpTraining) -> None:
    training.with_label_dp().settings["taylor"] = {"gradient_noise": 0.0, "unsafe": ["no-gradient-noise", "leverage"]}
    said = text_of(training, "mechanism")
    assert "Noisy gradients (off): notary drew no new noise in each epoch" in said
    assert "Leverage limit (off)" in said
    assert [c.split(":")[0] for c in cautions(training.submitted()) if "taylor.unsafe" in c] == [
        "Unsafe, but allowed by the job (taylor.unsafe, no-gradient-noise)",
        "Unsafe, but allowed by the job (taylor.unsafe, leverage)",
    ]


def test_numbers_are_clipped_to_their_public_range(training: MadeUpTraining) -> None:
    training.with_label_dp().settings["taylor"] = {"model": "linear"}
    assert "bank clips its labels to a public range" in text_of(training, "mechanism")
    # twice the noise of classes: a label changes b y by 2
    assert "The standard deviation of the kept noise is 12.21 in every" in text_of(training, "noise")


def test_how_many_labels_were_clipped_is_in_the_active_partys_report_alone(training: MadeUpTraining) -> None:
    training.report["labels"] = {"clipped": 3, "range": [0.0, 100.0]}
    (here,) = [c for c in cautions(training.written()) if "clipped" in c]
    assert here.startswith("3 labels of bank lay outside 0 to 100, and training used their clipped values")
    assert not [c for c in cautions(training.submitted()) if "clipped" in c]
    training.report["labels"] = {"clipped": 3, "range": None}
    assert "far from their mean" in " ".join(cautions(training.written()))


def test_the_noise_is_what_the_key_node_adds(training: MadeUpTraining) -> None:
    """R = 1.25 sqrt(6), 5 features and the intercept; a label changes b y by 1; the multiplier is 1.994."""
    said = text_of(training.with_label_dp(), "noise")
    assert "The standard deviation of the kept noise is 6.105 in every coordinate of a batch's sum, 1.994 times" in said
    assert "0.05087 in the mean over the smallest batch, of 120 rows" in said


# --- who learnt what -----------------------------------------------------------------------------------------


def test_one_passive_party_cannot_hide_its_part(training: MadeUpTraining) -> None:
    assert "it does not see the part of a passive party" in text_of(training, "learnt-active")
    training.with_roles(bank="active", shop="passive", notary="key_node")
    assert "The score minus its own part is shop's part" in text_of(training, "learnt-active")
    assert "shop by itself learns at most" in text_of(training, "collusion")


def test_passive_parties_are_named(training: MadeUpTraining) -> None:
    content = training.submitted().content
    titles = [section["title"] for section in content["privacy_statement"]]
    assert "What each of post and shop (passive parties) learnt" in titles


def test_what_a_passive_party_learnt_of_labels(training: MadeUpTraining) -> None:
    assert "promise no differential privacy" in text_of(training, "learnt-passive")
    assert "within epsilon and delta" in text_of(training.with_label_dp(), "learnt-passive")


def test_alignment_by_ids_or_by_likeness(training: MadeUpTraining) -> None:
    assert "Which of its own rows all data parties have" in text_of(training, "learnt-passive")
    assert "shuffled positions" in text_of(training, "learnt-key-node")
    training.settings |= LINKED
    training.with_roles(bank="active", shop="passive", notary="key_node")
    training.report |= {"evaluation": None}
    training.report["rows"]["test"] = 0
    assert "No message states how many rows match, or which" in text_of(training, "learnt-passive")
    assert "Keyed filters" in text_of(training, "learnt-key-node")
    assert "scores of the test rows" not in text_of(training, "learnt-active")
    assert "could also guess the records of the other" in text_of(training, "collusion")


def test_without_a_hold_out_loss_nobody_learnt_one(training: MadeUpTraining) -> None:
    assert "The loss of the hold-out rows" in text_of(training, "learnt-key-node")
    training.settings["taylor"] = {"validation_fraction": 0.0}
    training.losses = ()
    assert "The loss of the hold-out rows" not in text_of(training, "learnt-key-node")
    assert "whether to go on" not in text_of(training, "learnt-passive")


def test_the_coordinator_of_one_machine_sees_more(training: MadeUpTraining) -> None:
    assert "hold-out losses and the figures of the evaluation" in text_of(training, "learnt-coordinator")
    assert "this machine" not in text_of(training, "learnt-coordinator")
    assert "all parties ran on this machine" in text_of(training, "learnt-coordinator", here=True)
    assert "No figure that was made from labels" in text_of(training.with_label_dp(), "learnt-coordinator")


# --- who may collude, and what nobody promises -----------------------------------------------------------------


def test_a_key_node_that_colludes_reads_labels(training: MadeUpTraining) -> None:
    said = text_of(training, "collusion")
    assert "With post or shop it reads scores and labels of the training rows;" in said
    assert "at any epsilon" in text_of(training.with_label_dp(), "collusion")


def test_passive_parties_together(training: MadeUpTraining) -> None:
    assert "at most the bits that the bound counts" in text_of(training, "collusion")
    training.settings["taylor"] = {"unsafe": ["label-bits"]}
    assert "the bound on what a batch reveals was switched off" in text_of(training, "collusion")
    del training.settings["taylor"]
    assert "no more about the labels than epsilon and delta allow" in text_of(training.with_label_dp(), "collusion")


def test_what_is_out_of_the_model(training: MadeUpTraining) -> None:
    said = text_of(training, "out-of-model")
    assert "If a passive party submits another ciphertext" in said
    assert "A key node that colludes" in said
    assert "shorten its rows" not in said
    assert "shorten its rows" in text_of(training.with_label_dp(), "out-of-model")


@each_case("missing", ["active", "passive", "key-node"])
def test_roles_are_all_there(missing: str) -> None:
    roles = {"a": "active", "b": "passive", "c": "passive", "d": "key-node"}
    with pytest.raises(DataError, match="names no active party, passive party and key node"):
        Roles.of({name: role for name, role in roles.items() if role != missing})


# --- the terminal ------------------------------------------------------------------------------------------


def shown(training: MadeUpTraining, *, here: bool, **changes: Any) -> str:
    return on_screen((training.written if here else training.submitted)(**changes), width=110)


def test_the_summary_in_the_terminal(training: MadeUpTraining) -> None:
    text = shown(training, here=True)
    assert len(text.splitlines()) <= 16
    for part in (
        "1,200 in common: 780 trained on, 180 hold-out, 240 test",
        "3 of bank, 1 of post, 1 of shop",
        "logistic, 4 epochs, hold-out loss 0.519",
        "AUC 0.8731, KS 0.6123, log loss 0.4321, accuracy 0.8125",
        "jitter, noisy gradients, leverage limit, kept batches and masks",
        "No differential privacy",
        "11 s",  # 1.2 s to launch, 9.5 s from the proposal on
        str(training.out / "report.html"),
        *(str(training.out / party / "model.json") for party in training.chain),
    ):
        assert part in text


def test_the_terminal_under_label_dp(training: MadeUpTraining) -> None:
    text = shown(training.with_label_dp(), here=False)
    for part in (
        "known only to bank",
        "epsilon 2, delta 1e-05, the label of one row, a loan",
        "3 of 8 spent on customers, 5 left",
        "kept by shop",
        "Epsilon 2 at delta 1e-05 protects the label of one row, a loan from post and shop",
    ):
        assert part in text


def test_markup_is_not_read_in_the_terminal(training: MadeUpTraining) -> None:
    text = shown(training.with_label_dp(population="[red]", unit="[bold]why[/bold]"), here=False)
    assert "spent on [red]" in text
    assert "[bold]why[/bold]" in text
