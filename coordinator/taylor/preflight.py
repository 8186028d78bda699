"""The pre-flight of a vertical training: who learns what, what gradients would reveal, and the cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.statistics.vertical import gradient_leaks
from blindfit.algorithms.statistics.vertical.loss import label_bits
from blindfit.algorithms.statistics.vertical.selection import Selection
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.account import label_account
from blindfit.coordinator.preflight.findings import Finding, large_delta, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, describe_spent
from blindfit.coordinator.preflight.seats import open_party
from blindfit.coordinator.taylor import cost as taylor_cost
from blindfit.coordinator.taylor import trust
from blindfit.coordinator.taylor.trial import Trial, trial_of
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.preflight import Rows
from blindfit.coordinator.vertical.roles import Roles
from blindfit.coordinator.vertical.seated import Seated, seat_data_parties
from blindfit.parties.files.vault import PARTY_KEY
from blindfit.parties.taylor.data_party import Taylor
from blindfit.parties.taylor.key_node import name_of, noise_key_of
from blindfit.parties.taylor.label_layouts import bits_of, end_bits, grid_bits
from blindfit.parties.taylor.leaks import leaks_of, refuse_few_batches, rows_that_count
from blindfit.parties.taylor.leaks import refusal as leak_refusal
from blindfit.parties.taylor.parameters import label_noise_std
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.randomness import name_randomness
from blindfit.parties.vertical.prepared import Prepared
from blindfit.parties.work.compute import cores

WEAK_NOISE = 0.1  # on a coordinate of the mean gradient, whose entries are a few tenths at most
SMALL_EPSILON, HIDES_AT_SMALL_EPSILON = 1.0, 3.0  # kept noise moves weights, which shows columns


def leaks(job: Job[TaylorJob]) -> Iterator[Finding]:
    roles, asked = joint.roles_of(job), job.parameters
    yield from joint.who(
        trust.list_what_each_learns(roles, asked), trust.colluding(roles, asked), trust.out_of_model(roles, asked)
    )
    yield from joint.unsafe("taylor.unsafe", asked.taylor.unsafe)


def check_rows(job: Job[TaylorJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    yield from joint.check_all(job, here, _check_party, _try)


# --- one party -----------------------------------------------------------------------------------------------


def _check_party(job: Job[TaylorJob], roles: Roles, party: PartyHere, rows: Rows) -> Iterator[Finding]:
    """Add the party's rows to `rows`."""
    is_active, own = party.name == roles.active, Rows()
    yield from joint.read_own(party, own, active=is_active)
    if is_active and job.parameters.privacy is not None:
        yield describe_spent(party)
    rows.update(own)


# --- all of them -----------------------------------------------------------------------------------------------


def _try(job: Job[TaylorJob], roles: Roles, rows: Rows, data: Mapping[str, PartyHere]) -> Iterator[Finding]:
    with seat_data_parties(job, data, Taylor) as seated:
        yield from _try_seated(job, roles, rows, data, seated)


def _try_seated(
    job: Job[TaylorJob], roles: Roles, rows: Rows, data: Mapping[str, PartyHere], seated: Seated[Taylor]
) -> Iterator[Finding]:
    records = {name: party.source().record for name, party in data.items()}
    label_range, drawn = data[roles.active].dataset.label_range, seated.drawn
    trial = trial_of(rows, records, roles, job.parameters, label_range=label_range, drawn=drawn)
    yield from seated.check_draw()
    yield _alignment(job, trial)
    yield from joint.split(trial.plan, sum(trial.parameters.columns), "the hold-out loss", "taylor.l2")
    taylor.check_parameters(trial.parameters, [len(b) for b in trial.plan.batches], len(trial.plan.validation))
    yield Finding("ok", "key", f"{job.parameters.taylor.key_bits} bits hold every number of this training")
    yield from _attacks(job, trial, roles)
    added: dict[str, float] = {}
    noise = _name_noise(job, roles, seated)
    yield from seated.check_earlier_jobs(
        trial,
        drawn or job.parameters.trial_randomness,
        added,
        {roles.key_node: Ready(0, "", noise or "")},
        may_be_free=job.parameters.align.method == "linkage" or noise is None,
    )
    selection = job.parameters.selection
    if selection is not None:
        yield from _selection(job.parameters, selection, trial, roles.active)
        yield from _warn_of_averages(selection, data)
    if job.parameters.privacy is None:
        active = data[roles.active]
        bits = bits_of(trial.parameters, trial.plan, job.parameters.taylor.jitter)
        end = end_bits(trial.parameters, job.parameters.most_epochs) + grid_bits(job.parameters, trial.plan)
        helps, adds = "set privacy.epsilon", added.get(active.name)
        yield from label_account(active, bits + end, trial.n_rows, helps, job.parameters.holds_against, adds)
    else:
        yield from large_delta(job.parameters.delta, len(trial.plan.train))
    yield from _cost(job, trial)


