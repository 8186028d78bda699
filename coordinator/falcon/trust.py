"""Sentences of the pre-flight and the report: who learns what of a falcon training, also by collusion, and the limits.

They follow from the job and the parties' roles only.

Source: the docstrings of algorithms/protocols/falcon, algorithms/sharing/dealing.py and align.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.algorithms.protocols.falcon import WEIGHT_BOUND
from blindfit.algorithms.sharing.scoring import BINS
from blindfit.coordinator.terminal.wording import join_names
from blindfit.coordinator.vertical.roles import Learnt, Roles
from blindfit.parties.falcon.settings import FalconJob


def list_what_each_learns(roles: Roles, job: FalconJob) -> Iterator[Learnt]:
    """List what each role learns, the active party first and the coordinator last."""
    passives = f"{roles.passives[0]} (passive party)"
    if len(roles.passives) > 1:
        passives = f"each of {join_names(roles.passives)} (passive parties)"
    yield Learnt("active", f"{roles.active} (active party)", (*_by_data_party(job), *_of_grid(job), _of_test_rows(job)))
    yield Learnt("passive", passives, (*_by_data_party(job), _by_passive(roles, job)))
    yield Learnt("key-node", f"{roles.key_node} (key node)", _by_key_node(job))
    yield Learnt("coordinator", "the coordinator", _by_coordinator(job))


def opens_weights_unrounded(job: FalconJob) -> bool:
    return "weight-bits" in job.falcon.unsafe or job.privacy is not None


def judges(job: FalconJob) -> bool:
    """Return True if a loss of validation rows decides when to stop."""
    return job.falcon.validation_fraction > 0 and job.falcon.patience > 0


def _by_data_party(job: FalconJob) -> tuple[str, ...]:
    """List what every data party learns."""
    return (
        _own_weights(job),
        *([_each_epoch(job)] if job.privacy is None else []),
        *(["The grid point with the best figure."] if job.select else []),
        "Which of its own rows all data parties have, and so which of its rows are in the others' data. The number of "
        "rows and columns of each data party.",
    )


def _own_weights(job: FalconJob) -> str:
    if job.falcon.stays_shared:
        return "No weight, not even of its own columns: it keeps its shares of all weights, which are uniform numbers."
    how = "not rounded" if opens_weights_unrounded(job) else f"rounded and clipped to [-{_BOUND}, {_BOUND})"
    if job.privacy is not None:
        how = "made with noise of every data party"
    return f"The weights of its own columns, {how}; no weight of another party."


def _each_epoch(job: FalconJob) -> str:
    in_range = "whether every score and every weight stayed in range; if one did not, training ends"
    if not judges(job):
        return f"After each epoch one bit: {in_range}."
    return (
        f"After each epoch two bits: {in_range}; and whether training ends there, by the loss of the validation rows."
    )


def _of_grid(job: FalconJob) -> tuple[str, ...]:
    if job.selection is None:
        return ()
    return (f"The {job.selection.by} of each grid point over all folds, rounded. Nobody learns a weight of a fold.",)


_BOUND = f"{WEIGHT_BOUND:g}"


def _of_test_rows(job: FalconJob) -> str:
    if job.test_fraction == 0:
        return "No score, no residual and no gradient."
    if job.falcon.model == "linear":
        return "The sum of the squared errors of the test rows; no row's score, no residual and no gradient."
    return (
        "The confusion matrix, log loss, AUC and KS of the test rows, the last two over "
        f"{BINS} bins; no row's score, no residual and no gradient."
    )


def _by_passive(roles: Roles, job: FalconJob) -> str:
    """Return the sentences about the weights of a passive party, which depend on the labels."""
    if job.falcon.stays_shared:
        return "No weight, no score, no residual, no gradient, no loss, and no figure of the test rows."
    tells = f"Its weights depend on {roles.active}'s labels and on the others' features"
    if job.privacy is not None:
        tells = f"{tells}: {job.promise} bounds what they reveal about a row"
    elif opens_weights_unrounded(job):
        tells = f"{tells}: without rounding they may reveal labels"
    else:
        tells = f"{tells}: k weights of b bits reveal at most k b bits about them"
    return f"{tells}. No score, no residual, no gradient, no loss, and no figure of the test rows."


def _by_key_node(job: FalconJob) -> tuple[str, ...]:
    return (
        "The shuffled positions of the data parties' lists that match, also ids that only some parties have; no id.",
        "The number of columns of each party, and after each epoch whether training goes on"
        + ("; the chosen grid point." if job.select else "."),
        *(["It keeps nothing: each prediction has its own seeds."] if job.falcon.stays_shared else []),
        "It deals random numbers and receives no opened value: no row, label, score or weight"
        + (", and no figure of the test rows." if job.test_fraction else "."),
    )


def _by_coordinator(job: FalconJob) -> tuple[str, ...]:
    figures = "; the figures of the test rows" if job.test_fraction else ""
    figures += "; the figures of the grid points" if job.select else ""
    return (
        f"Names, settings, counts of rows, columns and epochs, times, memory and bytes{figures}. "
        "No row, id, weight or score.",
    )


# --- collusion ---------------------------------------------------------------------------------------


def colluding(roles: Roles, job: FalconJob) -> tuple[str, ...]:
    """Return what several parties learn if they pool what they have."""
    return (*_with_key_node(roles, job), _data_parties(roles, job), *_together(roles, job))


def _with_key_node(roles: Roles, job: FalconJob) -> Iterator[str]:
    key_node, any_of = roles.key_node, f"Together with any one of {join_names(roles.chain)} it reads"
    if job.falcon.is_encrypted:
        yield (
            f"{key_node} made the key that encrypts weights, dealt its shares, and kept no part of it. {key_node} also "
            "deals what computing in shares needs. It is trusted to deal correctly, to forget both, and not to collude "
            f"with anybody. {any_of} every residual, and so the labels, and with them all weights and scores."
        )
        return
    yield (
        f"{key_node} deals what computing in shares needs. It is trusted to deal correctly, to forget what it dealt, "
        f"and not to collude with anybody. {any_of} everything that is opened: all features, labels and scores of all "
        "parties."
    )


def _data_parties(roles: Roles, job: FalconJob) -> str:
    most = "all of them but one" if len(roles.chain) > 2 else "either of them"
    if job.falcon.macs:
        return (
            f"Of {join_names(roles.chain)}, {most} may collude and deviate: MACs make all others abort before "
            "anything unmasked is opened, except with a probability of about 2^-60 in each check."
        )
    return (
        f"{join_names(roles.chain)} are trusted to follow the protocol (semi-honest), and {most} may then collude. "
        f"Nothing detects a party that sends other {_name_messages(job)} and so changes the result or the opened "
        "values."
    )


def _name_messages(job: FalconJob) -> str:
    return "shares or ciphertexts" if job.falcon.is_encrypted else "shares"


def _together(roles: Roles, job: FalconJob) -> Iterator[str]:
    if job.falcon.stays_shared:
        yield (
            f"{join_names(roles.chain)} have the model if all of them pool their shares; without the shares of one of "
            "them, they have nothing of it. Figures also reveal something about the features of a party that does not "
            "collude: no limit counts that. The coordinator adds only what it learnt itself."
        )
        return
    if job.privacy is not None:
        yield (
            f"{join_names(roles.chain)} may pool their weights and the noise that they added. Even if all but one do, "
            f"{job.promise} bounds what they learn about a row, because the noise of the last one is large enough by "
            "itself. The coordinator adds only what it learnt itself."
        )
        return
    if len(roles.passives) > 1:
        yield (
            f"{join_names(roles.passives)} may pool their weights, and with them the bits"
            + (
                " about labels."
                if opens_weights_unrounded(job)
                else " about labels: the limit counts each party by itself."
            )
        )
    yield (
        "Opened weights and figures also reveal something about the features of a party that does not collude: no "
        "limit counts that. The coordinator adds only what it learnt itself."
    )


def out_of_model(roles: Roles, job: FalconJob) -> tuple[str, ...]:
    """Return the attackers against whom nothing is promised."""
    notices = "and the MACs do not notice" if job.falcon.macs else "and nobody notices"
    return (
        f"A key node that deals wrongly: {roles.key_node} can make the result wrong by itself, {notices}. It sees no "
        "opened value, but what it dealt may then decide whether training goes on or ends in an error.",
        "False inputs: nothing checks that a party's features and labels are correct.",
        *_rows_too_long(job),
        _party_that_stops(job),
        "A party that invents ids to test who is in the others' data, and what the network's timing reveals.",
    )


def _party_that_stops(job: FalconJob) -> str:
    if job.falcon.stays_shared:
        return "A party that stops: it can end the training at any time, and the model too, by removing its shares."
    return (
        "A party that stops: it can end the training at any time, also when it can read its own weights and the "
        "others cannot yet read theirs."
    )


def _rows_too_long(job: FalconJob) -> Iterator[str]:
    if job.privacy is not None:
        yield (
            "A party that does not shorten its rows to their bound, or gives labels other than 0 and 1. Noise is made "
            "for rows within the bound, and nothing checks the bound. Epsilon then holds for nobody's rows."
        )
