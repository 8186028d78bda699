"""The privacy statement of a vertical training: what is protected, how strongly, who learnt what, who may collude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.taylor import trust
from blindfit.coordinator.taylor.defences import LABEL_DEFENCES, defences_of, list_defences
from blindfit.coordinator.taylor.figures import Figures, figures_of
from blindfit.coordinator.terminal.wording import figure, join_names, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.parties.store.answers import StoredLabels
from blindfit.parties.taylor.parameters import label_noise_std
from blindfit.parties.training.budget import Charged


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the statement.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        *(_label_dp(facts) if facts.job.privacy is not None else _no_promise(facts)),
        *joint.list_learnt_sections(
            trust.list_what_each_learns(facts.roles, facts.job), all_here=bool(report["parties_here"])
        ),
        Section("collusion", "Who may collude with whom", trust.colluding(facts.roles, facts.job)),
        Section("out-of-model", "Parties against whom nothing is promised", trust.out_of_model(facts.roles, facts.job)),
        joint.not_covered(),
    ]


def two_sentences(facts: Figures) -> str:
    key_node, passives = facts.roles.key_node, join_names(facts.roles.passives)
    if facts.job.privacy is None:
        promise = f"No differential privacy: encryption and {list_defences(facts)} protect labels and features."
    else:
        epsilon, delta = figure(facts.job.privacy.epsilon), figure(facts.job.privacy.delta)
        unit = facts.privacy.unit if facts.privacy else "each label"
        features = f"encryption, {list_defences(facts, but=LABEL_DEFENCES)} protect features"
        promise = f"Epsilon {epsilon} at delta {delta} protects {unit} from {passives}; {features}."
    return f"{promise} {key_node} is trusted: if it colludes with a data party, labels and scores are known to them."


# --- the promise ---- -----------------------------------------------------------------------


def _no_promise(facts: Figures) -> Iterator[Section]:
    yield Section(
        "promise",
        "What is promised",
        (
            "No differential privacy: no epsilon bounds what a party's gradients reveal about labels, over all epochs "
            "and with everything else that this party knows.",
            facts.job.holds_against,
            f"Rows, labels, weights and scores leave a party only under encryption. These defences were on: "
            f"{list_defences(facts)}.",
        ),
    )
    yield Section(
        "defences",
        "Defences",
        tuple(defence.sentence for defence in defences_of(facts)),
    )


def _label_dp(facts: Figures) -> Iterator[Section]:
    if facts.privacy is None:  # in a passive party's own report
        promised = facts.job.required_privacy
        active, epsilon = facts.roles.active, figure(promised.epsilon)
        said = f"The labels of {active} are protected by epsilon = {epsilon} at delta = {figure(promised.delta)}."
        yield Section(
            "promise", "What is promised", (said, facts.job.holds_against, f"{active}'s own report has the details.")
        )
        return
    privacy = facts.privacy
    yield Section(
        "unit",
        "What is protected",
        (
            f"The protected unit is {privacy.unit}, against everybody but {facts.roles.active}, which has the labels.",
            label_privacy.ROWS_OF_A_PERSON,
            facts.job.holds_against,
        ),
    )
    yield label_privacy.neighbours(privacy)
    yield label_privacy.epsilon(privacy)
    yield label_privacy.delta(privacy, facts.shared_rows.trained)
    yield _mechanism(facts)
    yield from _noise(facts, privacy)
    yield _composition(facts, privacy)


def _mechanism(facts: Figures) -> Section:
    return Section(
        "mechanism",
        "Mechanism",
        (
            "The analytic Gaussian mechanism, drawn as a discrete Gaussian on the gradients' grid.",
            *(defence.sentence for defence in defences_of(facts)),
            "The Taylor gradient is linear in the labels, and each row is in one batch. For any number of epochs, "
            "labels enter one noisy sum for each batch.",
            "Epochs are fixed beforehand: nothing that depends on labels decides when to stop.",
        ),
    )


def _noise(facts: Figures, privacy: Charged) -> Iterator[Section]:
    if facts.columns is None:
        return
    noise_std = label_noise_std(facts.job, facts.columns)
    yield Section(
        "noise",
        "Noise",
        (
            f"The standard deviation of the kept noise is {figure(noise_std)} in every coordinate of a batch's "
            f"sum, {figure(privacy.noise_multiplier)} times what one label can change, and "
            f"{figure(noise_std / facts.smallest_batch)} in the mean over the smallest batch, of "
            f"{quantity(facts.smallest_batch, 'row')}.",
            f"{facts.roles.key_node} draws it from its own secret; no seed of the job enters it.",
        ),
    )


def _composition(facts: Figures, privacy: Charged) -> Section:
    return Section(
        "composition",
        "Composition",
        (
            label_privacy.budget(privacy),
            f"After this job epsilon {figure(privacy.spent_epsilon)} is spent; {figure(privacy.left_epsilon)} is left.",
            label_privacy.COMPOSED,
            f"{facts.roles.active} keeps the ledger, and charged the training before it began. Releases of the same "
            "labels outside this ledger are not counted.",
            f"Figures of the evaluation were made from labels without noise: {facts.roles.active} keeps them, and "
            "publishing them is a separate release.",
        ),
    )


def describe_release(entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """Name what a ledger's entry paid for if it was a training without an answer file; else return an empty text."""
    is_training = labels is None and not entry.answer_sha256 and entry.unit.startswith(UNITS["row"][0])
    return "training" if is_training else ""
