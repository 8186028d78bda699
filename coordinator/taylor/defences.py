"""The defences between gradients and anyone who would read labels or features in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from blindfit.algorithms.statistics.vertical.loss import LOSSES, label_bits
from blindfit.coordinator.taylor.figures import Figures
from blindfit.coordinator.terminal.wording import count, figure, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.defence import Defence, names_of_those_on
from blindfit.parties.taylor.parameters import match_rate

# What each flag of taylor.unsafe gives up.
GIVEN_UP = {
    "no-jitter": "labels without jitter: a few batches can reveal every label",
    "no-gradient-noise": "answers with little noise: differences of gradients reveal columns of few values",
    "leverage": "rows that stand out: a gradient can reveal a single row's label or score",
    "label-bits": "more passive columns than a batch hides labels from",
    "small-hold-out": "a hold-out loss of few rows, which the key node reads, or figures of few test rows",
    "class-weights": "class weights, which differences of gradients show, and labels with them",
}


LABEL_DEFENCES = ("Kept noise", "Bounded rows", "Bounded labels")  # for label DP; these protect no features


def defences_of(facts: Figures) -> list[Defence]:
    own = _describe_kept_noise(facts) if facts.job.privacy is not None else [_jitter(facts)]
    return [*own, _noisy_gradients(facts), _leverage(facts), *_always(facts)]


def list_defences(facts: Figures, *, but: Collection[str] = ()) -> str:
    """List the defences that are on: A, b and c."""
    return names_of_those_on(defence for defence in defences_of(facts) if defence.name not in but)


def _describe_kept_noise(facts: Figures) -> Iterator[Defence]:
    yield Defence(
        "Kept noise",
        True,
        f"{facts.roles.key_node} adds Gaussian noise to every party's gradient of a batch. The noise is drawn once and "
        "is the same in every epoch: the part of labels in all gradients is one release.",
    )
    yield Defence("Bounded rows", True, "Every party shortens its rows to its part of the bound on a whole row.")
    if facts.job.taylor.model == "linear":
        text = f"{facts.roles.active} clips its labels to a public range, and scales them only by this range."
        yield Defence("Bounded labels", True, text)


def _jitter(facts: Figures) -> Defence:
    settings, active = facts.job.taylor, facts.roles.active
    return Defence(
        "Jitter",
        settings.jitter > 0,
        f"{active} adds noise of standard deviation {figure(settings.jitter)} to the term of each label, drawn once "
        f"for each row and kept.{_bits(facts)}"
        if settings.jitter > 0
        else f"{active} added no noise to the terms of its labels.",
    )


def _noisy_gradients(facts: Figures) -> Defence:
    name, key_node, noise_std = "Noisy gradients", facts.roles.key_node, facts.job.taylor.gradient_noise
    if noise_std == 0 and facts.job.privacy is None:
        return Defence(name, False, f"{key_node} decrypted gradients without noise.")
    if noise_std == 0:
        text = "kept noise cancels in differences of gradients, which reveal the columns of other parties."
        return Defence(name, False, f"{key_node} drew no new noise in each epoch: {text}")
    text = f"{key_node} adds noise of standard deviation {figure(noise_std)} to every coordinate of a batch's sum, new"
    covers = "; kept noise cancels in differences of gradients, and hides no feature." if facts.job.privacy else "."
    return Defence(name, True, f"{text} in each epoch{covers}")


def _bits(facts: Figures) -> str:
    """Return a sentence about how many bits a batch reveals despite the jitter."""
    if not facts.knows_all:
        return ""
    columns = sum(facts.rows[name].features for name in facts.roles.passives)
    bits = label_bits(columns, facts.job.taylor.jitter, LOSSES[facts.job.taylor.model].cross)
    labels = max(1, int(facts.smallest_batch * match_rate(facts.job)))
    return (
        f" A batch reveals at most {bits:.0f} bits about its labels, which are {count(labels)} or more, to "
        f"all {quantity(columns, 'passive column')} together."
    )


def _leverage(facts: Figures) -> Defence:
    settings = facts.job.taylor
    name = "Leverage limit"
    if "leverage" in settings.unsafe:
        return Defence(name, False, "Training used the rows that a party's gradient singles out without a change.")
    found = joint.describe_shortened(facts)
    return Defence(name, True, f"Each party shortens its rows that its gradient would single out. {found}")


def _always(facts: Figures) -> Iterator[Defence]:
    yield Defence(
        "Kept batches", True, "Batches are drawn once, so that no epoch reveals other sums of the same labels."
    )
    yield Defence(
        "Masks",
        True,
        f"A gradient carries a uniform mask when {facts.roles.key_node} decrypts it, and every ciphertext is "
        "re-randomised before it is sent.",
    )
