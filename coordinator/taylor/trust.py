"""Who learns what of a Taylor training, what those who collude learn, and what is out of the model: the words of the
pre-flight and of the report, from the job and the parties' roles alone.

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
    gradients = "The noisy gradients of its own columns, batch by batch, and so its own weights; nobody else's."
    after = "how many columns each party has, and whether to go on after an epoch."
    if job.hold_out_fraction == 0:
        after = "how many columns each party has."
    if job.align.method == "linkage":
        rows = (
            f"At least {job.align.min_common} rows match; no message says how many, or which, but who computes on "
            "its gradients finds out nearly how many, and of which more than by chance; how many rows both have;"
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
        yield f"The score less its own part is {roles.passives[0]}'s part, which no protocol could hide."
    else:
        yield "The parts are masked: it sees no passive party's own."


def _no_scores(roles: Roles, job: TaylorJob) -> str:
    said = "No score and no loss."
    if job.privacy is None:
        return (
            f"{said} Its gradients depend on {roles.active}'s labels; the defences bound what they give away, and "
            "promise no differential privacy."
        )
    return (
        f"{said} Its gradients depend on {roles.active}'s labels, within epsilon and delta, and on the others' "
        "features, of which the defences bound what is given away, and promise no differential privacy."
    )


def _by_key_node(job: TaylorJob) -> tuple[str, ...]:
    sees = ["Sums of gradients and uniform masks, which hide them up to 2^-40; it adds the noise."]
    if job.hold_out_fraction:
        sees.append("The loss of the hold-out rows after each epoch, as it is; no limit counts it.")
    if job.select:
        sees.append("The loss of each fold of each grid point, as it is; no limit counts it.")
    if job.align.method == "linkage":
        sees.append("Keyed filters of the records that were linked, how alike they are, and which shuffled ones match.")
    else:
        sees.append(
            "Which shuffled positions of the data parties' lists match, also those that only some of them have; no id."
        )
    return (*sees, "No row, label, weight or score.")


def _by_coordinator(job: TaylorJob) -> tuple[str, ...]:
    told = "Names, settings, counts of rows and columns, times, memory and bytes"
    if job.privacy is not None:
        return (f"{told}; the budget. No figure that was made from labels, and no row, id, weight or score.",)
    losses = "the hold-out losses"
    if job.align.method == "linkage":
        losses += ", as shares of the first, which do not tell how many rows match,"
    return (f"{told}; {losses} and the figures of the evaluation. No row, id, weight or score.",)


def colluding(roles: Roles, job: TaylorJob) -> tuple[str, ...]:
    """What several learn who put together what they have."""
    return (*_with_key_node(roles, job), *_passives_together(roles, job), *_against_one(roles, job))


def _with_key_node(roles: Roles, job: TaylorJob) -> Iterator[str]:
    passive, despite = join_names(roles.passives, "or"), ", whatever epsilon is" if job.privacy else ""
    yield (
        f"{roles.key_node} is trusted not to collude: it can decrypt. With {passive} it reads scores and labels of the "
        f"training rows{despite}; with {roles.active} the sum of the others' scores of every row in every epoch, "
        "and so much of their features."
    )
    if job.align.method == "linkage":
        yield f"With either data party {roles.key_node} could also guess the other's records."


def _passives_together(roles: Roles, job: TaylorJob) -> Iterator[str]:
    several = len(roles.passives) > 1
    who = f"{join_names(roles.passives)} together" if several else f"{roles.passives[0]} alone"
    learn = "learn" if several else "learns"
    if job.privacy is not None:
        yield (
            f"{who}, also with the coordinator, {learn} no more of the labels than epsilon and delta allow, if all of "
            "them follow the protocol."
        )
    elif {"label-bits", "class-weights"} & set(job.taylor.unsafe) or job.taylor.jitter == 0:
        yield f"{who} may learn labels: the bound on what a batch gives away was switched off."
    else:
        yield (
            f"{who} {learn} of a batch's labels at most the bits that the bound counts, if all of them follow the "
            "protocol: it counts all their columns."
        )


def _against_one(roles: Roles, job: TaylorJob) -> Iterator[str]:
    if len(roles.passives) > 1 and job.test_fraction > 0:
        yield (
            f"{roles.active} and all passive parties but one learn that one's part of each test row's score, which is "
            "the rest of the sum."
        )
    yield "The coordinator adds nothing but what it learnt itself."


def out_of_model(roles: Roles, job: TaylorJob) -> tuple[str, ...]:
    """Against whom nothing is promised."""
    said = [
        job.holds_against,
        "Parties are taken to follow the protocol. A passive party that submits another ciphertext as its gradient "
        f"(a single row's residual) has it decrypted, with the noise of a gradient alone to hide it; {roles.key_node} "
        "cannot tell.",
        f"A key node that colludes, or whose noise is not what it says: {roles.active} cannot check it.",
    ]
    if job.privacy is not None:
        said.append("A passive party that does not shorten its rows to its part of the bound weakens epsilon, unseen.")
    said.append(f"{_who_is_there(job)} And what the network's timing tells.")
    return tuple(said)


def _who_is_there(job: TaylorJob) -> str:
    least = job.align.min_common
    if job.align.method == "linkage":
        return (
            f"A party that publishes anew without a record, or with inventions, to ask by whether {least} rows match "
            f"who is in the other's data: one bit each time, {MOST_MEMBERSHIP} in all."
        )
    return f"A party that invents ids to ask who is in the others' data: once {least} of them are, it learns which."
