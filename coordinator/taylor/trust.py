"""Sentences of the pre-flight and the report: who learns what of a Taylor training, also by collusion, and the limits.

They follow from the job and the parties' roles only.

Source: the docstrings of algorithms/protocols/taylor, align.py, link.py and predict.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.terminal.wording import join_names
from blindfit.coordinator.vertical.roles import Learnt, Roles
from blindfit.parties.account.account import MOST_MEMBERSHIP
from blindfit.parties.taylor.settings import TaylorJob


def list_what_each_learns(roles: Roles, job: TaylorJob) -> Iterator[Learnt]:
    """List what each role learns, the active party first and the coordinator last."""
    passives = f"{roles.passives[0]} (passive party)"
    if len(roles.passives) > 1:
        passives = f"each of {join_names(roles.passives)} (passive parties)"
    yield Learnt("active", f"{roles.active} (active party)", (*_by_data_party(job), *_scores(roles, job)))
    yield Learnt("passive", passives, (*_by_data_party(job), _no_scores(roles, job)))
    yield Learnt("key-node", f"{roles.key_node} (key node)", _by_key_node(job))
    yield Learnt("coordinator", "the coordinator", _by_coordinator(job))


def _by_data_party(job: TaylorJob) -> tuple[str, ...]:
    """List what every data party learns."""
    gradients = (
        "The noisy gradients of its own columns, batch by batch, and so its own weights; no gradient of another party."
    )
    after = "how many columns each party has, and whether to go on after an epoch."
    if job.hold_out_fraction == 0:
        after = "how many columns each party has."
    if job.align.method == "linkage":
        rows = (
            f"At least {job.align.min_common} rows match. No message states how many rows match, or which. A party "
            "that computes on its gradients finds nearly how many match, and guesses which better than by chance. How "
            "many rows both have;"
        )
    else:
        rows = "Which of its own rows all data parties have; how many rows each data party has;"
    if job.select:
        gradients += " The same in the trainings of folds. The name of the grid point with the lowest loss."
    return gradients, f"{rows} {after}"


def _scores(roles: Roles, job: TaylorJob) -> Iterator[str]:
    if job.select:
        yield "The mean loss of each grid point over all folds and its standard error, both rounded."
    if job.test_fraction == 0:
        return
    yield "The scores of the test rows: the sums of all parties' parts."
    if len(roles.passives) == 1:
        yield f"The score minus its own part is {roles.passives[0]}'s part, which no protocol could hide."
    else:
        yield "The parts are masked: it does not see the part of a passive party."


def _no_scores(roles: Roles, job: TaylorJob) -> str:
    said = "No score and no loss."
    if job.privacy is None:
        return (
            f"{said} Its gradients depend on {roles.active}'s labels. The defences bound what gradients reveal, but "
            "promise no differential privacy."
        )
    return (
        f"{said} Its gradients depend on {roles.active}'s labels, within epsilon and delta, and on the other parties' "
        "features. The defences bound what gradients reveal about features, but promise no differential privacy."
    )


def _by_key_node(job: TaylorJob) -> tuple[str, ...]:
    sees = ["Sums of gradients and uniform masks, which hide the gradients up to 2^-40; it adds the noise."]
    if job.hold_out_fraction:
        sees.append("The loss of the hold-out rows after each epoch, exactly; no limit counts it.")
    if job.select:
        sees.append("The loss of each fold of each grid point, exactly; no limit counts it.")
    if job.align.method == "linkage":
        sees.append("Keyed filters of the linked records, their similarities, and which shuffled records match.")
    else:
        sees.append(
            "The shuffled positions of the data parties' lists that match, also ids that only some parties have; no id."
        )
    return (*sees, "No row, label, weight or score.")


def _by_coordinator(job: TaylorJob) -> tuple[str, ...]:
    told = "Names, settings, counts of rows and columns, times, memory and bytes"
    if job.privacy is not None:
        return (f"{told}; the budget. No figure that was made from labels, and no row, id, weight or score.",)
    losses = "the hold-out losses"
    if job.align.method == "linkage":
        losses += ", as shares of the first, which do not reveal how many rows match,"
    return (f"{told}; {losses} and the figures of the evaluation. No row, id, weight or score.",)


def colluding(roles: Roles, job: TaylorJob) -> tuple[str, ...]:
    """Return what several parties learn if they pool what they have."""
    return (*_with_key_node(roles, job), *_passives_together(roles, job), *_against_one(roles, job))


def _with_key_node(roles: Roles, job: TaylorJob) -> Iterator[str]:
    passive, despite = join_names(roles.passives, "or"), ", at any epsilon" if job.privacy else ""
    yield (
        f"{roles.key_node} is trusted not to collude: it can decrypt. With {passive} it reads scores and labels of the "
        f"training rows{despite}; with {roles.active} it reads, for every row in every epoch, the sum of the other "
        "parties' scores, and so much about their features."
    )
    if job.align.method == "linkage":
        yield f"With either data party, {roles.key_node} could also guess the records of the other."


def _passives_together(roles: Roles, job: TaylorJob) -> Iterator[str]:
    several = len(roles.passives) > 1
    who = f"{join_names(roles.passives)} together" if several else f"{roles.passives[0]} by itself"
    learn = "learn" if several else "learns"
    if job.privacy is not None:
        yield (
            f"{who}, also with the coordinator, {learn} no more about the labels than epsilon and delta allow, if all "
            "of them follow the protocol."
        )
    elif {"label-bits", "class-weights"} & set(job.taylor.unsafe) or job.taylor.jitter == 0:
        yield f"{who} may learn labels: the bound on what a batch reveals was switched off."
    else:
        yield (
            f"{who} {learn} at most the bits that the bound counts about a batch's labels, if all of them follow the "
            "protocol: the bound counts all their columns."
        )


def _against_one(roles: Roles, job: TaylorJob) -> Iterator[str]:
    if len(roles.passives) > 1 and job.test_fraction > 0:
        yield (
            f"{roles.active} and all passive parties but one learn the last party's part of each test row's score: it "
            "is the rest of the sum."
        )
    yield "The coordinator adds only what it learnt itself."


def out_of_model(roles: Roles, job: TaylorJob) -> tuple[str, ...]:
    """Return the attackers against whom nothing is promised."""
    said = [
        job.holds_against,
        "Parties are assumed to follow the protocol. If a passive party submits another ciphertext as its gradient, "
        "such as a single row's residual, the key node decrypts it, and only the noise of a gradient hides it. "
        f"{roles.key_node} cannot detect this.",
        f"A key node that colludes, or adds other noise than it reports: {roles.active} cannot check this.",
    ]
    if job.privacy is not None:
        said.append(
            "A passive party that does not shorten its rows to its part of the bound weakens epsilon, and nobody "
            "notices."
        )
    said.append(f"{_who_is_there(job)} The network's timing may reveal more.")
    return tuple(said)


def _who_is_there(job: TaylorJob) -> str:
    least = job.align.min_common
    if job.align.method == "linkage":
        return (
            f"A party that publishes again without a record, or with invented records, to test by whether {least} rows "
            f"match who is in the other party's data: one bit each time, {MOST_MEMBERSHIP} in all."
        )
    return f"A party that invents ids to test who is in the others' data: once {least} of them are, it learns which."