def _name_noise(job: Job[TaylorJob], roles: Roles, seated: Seated[Taylor]) -> str | None:
    """Return the name that the key node would give its noise: empty without a secret; None if it is elsewhere."""
    if job.parties[roles.key_node].config is None:
        return None
    notary = PartyHere.of(job, roles.key_node)
    if seated.drawn is None or not (notary.base_dir / notary.settings.data_dir / PARTY_KEY).exists():
        return ""
    session = next(iter(seated.seats.values())).session
    with open_party(notary) as party:
        return name_of(noise_key_of(party, session, b"", name_randomness(seated.drawn)))


def _selection(job: TaylorJob, selection: Selection, trial: Trial, active: str) -> Iterator[Finding]:
    """Raise PolicyRefused: a fold would have no batch."""
    refuse_few_batches(job, trial.plan, active)
    taylor.Folds(selection, trial.plan, trial.parameters).check()
    parameters = trial.parameters
    bits = bits_of(parameters, trial.plan, job.taylor.jitter) + end_bits(parameters, job.most_epochs)
    text = (
        f"{quantity(selection.trainings, 'training')} of folds ({len(selection.points)} grid points, {selection.folds} "
        f"folds) and 1 final training reveal at most {bits + grid_bits(job, trial.plan):,.0f} bits about labels. Folds "
        "consist of batches of the final training, so their gradients add no bits; the figures of the grid points "
        f"have {grid_bits(job, trial.plan):.0f} bits. Each row has {selection.models_on_a_row} models"
    )
    yield Finding("note", "select", text)


def _warn_of_averages(selection: Selection, data: Mapping[str, PartyHere]) -> Iterator[Finding]:
    """Warn that noise averages out over many trainings if no number of models per row bounds them."""
    unlimited = [name for name, party in data.items() if party.dataset.models_per_row == "unlimited"]
    if unlimited:
        yield Finding(
            "warning",
            "select",
            f"each of the {selection.trainings + 1} trainings has its own gradient noise, so together they reveal "
            f"more of the columns of {join_names(unlimited)} than one training would. Their parties declare no limit "
            "of models, so nothing bounds the number of trainings",
        )


def _alignment(job: Job[TaylorJob], trial: Trial) -> Finding:
    if job.parameters.align.method == "linkage":
        text = f"{trial.n_rows:,} slots; only the linkage shows how many rows match"
        return Finding("note", "linkage", text)
    return joint.common_rows(trial.n_rows, job.parameters.align.min_common)


# --- what would leak -------------------------------------------------------------------------------------------


def _attacks(job: Job[TaylorJob], trial: Trial, roles: Roles) -> Iterator[Finding]:
    """Yield each leak that a party will find on this trial's batches, or that a party's rows are protected."""
    found = leaks_of(trial.parameters, trial.plan, job.parameters)
    for leak in found:
        allowed = leak.flag in job.parameters.taylor.unsafe
        about = leak.party or ("labels" if leak.rule == gradient_leaks.LABEL_BITS else leak.rule)
        text = leak.text if allowed else str(leak_refusal(leak, roles.active))
        yield Finding("warning" if allowed else "refuses", about, text)
    if job.parameters.privacy is not None:
        yield _label_noise(job, trial)
    elif not any(leak.rule == gradient_leaks.LABEL_BITS for leak in found):
        yield Finding("ok", "labels", _bits(job, trial))
    of_all = any(not leak.party and leak.rule != gradient_leaks.LABEL_BITS for leak in found)
    for name in roles.chain:
        own = trial.prepared[name]
        yield from joint.constant_columns(own, name)
        if not of_all and not any(leak.party == name for leak in found):
            yield Finding("ok", name, _describe_defence(job, own))


def _bits(job: Job[TaylorJob], trial: Trial) -> str:
    passive, jitter = sum(trial.parameters.columns[1:]), job.parameters.taylor.jitter
    rows = rows_that_count(trial.plan, job.parameters)
    bits = label_bits(passive, jitter, trial.parameters.grid.loss.cross)
    text = f"a batch reveals at most {bits:.0f} bits about its {rows} labels, to all {passive} passive columns together"
    if job.parameters.taylor.model == "linear":
        return text
    guess = gradient_leaks.label_auc(passive, rows, jitter)
    return f"{text}: they guess labels with an AUC of at most {guess:.2f} if nothing else reveals them"


