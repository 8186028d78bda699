"""The pre-flight of a vertical training: who learns what, what gradients would give away, what it would take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.gradient_leaks import Leak
from blindfit.algorithms.statistics.taylor import label_bits
from blindfit.coordinator import trust
from blindfit.coordinator.job import Job
from blindfit.coordinator.preflight.findings import Finding, caught, large_delta, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, check_budget
from blindfit.coordinator.preflight.taylor import cost as taylor_cost
from blindfit.coordinator.preflight.taylor.trial import Trial, trial_of
from blindfit.coordinator.trust import Roles
from blindfit.parties.taylor.leaks import own_leaks, shared_leaks
from blindfit.parties.taylor.parameters import check_label_dp, label_noise_std
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import event_of
from blindfit.parties.training.rows import PartyRows, read_rows
from blindfit.parties.training.unit import UNDER_LABEL_DP, refuse_persons
from blindfit.parties.vertical.prepared import Prepared
from blindfit.parties.work.compute import cores

ROWS_PER_COLUMN = 10  # fewer training rows to a column overfit
FEW_TEST_ROWS = 100
WEAK_NOISE = 0.1  # on a coordinate of the mean gradient, whose entries are a few tenths at most
SMALL_EPSILON, HIDES_AT_SMALL_EPSILON = 1.0, 3.0  # kept noise moves weights, which shows columns: docs/gradients.md


def leaks(job: Job[TaylorJob]) -> Iterator[Finding]:
    roles = Roles.of({name: party.role for name, party in job.parties.items()})
    for learnt in trust.learnt(roles, job.parameters):
        yield Finding("note", "who learns what", f"{learnt.who}: {' '.join(learnt.sentences)}")
    for sentence in trust.colluding(roles, job.parameters):
        yield Finding("note", "who colludes", sentence)
    for sentence in trust.out_of_model(roles, job.parameters):
        yield Finding("note", "out of the model", sentence)
    for flag in job.parameters.taylor.unsafe:
        yield Finding("warning", "taylor.unsafe", f"{flag} is allowed; the report will say so")


def check_rows(job: Job[TaylorJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    roles = Roles.of({name: party.role for name, party in job.parties.items()})
    data = {party.name: party for party in here if party.name in roles.chain}
    rows: dict[str, PartyRows] = {}
    for party in data.values():
        yield from caught(party.name, partial(_check_party, job, party, roles, rows))
    missing = [name for name in roles.chain if name not in data]
    if missing:
        yield Finding("note", "rows", f"{trust.listed(tuple(missing), 'and')}: not here, so no trial of the whole")
    elif len(rows) == len(roles.chain):
        names = {name: party.source().feature_names for name, party in data.items()}
        label_range = data[roles.active].dataset.label_range
        yield from caught(
            "trial",
            partial(_try, job, partial(trial_of, rows, names, roles, job.parameters, label_range=label_range), roles),
        )


# --- one party -----------------------------------------------------------------------------------------------


def _check_party(job: Job[TaylorJob], party: PartyHere, roles: Roles, rows: dict[str, PartyRows]) -> Iterator[Finding]:
    """Adds the party's rows to `rows`."""
    source = party.source()
    if job.parameters.privacy is not None:
        refuse_persons(source.settings, party.dataset_name, UNDER_LABEL_DP)
    is_active = party.name == roles.active
    found = read_rows(source, labels=is_active, report=lambda *_: None)
    yield Finding("ok", party.name, f"{len(found.features):,} rows, {len(source.feature_names)} features")
    if is_active and job.parameters.privacy is not None:
        check_label_dp(party.dataset, party.dataset_name, job.parameters)
        yield from check_budget(party, event_of(job.parameters.privacy), again="")
    rows[party.name] = found


# --- all of them -----------------------------------------------------------------------------------------------


