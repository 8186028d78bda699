"""Who learns what of a falcon training, what those who collude learn, and what is out of the model: the words of the
pre-flight and of the report, from the job and the parties' roles alone.

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
    """Whether a loss of validation rows decides when to stop."""
    return job.falcon.validation_fraction > 0 and job.falcon.patience > 0


def _by_data_party(job: FalconJob) -> tuple[str, ...]:
    """List what every data party learns."""
    return (
        _own_weights(job),
        *([_each_epoch(job)] if job.privacy is None else []),
        *(["Which grid point has the best figure."] if job.select else []),
        "Which of its own rows all data parties have, and so that they are among the others' rows; how many rows and "
        "columns each data party has.",
    )


def _own_weights(job: FalconJob) -> str:
    if job.falcon.stays_shared:
        return "No weight, not even of its own columns: it keeps its shares of all weights, uniform by themselves."
    how = "as they are" if opens_weights_unrounded(job) else f"rounded and clipped to [-{_BOUND}, {_BOUND})"
    if job.privacy is not None:
        how = "made with noise of every data party"
    return f"The weights of its own columns, {how}; nobody else's."


def _each_epoch(job: FalconJob) -> str:
    in_range = "whether every score and every weight stayed in range; where one did not, the training ends"
    if not judges(job):
        return f"After each epoch one bit: {in_range}."
    return f"After each epoch two bits: {in_range}; and whether it ends there, by the loss of the validation rows."


def _of_grid(job: FalconJob) -> tuple[str, ...]:
    if job.selection is None:
        return ()
    return (f"The {job.selection.by} of each grid point over all folds, rounded. Nobody learns a weight of a fold.",)


_BOUND = f"{WEIGHT_BOUND:g}"


def _of_test_rows(job: FalconJob) -> str:
    if job.test_fraction == 0:
        return "No score, no residual and no gradient."
    if job.falcon.model == "linear":
        return "Of the test rows the sum of the squared errors; no row's score, no residual and no gradient."
    return (
        "Of the test rows the confusion matrix, the log loss, AUC and KS, the last two over "
        f"{BINS} bins; no row's score, no residual and no gradient."
    )


def _by_passive(roles: Roles, job: FalconJob) -> str:
    """Return its weights hang on the labels."""
    if job.falcon.stays_shared:
        return "No weight, no score, no residual, no gradient, no loss, and no figure of the test rows."
    tells = f"Its weights depend on {roles.active}'s labels and on the others' features"
    if job.privacy is not None:
        tells = f"{tells}: what they tell of a row is bounded by {job.promise}"
    elif opens_weights_unrounded(job):
        tells = f"{tells}: opened as they are they may give labels away"
    else:
        tells = f"{tells}: k weights of b bits tell at most k b bits of them"
    return f"{tells}. No score, no residual, no gradient, no loss, and no figure of the test rows."


def _by_key_node(job: FalconJob) -> tuple[str, ...]:
    return (
        "Which shuffled positions of the data parties' lists match, also those that only some of them have; no id.",
        "How many columns each party has, and after each epoch whether training goes on"
        + ("; which grid point was chosen." if job.select else "."),
        *(["It keeps nothing: each prediction has seeds of its own."] if job.falcon.stays_shared else []),
        "It deals random numbers, and is sent nothing that is opened: no row, label, score or weight"
        + (", and no figure of the test rows." if job.test_fraction else "."),
    )


def _by_coordinator(job: FalconJob) -> tuple[str, ...]:
    figures = "; the figures of the test rows" if job.test_fraction else ""
    figures += "; the figures of the grid points" if job.select else ""
    return (
        f"Names, settings, counts of rows and columns, how many epochs ran, times, memory and bytes{figures}. "
        "No row, id, weight or score.",
    )


# --- who colludes ---------------------------------------------------------------------------------------


def colluding(roles: Roles, job: FalconJob) -> tuple[str, ...]:
    """What several learn who put together what they have."""
    return (*_with_key_node(roles, job), _data_parties(roles, job), *_together(roles, job))


def _with_key_node(roles: Roles, job: FalconJob) -> Iterator[str]:
    key_node, any_of = roles.key_node, f"With any one of {join_names(roles.chain)} it reads"
    if job.falcon.is_encrypted:
        yield (
            f"{key_node} made the key that weights are encrypted under, dealt its shares, and kept nothing of it; and "
            "it deals what computing in shares needs. It is trusted to deal rightly, to forget both, and to collude "
            f"with nobody. {any_of} every residual, and so the labels, and with them all weights and scores."
        )
        return
    yield (
        f"{key_node} deals what computing in shares needs: it is trusted to deal rightly, to forget what it dealt, and "
        f"to collude with nobody. {any_of} everything that is opened: all features, labels and scores of all parties."
    )


def _data_parties(roles: Roles, job: FalconJob) -> str:
    most = "all of them but one" if len(roles.chain) > 2 else "either of them"
    if job.falcon.macs:
        return (
            f"Of {join_names(roles.chain)}, {most} may collude and deviate: MACs make all others abort before "
            "anything unmasked is opened, but for a chance of about 2^-60 in each check."
        )
    return (
        f"{join_names(roles.chain)} are believed to follow the protocol (semi-honest), and {most} may then collude: "
        f"nothing notices a party that sends other {_name_messages(job)}, and so changes the result or what is opened."
    )


def _name_messages(job: FalconJob) -> str:
    return "shares or ciphertexts" if job.falcon.is_encrypted else "shares"


def _together(roles: Roles, job: FalconJob) -> Iterator[str]:
    if job.falcon.stays_shared:
        yield (
            f"{join_names(roles.chain)} together have the model, once all of them pool their shares; short of "
            "one, nothing of it. Figures also tell something of the features of whoever stays out: no limit "
            "counts that. The coordinator adds nothing but what it learnt itself."
        )
        return
    if job.privacy is not None:
        yield (
            f"{join_names(roles.chain)} may pool their weights and the noise that they put in: of all but one, "
            f"what they learn of a row is bounded by {job.promise}, as the noise of that one is large enough by "
            "itself. The coordinator adds nothing but what it learnt itself."
        )
        return
    if len(roles.passives) > 1:
        yield (
            f"{join_names(roles.passives)} may pool their weights, and with them the bits"
            + (
                " of labels."
                if opens_weights_unrounded(job)
                else " of labels: the limit counts each party's by itself."
            )
        )
    yield (
        "Opened weights and figures also tell something of the features of whoever stays out: no limit counts that. "
        "The coordinator adds nothing but what it learnt itself."
    )


def out_of_model(roles: Roles, job: FalconJob) -> tuple[str, ...]:
    """Against whom nothing is promised."""
    notices = "and the MACs do not notice" if job.falcon.macs else "and nobody notices"
    return (
        f"A dealer that deals wrongly: {roles.key_node} alone can make the result wrong, {notices}. It sees no opened "
        "value, but whether training goes on, or ends in an error, may then depend on what it dealt.",
        "What a party puts in: features and labels are its own word, and nothing checks that they are right.",
        *_rows_too_long(job),
        _party_that_stops(job),
        "A party that invents ids to ask who is in the others' data, and what the network's timing tells.",
    )


def _party_that_stops(job: FalconJob) -> str:
    if job.falcon.stays_shared:
        return (
            "A party that stops: it can end the training whenever it likes, and the model too, by removing its shares."
        )
    return (
        "A party that stops: it can end the training whenever it likes, also when it can read its own weights and the "
        "others cannot yet read theirs."
    )


def _rows_too_long(job: FalconJob) -> Iterator[str]:
    if job.privacy is not None:
        yield (
            "A party that does not shorten its own rows to their bound, or gives labels other than 0 and 1: noise is "
            "made for rows within it, nothing checks that they are, and epsilon then holds for nobody's rows."
        )
