"""The pre-flight of a training in shares: who learns what, what opened weights would tell, what it would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.protocols.falcon import (
    HIDING_BITS,
    WEIGHT_BOUND,
    EncryptedScales,
    FalconParameters,
    bits_of_opened_weight,
    check_parameters,
)
from blindfit.coordinator.falcon import noise, trust
from blindfit.coordinator.falcon.trial import Trial, trial_of
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.account import label_account
from blindfit.coordinator.preflight.findings import Finding, catch_error, large_delta, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, check_budget
from blindfit.coordinator.terminal.wording import duration, quantity, size
from blindfit.coordinator.vertical import cost_of_shares as falcon_cost
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.preflight import Rows
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.falcon.privacy import check_dataset, event_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.falcon.weight_bits import (
    check_weight_bits,
    end_bits,
    refusal,
    score_bits_of_a_weight,
    weights_bits,
)
from blindfit.parties.work.compute import cores

LATENCY_S = 0.04  # from one organisation to another
AGAIN = "only a job that was answered before gets its model again"


def leaks(job: Job[FalconJob]) -> Iterator[Finding]:
    roles, asked = joint.roles_of(job), job.parameters
    yield from joint.who(
        trust.list_what_each_learns(roles, asked), trust.colluding(roles, asked), trust.out_of_model(roles, asked)
    )
    yield from joint.unsafe("falcon.unsafe", asked.falcon.unsafe)


def check_rows(job: Job[FalconJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    yield from joint.check_all(job, here, _check_party, _try)


def forecast_s(job: Job[FalconJob], here: Sequence[PartyHere]) -> float:
    """The seconds that the pre-flight tells, of data parties that are all here."""
    rows, records = joint.rows_here(job, here)
    parameters = trial_of(rows, records, joint.roles_of(job), job.parameters).parameters
    return falcon_cost.cost_of(parameters).train_seconds(falcon_cost.measure(parameters), cores())


# --- one party -----------------------------------------------------------------------------------------------


def _check_party(job: Job[FalconJob], roles: Roles, party: PartyHere, rows: Rows) -> Iterator[Finding]:
    """As it would say itself; adds its rows to `rows`."""
    is_active, asked = party.name == roles.active, job.parameters
    if is_active and (party.dataset.label_kind == "binary") != (asked.falcon.model == "logistic"):
        raise ConfigError(
            f'datasets.{party.dataset_name}.label_kind does not go with falcon.model = "{asked.falcon.model}"'
        )
    if asked.privacy is not None:
        check_dataset(asked, party.source(), party.dataset)
        yield from check_budget(party, event_of(asked), AGAIN)
    yield from joint.read_own(party, rows, active=is_active)


# --- all of them -----------------------------------------------------------------------------------------------


def _try(job: Job[FalconJob], roles: Roles, rows: Rows, data: Mapping[str, PartyHere]) -> Iterator[Finding]:
    records = {name: party.source().record for name, party in data.items()}
    trial = trial_of(rows, records, roles, job.parameters, data[roles.active].dataset.label_range)
    parameters = trial.parameters
    yield joint.common_rows(trial.n_rows, job.parameters.align.min_common)
    yield from joint.split(trial.plan, sum(parameters.columns), "the validation loss", "falcon.l2")
    for name in roles.chain:
        yield from _rows_of(trial, name)
    if parameters.noise is None and not parameters.weights_stay_shared:
        yield from joint.room_for_fit(data, trial.prepared, score_bits_of_a_weight(parameters))
    if parameters.noise is None:
        yield from catch_error("weights", partial(_weights, job.parameters, parameters, data[roles.active]))
    else:
        yield from noise.findings(parameters, parameters.noise, trial.prepared)
        yield from large_delta(job.parameters.delta, parameters.train_rows)
    yield from _numbers(parameters)
    if parameters.key_bits is not None:
        yield from _ciphertexts(parameters, parameters.key_bits)
    yield from _cost(parameters)


def _numbers(parameters: FalconParameters) -> Iterator[Finding]:
    """Raises RangeError: they do not fit."""
    check_parameters(parameters)
    waves, name = parameters.waves, parameters.waves_name
    if parameters.is_linear:
        yield from _linear_numbers(parameters)
        return
    factor = parameters.step(0, 0).factor
    off = waves.sigmoid_error + parameters.scales.waves.error(waves, factor * waves.sigmoid) / factor
    yield Finding("ok", "field", f"61 bits hold every number; probabilities are right up to {off:.1g}")
    past = "after each epoch one bit is opened, and if a score was larger the training ends"
    if parameters.noise is not None:
        past = "a larger one has a wrong probability, which is as bounded as a right one, and nobody is told"
    yield Finding(
        "note",
        "range",
        f"that holds for scores up to {waves.bound:g} (falcon.waves = {name}), which nothing proves beforehand: {past}",
    )


def _ciphertexts(parameters: FalconParameters, key_bits: int) -> Iterator[Finding]:
    scales = EncryptedScales(parameters)
    yield Finding("ok", "key", f"{key_bits} bits hold every masked score, {scales.slots(key_bits)} to a ciphertext")
    yield Finding(
        "ok",
        "masks",
        f"those of scores hide {HIDING_BITS} bits of the whole job's; {scales.encrypted_values:,} residuals become "
        f"ciphertexts at most, and their masks hide {scales.hidden_bits:.0f} bits of all of them together",
    )


def _linear_numbers(parameters: FalconParameters) -> Iterator[Finding]:
    text = f"residuals are right up to {2.0**-parameters.label_bits:.1g} deviations of the label"
    yield Finding("ok", "field", f"61 bits hold every number; {text}")
    yield Finding(
        "note",
        "range",
        f"that holds for scores up to {parameters.waves.bound:g} deviations of the label, which nothing proves "
        "beforehand: after each epoch one bit is opened, and if a score was larger the training ends",
    )


def _rows_of(trial: Trial, name: str) -> Iterator[Finding]:
    own = trial.prepared[name]
    yield from joint.constant_columns(own, name)
    if own.rows_shrunk:
        text = f"{own.rows_shrunk} of {len(own.plan.train):,} rows stand out, and are shortened"
        yield Finding("note", name, f"{text}: a weight would tell their labels")


# --- what opened weights tell ----------------------------------------------------------------------------------


def _weights(job: FalconJob, parameters: FalconParameters, active: PartyHere) -> Iterator[Finding]:
    """As the active party will check it, of its newest snapshot.

    Raises:
        PolicyRefused: they would tell too much.
    """
    if parameters.kept_bits is None:
        yield Finding(
            "warning",
            "weights",
            "are opened as they are: after few epochs a party's weights are nearly a gradient, which gives labels away",
        )
        return
    bits = weights_bits(parameters) + end_bits(parameters, parameters.epochs)
    share = bits / parameters.train_rows
    text = _stay_shared(share) if parameters.weights_stay_shared else _describe_opening(parameters)
    yield Finding("note", "weights", text)
    check_weight_bits(job, share, active.name)
    rows = parameters.train_rows + parameters.validation_rows + parameters.test_rows
    helps = "use fewer columns" if job.falcon.model == "linear" else 'set falcon.weights = "shared"'
    raised = None if "weight-bits" in job.falcon.unsafe else refusal(job, share, active.name)
    yield from label_account(active, bits, rows, helps, raised)


def _stay_shared(share: float) -> str:
    return (
        "stay in shares: nobody gets one, and predictions are made in shares (`blindfit predict`); only where training "
        f"ends tells of labels, {share:.2g} bits of each"
    )


def _describe_opening(p: FalconParameters) -> str:
    bits, most = bits_of_opened_weight(p.kept_bits or 0), max(p.columns[1:])
    step = f"1/{1 << (p.kept_bits or 0)}"
    return (
        f"are opened in steps of {step} from -{WEIGHT_BOUND:g} to {WEIGHT_BOUND:g}, {bits} bits each: {most} weights "
        f"of a passive party have {most * bits} bits of {p.train_rows:,} labels at most, "
        f"{weights_bits(p) / p.train_rows:.2f} of each"
    )


# --- what it takes -----------------------------------------------------------------------------------------------


def _cost(parameters: FalconParameters) -> Iterator[Finding]:
    cost, speed, here = falcon_cost.cost_of(parameters), falcon_cost.measure(parameters), cores()
    epochs, every = parameters.epochs, cost.all
    each = cost.epoch if epochs > 1 else cost.first
    fewer = ", or fewer," if parameters.judges else ""
    yield Finding(
        "note",
        "time",
        f"about {cost.train_seconds(speed, here):,.2g} s to train, if all parties are on this machine and nothing "
        f"else: {quantity(epochs, 'epoch')}{fewer} of {cost.epoch_seconds(speed, here):.2g} s; a small training now "
        f"took {1e9 * speed.element_s:.0f} ns for each number that is dealt, {1e9 * speed.compared_s:.0f} where it is "
        f"compared, and a message is taken as {1000 * falcon_cost.MESSAGE_S:g} ms",
    )
    yield Finding(
        "note",
        "rounds",
        f"{each.rounds:,} an epoch, {every.rounds:,} in all: {1000 * LATENCY_S:.0f} ms from party to party add "
        f"{duration(LATENCY_S * each.rounds)} to each epoch and {duration(LATENCY_S * every.rounds)} in all",
    )
    dealt, exchanged = cost.dealt_bytes(every), cost.count_exchanged_bytes(every)
    yield Finding("note", "bytes", on_the_wire(dealt + exchanged))
    yield Finding(
        "note",
        "bytes",
        f"of these {size(dealt)} from the key node to the active party, {size(cost.dealt_bytes(each))} for each epoch; "
        f"{size(exchanged)} between data parties, {size(cost.count_exchanged_bytes(each))} for each epoch",
    )