def _describe_defence(job: Job[TaylorJob], own: Prepared) -> str:
    noise, epsilon = job.parameters.taylor.gradient_noise, job.parameters.epsilon
    less = noise < HIDES_AT_SMALL_EPSILON and 0 < epsilon <= SMALL_EPSILON
    return (
        f"no row stands out after {own.rows_shrunk} of {len(own.plan.train):,} were shortened; noise of "
        f"{noise:g} on every sum hides columns of few values"
        + (
            f", and less than {HIDES_AT_SMALL_EPSILON:g} would do at this epsilon (taylor.gradient_noise)"
            if less
            else ""
        )
    )


def _label_noise(job: Job[TaylorJob], trial: Trial) -> Finding:
    """Return the noise on the mean gradient over all rows, the sum over an epoch's batches."""
    n, batches = len(trial.plan.train), len(trial.plan.batches)
    noise_std = label_noise_std(job.parameters, sum(trial.parameters.columns)) * batches**0.5 / n
    text = f"label DP: standard deviation {noise_std:.2g} on each coordinate of an epoch's mean gradient"
    if noise_std > WEAK_NOISE:
        return Finding("warning", "noise", f"{text}: expect a weak model; use more rows or a larger privacy.epsilon")
    return Finding("ok", "noise", text)


# --- the cost ---- -----------------------------------------------------------------------------------------------


def forecast_s(job: Job[TaylorJob], here: Sequence[PartyHere]) -> float:
    """Return the forecast in seconds, by Blindfit's own engine, for data parties that are all here."""
    rows, records = joint.rows_here(job, here)
    speed, cost = _estimate_cost(job, trial_of(rows, records, joint.roles_of(job), job.parameters))
    return cost.train_seconds(speed, cores(), _count_epochs(job.parameters))


def growth(job: Job[TaylorJob], here: Sequence[PartyHere], times: int) -> float:
    """Return the factor by which a training takes longer on so many times the rows, from its counted operations."""
    rows, records = joint.rows_here(job, here)
    speed, epochs = taylor_cost.measure(job.parameters.taylor.key_bits), _count_epochs(job.parameters)
    now, later = (
        _cost_of(trial_of(joint.repeat_rows(rows, n), records, joint.roles_of(job), job.parameters), speed)
        for n in (1, times)
    )
    return later.train_seconds(speed, cores(), epochs) / now.train_seconds(speed, cores(), epochs)


def _estimate_cost(job: Job[TaylorJob], trial: Trial) -> tuple[taylor_cost.Speed, taylor_cost.Cost]:
    """Estimate the cost from the time of operations on this machine now."""
    speed = taylor_cost.measure(job.parameters.taylor.key_bits)
    return speed, _cost_of(trial, speed)


def _cost_of(trial: Trial, speed: taylor_cost.Speed) -> taylor_cost.Cost:
    batch_rows, held_out = [len(batch) for batch in trial.plan.batches], len(trial.plan.validation)
    return taylor_cost.Cost(
        trial.parameters, batch_rows, held_out, len(trial.plan.test), trial.n_rows, unit_product=speed.unit_product
    )


def _count_epochs(job: TaylorJob) -> int:
    """Count epochs of the final training, and those of folds in proportion to their rows."""
    selection = job.selection
    folds = 0 if selection is None else math.ceil(selection.epochs * (1 - 1 / selection.folds))
    return job.most_epochs + folds


def _cost(job: Job[TaylorJob], trial: Trial) -> Iterator[Finding]:
    speed, cost = _estimate_cost(job, trial)
    here = cores()
    epochs = _count_epochs(job.parameters)
    each = cost.epoch_seconds(speed, here)
    if job.parameters.paillier.engine == "phe":
        speed, cost = taylor_cost.measure_reference(job.parameters.taylor.key_bits), replace(cost, one_by_one=True)
        own, each = each, cost.epoch_seconds(speed, here)
        text = f"python-paillier is a slow reference: about {each / own:.0f} times the time of Blindfit's own engine"
        yield Finding("warning", "paillier.engine", text)
    waited_s = job.parameters.timeouts.step_s
    if (step_s := cost.longest_step_seconds(speed)) > waited_s:
        text = f"a party may take {step_s:,.0f} s for one step, and its peers wait {waited_s:g} s: "
        text += f"set timeouts.step_s = {math.ceil(step_s)}, or more"
        yield Finding("warning", "timeouts.step_s", text)
    fewer = ", or fewer," if len(trial.plan.validation) and job.parameters.taylor.patience else ""
    yield Finding(
        "note",
        "time",
        f"about {cost.train_seconds(speed, here, epochs):,.2g} s to train, if all parties share this machine and "
        f"nothing else runs: {epochs} epochs{fewer} of {each:.2g} s; measured now, {1e6 * speed.product_s:.2f} µs for "
        "a product mod n^2",
    )
    yield Finding("note", "bytes", on_the_wire(cost.start_bytes() + epochs * cost.epoch_bytes(), job))
