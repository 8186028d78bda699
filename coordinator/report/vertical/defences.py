"""What stood between gradients and whoever would read labels or features in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blindfit.algorithms.statistics.taylor import label_bits
from blindfit.coordinator.report.vertical.figures import Figures
from blindfit.coordinator.report.wording import count, counted, figure

# What each flag of taylor.unsafe gives up.
GIVEN_UP = {
    "no-jitter": "labels without jitter: a few batches can give away every label",
    "no-gradient-noise": "answers with little noise: columns of few values can be read from differences of gradients",
    "leverage": "rows that stand out: a gradient can tell a single row's label or score",
    "label-bits": "more passive columns than a batch hides labels from",
    "small-hold-out": "a hold-out loss of few rows, which the key node reads",
}


@dataclass(frozen=True)
class Defence:
    name: str
    is_on: bool
    text: str


def defences_of(facts: Figures) -> list[Defence]:
    own = _with_label_dp(facts) if facts.job.privacy is not None else _without_label_dp(facts)
    return [*own, *_always(facts)]


def switched_on(facts: Figures) -> str:
    """A, b and c."""
    names = [defence.name[:1].lower() + defence.name[1:] for defence in defences_of(facts) if defence.is_on]
    return ", ".join(names[:-1]) + f" and {names[-1]}"


def _with_label_dp(facts: Figures) -> Iterator[Defence]:
    yield Defence(
        "Kept noise",
        True,
        f"{facts.roles.key_node} adds Gaussian noise to every party's gradient of a batch, drawn once and the same in "
        "every epoch: the labels' part of all gradients is one release.",
    )
    yield Defence("Bounded rows", True, "Every party shortens its rows to its part of one bound on a whole row.")


def _without_label_dp(facts: Figures) -> Iterator[Defence]:
    settings, active = facts.job.taylor, facts.roles.active
    yield Defence(
        "Jitter",
        settings.jitter > 0,
        f"{active} adds noise of standard deviation {figure(settings.jitter)} to each label's term, drawn once for "
        f"each row and kept.{_bits(facts)}"
        if settings.jitter > 0
        else f"{active} added nothing to its labels' terms.",
    )
    yield Defence(
        "Noisy gradients",
        settings.gradient_noise > 0,
        f"{facts.roles.key_node} adds noise of standard deviation {figure(settings.gradient_noise)} to every "
        "coordinate of a batch's sum, anew in each epoch."
        if settings.gradient_noise > 0
        else f"{facts.roles.key_node} decrypted gradients as they are.",
    )
    yield _leverage(facts)


def _bits(facts: Figures) -> str:
    """What the jitter is worth."""
    if not facts.knows_all:
        return ""
    columns = sum(facts.rows[name].features for name in facts.roles.passives)
    bits = label_bits(columns, facts.job.taylor.jitter)
    return (
        f" A batch gives away at most {bits:.0f} bits about its labels, {count(facts.smallest_batch)} or more, to "
        f"all {counted(columns, 'passive column')} together."
    )


def _leverage(facts: Figures) -> Defence:
    settings = facts.job.taylor
    name = "Leverage limit"
    if "leverage" in settings.unsafe:
        return Defence(name, False, "Rows that a party's gradient singles out were trained on as they are.")
    if settings.leverage == "refuse":
        return Defence(name, True, "There was no row that a party's gradient would single out: the job refuses them.")
    shortened = [f"{count(rows.shrunk)} of {party}" for party, rows in facts.rows.items() if rows.shrunk]
    found = f"Here {', '.join(shortened)}." if shortened else "Here there were none."
    return Defence(name, True, f"Each party shortens those of its rows that its gradient would single out. {found}")


def _always(facts: Figures) -> Iterator[Defence]:
    yield Defence(
        "Kept batches", True, "Batches are drawn once, so that no epoch asks about other sums of the same labels."
    )
    yield Defence(
        "Masks",
        True,
        f"A gradient carries a uniform mask when {facts.roles.key_node} decrypts it, and every ciphertext is "
        "re-randomised before it is sent.",
    )