def _try(job: Job[TaylorJob], make: Callable[[], Trial], roles: Roles) -> Iterator[Finding]:
    trial = make()
    yield from _alignment(job, trial)
    yield from _split(trial)
    taylor.check_parameters(trial.parameters, [len(b) for b in trial.plan.batches], len(trial.plan.validation))
    yield Finding("ok", "key", f"{job.parameters.taylor.key_bits} bits hold every number of this training")
    yield from _attacks(job, trial, roles)
    if job.parameters.privacy is not None:
        yield from large_delta(job.parameters.delta, len(trial.plan.train))
    yield from _cost(job, trial)


def _alignment(job: Job[TaylorJob], trial: Trial) -> Iterator[Finding]:
    n = trial.n_rows
    if job.parameters.align.method == "linkage":
        yield Finding("note", "linkage", f"{n:,} slots; how many rows match is known only when they are linked")
    elif n < job.parameters.align.least_common:
        least = job.parameters.align.least_common
        yield Finding("refuses", "psi", f"{n:,} rows in common are fewer than align.least_common = {least:,}")
    else:
        yield Finding("ok", "psi", f"{n:,} rows in common")


def _split(trial: Trial) -> Iterator[Finding]:
    plan, columns = trial.plan, sum(trial.parameters.columns)
    yield Finding(
        "ok",
        "split",
        f"{len(plan.train):,} rows to train on, batches of {trial.smallest_batch:,} or more; {len(plan.validation):,} "
        f"for the hold-out loss, {len(plan.test):,} to test on",
    )
    if len(plan.train) < ROWS_PER_COLUMN * columns:
        text = f"{len(plan.train):,} rows for {columns} weights are few: raise taylor.l2, or leave features out"
        yield Finding("warning", "rows", text)
    if 0 < len(plan.test) < FEW_TEST_ROWS:
        text = f"{len(plan.test)} test rows make rough figures: raise split.test_fraction"
        yield Finding("warning", "rows", text)


# --- what would leak -------------------------------------------------------------------------------------------


def _attacks(job: Job[TaylorJob], trial: Trial, roles: Roles) -> Iterator[Finding]:
    """What every party will check of itself, and all of what they tell each other, on this trial's batches."""
    if job.parameters.privacy is not None:
        yield _label_noise(job, trial)
    else:
        shared = shared_leaks(trial.parameters, trial.plan, job.parameters)
        yield from _as_findings(job, "labels", shared, _bits(job, trial))
    for name in roles.chain:
        own = trial.prepared[name]
        for column in own.standardiser.dropped:
            yield Finding("note", name, f"{column} has the same value in every training row, so its weight will be 0")
        yield from _as_findings(
            job, name, own_leaks(own.plan, own.columns.shape[1], job.parameters), _defended(job, own)
        )


def _bits(job: Job[TaylorJob], trial: Trial) -> str:
    passive, rows, jitter = sum(trial.parameters.columns[1:]), trial.smallest_batch, job.parameters.taylor.jitter
    guess = gradient_leaks.label_auc(passive, rows, jitter)
    return (
        f"a batch gives away at most {label_bits(passive, jitter):.0f} bits about its {rows} labels, to all {passive} "
        f"passive columns together: what nothing else tells they guess with AUC {guess:.2f} at best"
    )


def _defended(job: Job[TaylorJob], own: Prepared) -> str:
    noise, epsilon = job.parameters.taylor.gradient_noise, job.parameters.epsilon
    less = noise < HIDES_AT_SMALL_EPSILON and 0 < epsilon <= SMALL_EPSILON
    return (
        f"no row stands out, after {own.rows_shrunk} of {len(own.plan.train):,} were shortened; noise of "
        f"{noise:g} on every sum hides columns of few values"
        + (f", at this epsilon less than {HIDES_AT_SMALL_EPSILON:g} would (taylor.gradient_noise)" if less else "")
    )


