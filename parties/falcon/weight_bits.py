"""The limit of what opened values reveal about labels, over all trainings on the same people, at the active party.

A party that gets k weights of b bits learns at most k b bits about the labels, by any computation. It also learns from
the end of training: after which of E epochs it comes, and whether by the loss, by the range or by both. All of it is
counted in the disclosure account of the active party's people, before it is sent, because a party chooses its features
and the time at which it leaves. The limit is a total: it is no promise to a person.

Source: MATH 4.3 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.falcon import LEAST_TEST_ROWS, FalconParameters, bits_of_opened_weight
from blindfit.parties.account.account import BITS_OF_A_LABEL, Account
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Reads, Store

END, SELECTION = "end of training", "grid and end of training"


def weights_bits(parameters: FalconParameters) -> float:
    """Return how many bits about the training labels a passive party's weights have at most.

    The number is 0 if weights stay in shares, and one for each row if weights are not rounded.
    """
    if parameters.weights_stay_shared:
        return 0.0
    if parameters.kept_bits is None:
        return float(parameters.train_rows)
    return float(min(parameters.train_rows, max(parameters.columns[1:]) * bits_of_opened_weight(parameters.kept_bits)))


def score_bits_of_a_weight(parameters: FalconParameters) -> float:
    """Return how many bits about one row's score opened weights have at most; there is no bound if they are not
    rounded.

    A party that uses a column which is 0 everywhere else has one weight that depends only on this row. Its leverage is
    at most 1, so further columns of this kind reveal the same score again.
    """
    return math.inf if parameters.kept_bits is None else float(bits_of_opened_weight(parameters.kept_bits))


def grid_bits_of_a_row(parameters: FalconParameters) -> float:
    """Return how many bits about one row's score the figures of all grid points have: the row is one of many."""
    return parameters.selection_bits / LEAST_TEST_ROWS


def end_bits(parameters: FalconParameters, epochs: int) -> float:
    """Return how many bits the end of a training has.

    The training ends after one of the epochs that may follow: by the range, by the loss, by both, or after all. The
    trainings of folds may end early only by the range.
    """
    ends = (3 if parameters.judges else 1) * epochs + parameters.selection_epochs + 1
    return min(float(parameters.train_rows), math.log2(ends))


def begin_bits(parameters: FalconParameters, epochs: int) -> float:
    """Return the bits that are counted before any row is shared: those of the end and of the grid points' figures."""
    return end_bits(parameters, epochs) + parameters.selection_bits


def all_bits(parameters: FalconParameters) -> float:
    """Return how many bits about labels a whole job has at most, folds and final training together."""
    return weights_bits(parameters) + begin_bits(parameters, parameters.most_epochs)


def count_end(
    session: Session[FalconJob], settings: PartySettings, store: Store, parameters: FalconParameters, epochs: int
) -> None:
    """Count the end, and the figures of all grid points, before any row is shared, if the whole job fits.

    A peer that only asks pays as much as a peer that trains.

    Args:
        epochs: number of epochs that may follow.

    Raises:
        PolicyRefused: with earlier disclosures, it would reveal too much.
        LedgerUnavailable: it could not be written.
    """
    bits = begin_bits(parameters, epochs)
    event = END if parameters.selection is None else SELECTION
    with store.transaction() as transaction:
        account, entry, refuse = _entry(
            transaction, session, settings, parameters, event, bits, weights_bits(parameters) + bits
        )
        account.enter_below(
            transaction, entry, account.label_limit(transaction), refuse, asked=weights_bits(parameters) + bits
        )


def check_end(
    session: Session[FalconJob], settings: PartySettings, store: Store, parameters: FalconParameters, epochs: int
) -> float:
    """Return how many bits a whole training adds to the account; nothing is counted. See `count_end` for arguments and
    errors.
    """
    bits = weights_bits(parameters) + begin_bits(parameters, epochs)
    with store.view() as reader:
        account, entry, refuse = _entry(reader, session, settings, parameters, END, bits, bits)
        return bits * account.check_below(reader, entry, account.label_limit(reader), refuse)


