"""The privacy statement of a training on secret shares: the promise, opened values, who learnt what, whom to trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.algorithms.sharing.scoring import BINS
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_BITS_PER_ROW
from blindfit.coordinator.falcon import privacy, trust
from blindfit.coordinator.falcon.defences import defences_of, list_defences
from blindfit.coordinator.falcon.figures import Figures, OpenedWeights, figures_of
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, figure, join_names, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical import selection

SHARED_PREDICTIONS = (
    "Joint predictions: scores are computed in shares, and the active party learns them. Scores of rows are equations "
    "in the weights. Prediction is a separate protocol with separate quotas."
)
ALL_SHARES_HERE = (
    "In this run, however, all parties ran on this machine: anyone who can read its files has all shares, and so has "
    "the model."
)
PREDICTIONS = (
    "Joint predictions: each data party's part of a score is computed from its opened weights, and the active party "
    "learns the scores. Prediction is a separate protocol with separate quotas."
)


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the statement.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        *([_promise(facts)] if facts.job.privacy is None else privacy.describe_promise(facts)),
        Section("defences", "Defences", tuple(defence.sentence for defence in defences_of(facts))),
        Section("opened", "What was opened", tuple(_describe_opening(facts))),
        *([] if facts.job.privacy else [Section("weights", _about_weights(facts), tuple(_weights(facts)))]),
        *joint.list_learnt_sections(
            trust.list_what_each_learns(facts.roles, facts.job),
            all_here=bool(report["parties_here"]),
            on_one_machine=ALL_SHARES_HERE if facts.stays_shared else joint.ON_ONE_MACHINE,
        ),
        Section("collusion", "Who may collude with whom", trust.colluding(facts.roles, facts.job)),
        Section("out-of-model", "Parties against whom nothing is promised", trust.out_of_model(facts.roles, facts.job)),
        joint.not_covered(SHARED_PREDICTIONS if facts.stays_shared else PREDICTIONS),
    ]


def two_sentences(facts: Figures) -> str:
    key_node = facts.roles.key_node
    if facts.job.privacy is not None:
        return privacy.two_sentences(facts)
    known = "labels, weights" if facts.job.falcon.is_encrypted else "features, labels"
    return (
        f"No differential privacy: {list_defences(facts)} protect labels and features. {key_node} is trusted: if it "
        f"colludes with a data party, all {known} and scores are known to them."
    )


def _promise(facts: Figures) -> Section:
    against = (
        "If data parties deviate, up to all but one, MACs make all parties abort before anything unmasked is opened."
        if facts.job.falcon.macs
        else "Data parties are trusted to follow the protocol: nothing was checked."
    )
    return Section(
        "promise",
        "What is promised",
        (
            f"No differential privacy: no epsilon bounds what {_what_is_opened(facts)} reveal about a row.",
            _how_it_left(facts),
            against,
            f"All of this holds if {facts.roles.key_node}, which deals what the shares need, deals correctly, forgets, "
            "and does not collude with anybody.",
        ),
    )


def _how_it_left(facts: Figures) -> str:
    if not facts.job.falcon.is_encrypted:
        return "Features, labels, scores, residuals and gradients left a party only as secret shares, or masked."
    return (
        "Features and gradients left no party in any form. Weights and scores left only masked, or encrypted under a "
        "key that all data parties hold together. Labels and residuals left only masked, or as secret shares."
    )


def _what_is_opened(facts: Figures) -> str:
    return "figures of test rows" if facts.stays_shared else "opened weights and figures"


# --- opened values ---------------------------------------------------------------------------------------------


def _describe_opening(facts: Figures) -> Iterator[str]:
    who = join_names(facts.roles.chain)
    bits = "two bits" if trust.judges(facts.job) else "one bit"
    about = "whether all scores and weights were in range" + (
        ", and whether training ended there, by the validation loss" if trust.judges(facts.job) else ""
    )
    if facts.job.privacy is None:
        yield f"After each of {quantity(facts.fit.epochs, 'epoch')}, {who} learnt {bits}: {about}."
    yield from selection.describe_opening(facts.selected, facts.roles.active)
    how = "not rounded" if facts.weight_bits is None else f"{facts.weight_bits} bits each"
    if facts.stays_shared:
        yield "No weight was opened to anybody."
    else:
        yield f"Each of them, and nobody else, learnt the weights of its own columns, {how}."
    if facts.shared_rows.test:
        rows = quantity(facts.shared_rows.test, "test row")
        yield f"Only {facts.roles.active} learnt, for {rows}: {_figures(facts)}."
    yield "Every other opened value was masked, each time by a fresh mask."


def _figures(facts: Figures) -> str:
    if facts.job.falcon.model == "linear":
        return "the sum of the squared errors"
    return f"the confusion matrix, the log loss, AUC and KS, the last two over {BINS} bins"


def _about_weights(facts: Figures) -> str:
    return "Owners of the model" if facts.stays_shared else "What opened weights reveal about labels"


def _who_holds_what(facts: Figures) -> Iterator[str]:
    chain, key_node = join_names(facts.roles.chain), facts.roles.key_node
    macs = ", their MACs, and its share of the MACs' key" if facts.job.falcon.macs else ""
    yield (
        f"{chain} each keep the scaling of their own columns, and their shares of all weights{macs}. The shares are "
        "uniform "
        "numbers, in a file that is sent nowhere. All of these files together are the model. Without one of them, the "
        "others reveal nothing of the model and make no prediction."
    )
    yield (
        f"{key_node} keeps nothing: each prediction has its own seeds and MAC key. `blindfit purge` at any one "
        "data party ends the model for all."
    )
    yield (
        f"{facts.roles.active} counts what the end of a training reveals about its labels, and nothing else of this "
        "training: no weight was opened."
    )


def _weights(facts: Figures) -> Iterator[str]:
    """Yield what opened weights reveal. Each number is a bound for every computation on the weights."""
    if facts.stays_shared:
        yield from _who_holds_what(facts)
        return
    passives, active = facts.roles.passives, facts.roles.active
    yield f"A passive party's weights are a release: they depend on {active}'s labels."
    if facts.weight_bits is None:
        yield (
            f"They were not rounded (falcon.unsafe, weight-bits): {join_names(passives)} may compute labels from them, "
            "above all after few epochs, when a party's weights are nearly a gradient."
        )
        return
    rows = facts.shared_rows.trained
    for name, own in facts.opened.items():
        yield f"{name}'s {_describe_leak(own)}"
    if facts.pooled is not None:
        yield f"If {join_names(passives)} pool them: {_describe_leak(facts.pooled)}"
    yield (
        f"{active} counts the bits of a passive party's weights over all trainings on the same people, in all "
        f"snapshots. It opens at most {MOST_BITS_PER_ROW:g} bits for each label, if half of the labels are 1. It does "
        "not count what passive parties pool. The limit is a total and promises nothing to one person: it equals all "
        "information in the labels of a quarter of the people, and of more people if labels are rare. In our attack a "
        f"party that chose its columns read the labels of {max(1, rows // 24):,} of {rows:,} people in full. "
        'privacy.epsilon bounds it for each person, and falcon.weights = "shared" opens no weight.'
    )


def _describe_leak(own: OpenedWeights) -> str:
    return (
        f"{quantity(own.weights, 'weight')} of {own.bits} bits have at most {count(own.all_bits)} bits about "
        f"{count(own.rows)} training labels, {figure(own.of_each_label)} for each."
    )