def _as_findings(job: Job[TaylorJob], about: str, leaks: Sequence[Leak], fine: str) -> Iterator[Finding]:
    """Each leak, refused unless the job allows it; where there is none, that all is well."""
    for leak in leaks:
        allowed = leak.flag in job.parameters.taylor.unsafe
        hint = "" if allowed else f' (or allow it: taylor.unsafe = ["{leak.flag}"])'
        yield Finding("warning" if allowed else "refuses", about, leak.text + hint)
    if not leaks:
        yield Finding("ok", about, fine)


def _label_noise(job: Job[TaylorJob], trial: Trial) -> Finding:
    """Of the mean gradient over all rows, which an epoch's batches add up to."""
    n, batches = len(trial.plan.train), len(trial.plan.batches)
    noise_std = label_noise_std(job.parameters, sum(trial.parameters.columns)) * batches**0.5 / n
    text = f"label DP: standard deviation {noise_std:.2g} on each coordinate of an epoch's mean gradient"
    if noise_std > WEAK_NOISE:
        return Finding("warning", "noise", f"{text}: expect a weak model; take more rows or a larger epsilon")
    return Finding("ok", "noise", text)


# --- what it takes -----------------------------------------------------------------------------------------------


def forecast_s(job: Job[TaylorJob], here: Sequence[PartyHere]) -> float:
    """The seconds that the pre-flight tells, of data parties that are all here; by Blindfit's own engine."""
    roles = Roles.of({name: party.role for name, party in job.parties.items()})
    sources = {party.name: party.source() for party in here if party.name in roles.chain}
    rows = {
        name: read_rows(source, labels=name == roles.active, report=lambda *_: None) for name, source in sources.items()
    }
    names = {name: source.feature_names for name, source in sources.items()}
    speed, cost = _costed(job, trial_of(rows, names, roles, job.parameters))
    return cost.train_seconds(speed, cores(), job.parameters.taylor.epochs)


def _costed(job: Job[TaylorJob], trial: Trial) -> tuple[taylor_cost.Speed, taylor_cost.Cost]:
    """By what operations take here and now."""
    speed = taylor_cost.measure(job.parameters.taylor.key_bits)
    batch_rows, held_out = [len(batch) for batch in trial.plan.batches], len(trial.plan.validation)
    return speed, taylor_cost.Cost(
        trial.parameters, batch_rows, held_out, len(trial.plan.test), trial.n_rows, unit_product=speed.unit_product
    )


def _cost(job: Job[TaylorJob], trial: Trial) -> Iterator[Finding]:
    speed, cost = _costed(job, trial)
    here = cores()
    epochs = job.parameters.taylor.epochs
    each = cost.epoch_seconds(speed, here)
    if job.parameters.paillier.engine == "phe":
        speed, cost = taylor_cost.measure_reference(job.parameters.taylor.key_bits), replace(cost, one_by_one=True)
        own, each = each, cost.epoch_seconds(speed, here)
        text = f"python-paillier is a slow reference: about {each / own:.0f} times the time of Blindfit's own engine"
        yield Finding("warning", "paillier.engine", text)
    waited_s = job.parameters.timeouts.step_s
    if (step_s := cost.longest_step_seconds(speed)) > waited_s:
        text = f"a party may take {step_s:,.0f} s for one step, and its peers wait {waited_s:g} s: raise it"
        yield Finding("warning", "timeouts.step_s", text)
    fewer = ", or fewer," if len(trial.plan.validation) and job.parameters.taylor.patience else ""
    yield Finding(
        "note",
        "time",
        f"about {cost.train_seconds(speed, here, epochs):,.2g} s to train, if all parties are on this machine and "
        f"nothing else: {epochs} epochs{fewer} of {each:.2g} s; measured now, {1e6 * speed.product_s:.2f} us a product "
        "mod n^2",
    )
    yield Finding("note", "bytes", on_the_wire(cost.start_bytes() + epochs * cost.epoch_bytes()))