def count_weights(
    session: Session[FalconJob], settings: PartySettings, store: Store, parameters: FalconParameters
) -> None:
    """Count the weights before they are opened, in each session.

    Raises:
        PolicyRefused: another training has used the rest of the limit since this one began.
        LedgerUnavailable: it could not be written.
    """
    bits = weights_bits(parameters)
    with store.transaction() as transaction:
        account, entry, refuse = _entry(transaction, session, settings, parameters, "weights", bits, bits)
        account.enter_below(transaction, entry, account.label_limit(transaction), refuse)


def _entry(
    reader: Reads,
    session: Session[FalconJob],
    settings: PartySettings,
    parameters: FalconParameters,
    event: str,
    bits: float,
    asked: float,
) -> tuple[Account, Disclosure, Callable[[], PolicyRefused | None]]:
    """Return the account, an entry of it, and the function that makes the error if the entry does not fit.

    Raises:
        PolicyRefused: one training by itself would reveal too much.
    """
    job, me = session.job, session.me.name

    def refuse() -> PolicyRefused | None:
        return None if "weight-bits" in job.falcon.unsafe else refusal(job, parameters, asked, me)

    check_weight_bits(reader, job, parameters, asked, me)
    account = Account.of(settings, session.me.dataset)
    read = session.published.id, job.resumes or session.id  # a resumed training counts as the same session
    learners, question = parameters.data_parties[1:], f"{event} {session.id}"
    return account, account.entry("labels", account.label, learners, event, question, bits, read), refuse


def check_weight_bits(reader: Reads, job: FalconJob, parameters: FalconParameters, bits: float, party: str) -> None:
    """Check one training by itself, from public sizes.

    Args:
        bits: bits about all labels.

    Raises:
        PolicyRefused: the training would reveal too much, and no flag of the job allows it.
    """
    if "weight-bits" not in job.falcon.unsafe and bits / parameters.train_rows > BITS_OF_A_LABEL:
        reader.excess.stop(refusal(job, parameters, bits, party))


def refusal(job: FalconJob, parameters: FalconParameters, bits: float, party: str) -> PolicyRefused:
    """Return the refusal of a training that would reveal too much.

    How much was revealed before, and to whom, is private: the words are the same for any earlier disclosures.
    """
    share = bits / parameters.train_rows
    if job.falcon.stays_shared:
        source, helps = "where training ends", "use more rows"
    else:
        source, helps = "its weights", "use more rows or fewer columns"
        if job.falcon.model == "logistic":  # a linear model does not stay shared
            helps += ', or set falcon.weights = "shared"'
    if parameters.selection is not None:
        points = len(parameters.selection.points)
        source += f" and the figures of {points} grid points"
        helps = f"{_fewer_points(parameters)}, or {helps}"
    if not job.falcon.stays_shared:
        helps += '; falcon.unsafe = ["weight-bits"] allows it'
    if share > BITS_OF_A_LABEL:
        told = f"a passive party could learn {share:.2f} bits of each label from {source} (at most {BITS_OF_A_LABEL})"
    else:
        told = (
            f"with earlier trainings on the same people, {source} could reveal more than {BITS_OF_A_LABEL} bits of "
            "each label"
        )
    return PolicyRefused(party=party, field="weight bits", reason=f"{told}: {helps}")


def _fewer_points(parameters: FalconParameters) -> str:
    """Return advice on the number of grid points that fit, by public sizes, if nothing was revealed before."""
    selection = parameters.selection
    if selection is None:
        return ""
    room = parameters.train_rows * BITS_OF_A_LABEL - (all_bits(parameters) - parameters.selection_bits)
    points = min(len(selection.points) - 1, math.floor(room / (parameters.selection_bits / len(selection.points))))
    return f"list at most {points} grid points (select.grid)" if points > 1 else "remove [select]"
