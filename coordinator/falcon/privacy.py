"""The report of a training on secret shares under differential privacy: the promise, its noise, the budgets."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.algorithms.privacy.events import WHOLE_ROWS
from blindfit.algorithms.sharing.descent_scales import LARGEST_WEIGHT
from blindfit.coordinator.falcon.figures import Figures
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import figure, join_names, quantity
from blindfit.coordinator.vertical.defence import Defence
from blindfit.parties.falcon.privacy import UNIT
from blindfit.parties.training.budget import Charged

LARGE_NOISE = 0.5  # in a weight, for columns between -1 and 1: as large as a typical weight


def first(facts: Figures) -> Charged:
    """Return the promise, with the budget of the first data party that reported."""
    return next(iter(facts.privacy.values()))


def two_sentences(facts: Figures) -> str:
    privacy, key_node = first(facts), facts.roles.key_node
    return (
        f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {UNIT}, in all opened weights "
        f"together, if every party shortened its rows. {key_node} is trusted: if it colludes with a data party, all "
        "features, labels and scores are known to them."
    )


# --- the statement --------------------------------------------------------------------------------------------------


def describe_promise(facts: Figures) -> Iterator[Section]:
    privacy = first(facts)
    yield Section(
        "promise",
        "What is promised",
        (
            f"The protected unit is {privacy.unit}, in all opened weights together. A party already knows its own part "
            "of a row.",
            label_privacy.ROWS_OF_A_PERSON,
            "The promise holds if every data party shortened its part of each row to "
            f"{figure(facts.job.falcon.norm_bound)} "
            "times the root of its number of columns, and gave labels of 0 and 1. No protocol checks this.",
            "Features, labels, scores, residuals and gradients left a party only as secret shares, or masked. "
            f"{facts.roles.key_node}, which deals what the shares need, is trusted to deal correctly, to forget, and "
            "not to collude with anybody.",
        ),
    )
    neighbours = (
        f"Two sets of rows are neighbours if {WHOLE_ROWS['replace-one']}; the set of rows that all parties have is "
        "public too."
    )
    yield Section("neighbours", "Neighbouring data", (neighbours,))
    yield label_privacy.epsilon(privacy)
    yield label_privacy.delta(privacy, facts.shared_rows.trained)
    yield _noise(facts)
    yield Section("composition", "Composition", tuple(_composition(facts)))


def _noise(facts: Figures) -> Section:
    chain = facts.roles.chain
    return Section(
        "noise",
        "Noise",
        (
            f"Each of {join_names(chain)} added its own noise to every gradient, in shares: a discrete Gaussian from "
            "its "
            "system's generator. Nobody knows the sum. The noise of one party is large enough by itself, even if all "
            "other parties pool their noise or add none.",
            f"A row is in one batch of each of {quantity(facts.fit.epochs, 'epoch')}, always the same batch. These "
            "releases compose exactly, and the draw of the batches does not amplify privacy.",
            f"All noise together moves a weight by a standard deviation of at most "
            f"{figure(facts.fit.weight_noise_std or 0.0)}.",
            "The end of training depends only on the job, and no score was tested for its range.",
        ),
    )


def _composition(facts: Figures) -> Iterator[str]:
    for name, own in facts.privacy.items():
        spent, most = figure(own.spent_epsilon), figure(own.budget_epsilon)
        yield f"{name}: epsilon {spent} of {most} is spent on its population {own.population}."
        if own.spent_neighbours != own.neighbours:
            yield f"There, all releases together protect where {own.spent_neighbours}."
    yield label_privacy.COMPOSED
    yield (
        "Every data party charged its budget before anything was put in. A charge pays for one opening: the same job "
        "on the same snapshots has the same answer. Weights that were opened and lost are charged again."
    )


# --- defences, cards, cautions --------------------------------------------------------------------------------------


def defences(facts: Figures) -> Iterator[Defence]:
    privacy, bound = first(facts), figure(facts.job.falcon.norm_bound)
    text = f"Each data party adds noise to every gradient, in shares: epsilon {figure(privacy.epsilon)} for whole rows."
    yield Defence("Noise", True, text)
    yield Defence(
        "Bounded rows",
        True,
        f"Columns are scaled by public bounds. Each party shortens its part of a row to {bound} times the root of its "
        "number of columns. No row changes another row.",
    )


def cards(facts: Figures) -> Iterator[Card]:
    return label_privacy.cards(min(facts.privacy.values(), key=lambda own: own.left_epsilon))


def lines(facts: Figures) -> Iterator[tuple[str, str]]:
    """Yield the lines of the terminal."""
    if facts.privacy:
        yield label_privacy.summary(first(facts))
    for name, own in facts.privacy.items():
        what, text = label_privacy.budget_summary(own)
        yield what, f"{name}: {text}"


def cautions(facts: Figures) -> Iterator[str]:
    if facts.job.privacy is None:
        return
    yield label_privacy.warn_of_large_delta(facts.job.privacy.delta, facts.shared_rows.trained)
    std = facts.fit.weight_noise_std
    if std is not None and std > LARGE_NOISE:
        yield (
            f"Noise moves a weight by up to {figure(std)} (standard deviation), as much as a typical weight. Take "
            "more rows, a larger privacy.epsilon, a lower falcon.norm_bound or a lower falcon.learning_rate."
        )
    for name, own in facts.weights.items():
        if any(abs(weight) > LARGEST_WEIGHT for weight in own):
            yield (
                f"{name} has a weight beyond {LARGEST_WEIGHT:g}: the training has diverged, and numbers may have left "
                "the field. The promise holds, but the model is of no use. Lower falcon.learning_rate."
            )
