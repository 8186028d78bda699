"""The pre-flight of a training on secret shares: who learns what, what opened weights would reveal, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blindfit.algorithms.protocols.falcon import (
    HIDING_BITS,
    WEIGHT_BOUND,
    EncryptedScales,
    FalconParameters,
    bits_of_opened_weight,
    check_parameters,
)
from blindfit.algorithms.statistics.vertical.selection import Selection
from blindfit.coordinator.falcon import noise, trust
from blindfit.coordinator.falcon.trial import Trial, trial_of
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.network import delay_in_words
from blindfit.coordinator.preflight.account import label_account
from blindfit.coordinator.preflight.findings import Finding, large_delta, line_of, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, describe_spent
from blindfit.coordinator.terminal.wording import duration, quantity, size
from blindfit.coordinator.vertical import cost_of_shares as falcon_cost
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.preflight import Rows
from blindfit.coordinator.vertical.roles import Roles
from blindfit.coordinator.vertical.seated import Seated, seat_data_parties
from blindfit.parties.falcon.answered import Answers
from blindfit.parties.falcon.data_party import Falcon
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.falcon.weight_bits import (
    all_bits,
    weights_bits,
)
from blindfit.parties.training.randomness import name_randomness
from blindfit.parties.work.compute import cores


def leaks(job: Job[FalconJob]) -> Iterator[Finding]:
    roles, asked = joint.roles_of(job), job.parameters
    yield from joint.who(
        trust.list_what_each_learns(roles, asked), trust.colluding(roles, asked), trust.out_of_model(roles, asked)
    )
    yield from joint.unsafe("falcon.unsafe", asked.falcon.unsafe)


def check_rows(job: Job[FalconJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    yield from joint.check_all(job, here, _check_party, _try)


def forecast_s(job: Job[FalconJob], here: Sequence[PartyHere]) -> float:
    """Return the seconds that the pre-flight forecasts, for data parties that are all on this machine."""
    rows, records = joint.rows_here(job, here)
    parameters = trial_of(rows, records, joint.roles_of(job), job.parameters).parameters
    return falcon_cost.cost_of(parameters).train_seconds(falcon_cost.measure(parameters), cores())


def growth(job: Job[FalconJob], here: Sequence[PartyHere], times: int) -> float:
    """Return the factor by which a training takes longer on so many times the rows, by what the key node deals."""
    rows, records = joint.rows_here(job, here)
    now, later = (
        trial_of(joint.repeat_rows(rows, n), records, joint.roles_of(job), job.parameters).parameters
        for n in (1, times)
    )
    speed = falcon_cost.measure(now)
    of_now, of_later = (falcon_cost.cost_of(each).train_seconds(speed, cores()) for each in (now, later))
    return of_later / of_now


# --- one party -----------------------------------------------------------------------------------------------


def _check_party(job: Job[FalconJob], roles: Roles, party: PartyHere, rows: Rows) -> Iterator[Finding]:
    """Yield what the party itself would report, and add its rows to `rows`."""
    is_active, asked = party.name == roles.active, job.parameters
    if asked.privacy is not None:
        yield describe_spent(party)
    yield from joint.read_own(party, rows, active=is_active)


# --- all of them -----------------------------------------------------------------------------------------------


def _try(job: Job[FalconJob], roles: Roles, rows: Rows, data: Mapping[str, PartyHere]) -> Iterator[Finding]:
    with seat_data_parties(job, data, Falcon) as seated:
        yield from _try_seated(job, roles, rows, data, seated)


def _try_seated(
    job: Job[FalconJob], roles: Roles, rows: Rows, data: Mapping[str, PartyHere], seated: Seated[Falcon]
) -> Iterator[Finding]:
    records = {name: party.source().record for name, party in data.items()}
    label_range, drawn = data[roles.active].dataset.label_range, seated.drawn
    trial = trial_of(rows, records, roles, job.parameters, label_range, drawn)
    yield from seated.check_draw()
    parameters = trial.parameters
    yield joint.common_rows(trial.n_rows, job.parameters.align.min_common)
    yield from joint.split(trial.plan, sum(parameters.columns), "the validation loss", "falcon.l2")
    for name in roles.chain:
        yield from _rows_of(trial, name)
    added: dict[str, float] = {}
    if answered := _find_answer(seated):
        text = (
            f"{answered} had this job before: it gets the same model again, and nothing is computed, charged or counted"
        )
        yield Finding("ok", "answered", text)
        added[roles.active] = 0.0
    else:
        yield from seated.check_earlier_jobs(trial, drawn or job.parameters.trial_randomness, added)
    if parameters.noise is None:
        yield from _weights(job.parameters, parameters, data[roles.active], added.get(roles.active))
    else:
        yield from noise.findings(parameters, parameters.noise, trial.prepared)
        yield from large_delta(job.parameters.delta, parameters.train_rows)
    yield from _numbers(parameters)
    if parameters.key_bits is not None:
        yield from _ciphertexts(parameters, parameters.key_bits)
    yield from _cost(job, parameters)


def _find_answer(seated: Seated[Falcon]) -> str:
    """Return the session whose model all data parties have for this job; an empty text if there is no such session."""
    if (drawn := seated.drawn) is None:
        return ""
    found = [Answers(seat.party, seat.session, name_randomness(drawn)).find() for seat in seated.seats.values()]
    told = {None if answer is None else (answer.session, answer.epochs) for answer in found}
    (one,) = told if len(told) == 1 else (None,)
    return one[0] if one else ""


def _numbers(parameters: FalconParameters) -> Iterator[Finding]:
    """Raise RangeError: the numbers do not fit."""
    check_parameters(parameters)
    waves, name = parameters.waves, parameters.waves_name
    if parameters.is_linear:
        yield from _linear_numbers(parameters)
        return
    factor = parameters.step(0, 0).factor
    off = waves.sigmoid_error + parameters.scales.waves.error(waves, factor * waves.sigmoid) / factor
    yield Finding("ok", "field", f"61 bits hold every number; probabilities are right up to {off:.1g}")
    past = "after each epoch one bit is opened, and training ends if a score was larger"
    if parameters.noise is not None:
        past = "a larger score gets a wrong probability within the same bounds, and nobody learns of it"
    yield Finding(
        "note",
        "range",
        f"this holds for scores up to {waves.bound:g} (falcon.waves = {name}); nothing proves that beforehand: {past}",
    )


def _ciphertexts(parameters: FalconParameters, key_bits: int) -> Iterator[Finding]:
    scales = EncryptedScales(parameters)
    yield Finding("ok", "key", f"{key_bits} bits hold every masked score, {scales.slots(key_bits)} to a ciphertext")
    yield Finding(
        "ok",
        "masks",
        f"masks of scores hide {HIDING_BITS} bits of the whole job's masks; at most {scales.encrypted_values:,} "
        f"residuals become ciphertexts, and their masks hide {scales.hidden_bits:.0f} bits of all of them together",
    )


def _linear_numbers(parameters: FalconParameters) -> Iterator[Finding]:
    text = f"residuals are right up to {2.0**-parameters.label_bits:.1g} deviations of the label"
    yield Finding("ok", "field", f"61 bits hold every number; {text}")
    yield Finding(
        "note",
        "range",
        f"this holds for scores up to {parameters.waves.bound:g} deviations of the label; nothing proves that "
        "beforehand: after each epoch one bit is opened, and training ends if a score was larger",
    )


def _rows_of(trial: Trial, name: str) -> Iterator[Finding]:
    own = trial.prepared[name]
    yield from joint.constant_columns(own, name)
    if own.rows_shrunk:
        text = f"{own.rows_shrunk} of {len(own.plan.train):,} rows stand out, and are shortened"
        yield Finding("note", name, f"{text}: a weight would reveal their labels")


# --- what opened weights reveal ----------------------------------------------------------------------------------


def _weights(job: FalconJob, parameters: FalconParameters, active: PartyHere, adds: float | None) -> Iterator[Finding]:
    """Yield what opened weights reveal about labels.

    Args:
        adds: bits that the training adds to the account; None if the active party refuses the training.
    """
    if parameters.kept_bits is None:
        yield Finding(
            "warning",
            "weights",
            "are opened as they are: after few epochs a party's weights are nearly a gradient, which reveals labels",
        )
        return
    bits = all_bits(parameters)
    text = (
        _stay_shared(bits / parameters.train_rows) if parameters.weights_stay_shared else _describe_opening(parameters)
    )
    yield Finding("note", "weights", text)
    if parameters.selection is not None:
        yield Finding("note", "select", _describe_selection(parameters, parameters.selection, bits))
    rows = parameters.train_rows + parameters.validation_rows + parameters.test_rows
    helps = "use fewer columns" if job.falcon.model == "linear" else 'set falcon.weights = "shared"'
    yield from label_account(active, bits, rows, helps, adds=adds)


def _stay_shared(share: float) -> str:
    return (
        "stay in shares: nobody gets a weight, and predictions are made in shares (`blindfit predict`); only the end "
        f"of training reveals something about labels, {share:.2g} bits of each"
    )


def _describe_selection(p: FalconParameters, chosen: Selection, bits: float) -> str:
    each = p.selection_bits / len(chosen.points)
    return (
        f"{quantity(chosen.trainings, 'training')} of folds ({len(chosen.points)} grid points, {chosen.folds} folds) "
        f"and 1 final training reveal at most {bits:,.0f} bits about labels. The weights of folds stay in shares. Each "
        f"grid point opens a rounded {chosen.by} of {each:.1f} bits, to the active party and in the report"
    )


def _describe_opening(p: FalconParameters) -> str:
    bits, most = bits_of_opened_weight(p.kept_bits or 0), max(p.columns[1:])
    step = f"1/{1 << (p.kept_bits or 0)}"
    return (
        f"are opened in steps of {step} from -{WEIGHT_BOUND:g} to {WEIGHT_BOUND:g}, {bits} bits each: the {most} "
        f"weights of a passive party have at most {most * bits} bits about {p.train_rows:,} labels, "
        f"{weights_bits(p) / p.train_rows:.2f} of each"
    )


# --- the cost ----------------------------------------------------------------------------------------


def _cost(job: Job[FalconJob], parameters: FalconParameters) -> Iterator[Finding]:
    cost, speed, here = falcon_cost.cost_of(parameters), falcon_cost.measure(parameters), cores()
    epochs, every, latency_s = parameters.epochs, cost.all, line_of(job).latency_s
    each = cost.epoch if epochs > 1 else cost.first
    fewer = ", or fewer," if parameters.judges else ""
    before = "" if parameters.selection is None else f"{quantity(parameters.selection_epochs, 'epoch')} of folds, then "
    yield Finding(
        "note",
        "time",
        f"about {cost.train_seconds(speed, here):,.2g} s to train, if all parties share this machine and nothing else "
        f"runs: {before}{quantity(epochs, 'epoch')}{fewer} of {cost.epoch_seconds(speed, here):.2g} s. The forecast "
        f"takes {1e9 * speed.element_s:.0f} ns for each number that is dealt, from a small training now, "
        f"{1e9 * speed.compared_s:.0f} ns for a number that is compared, and {1000 * falcon_cost.MESSAGE_S:g} ms "
        "for a message",
    )
    yield Finding(
        "note",
        "rounds",
        f"{each.rounds:,} in an epoch, {every.rounds:,} in all: {delay_in_words(latency_s)} from party to party add "
        f"{duration(latency_s * each.rounds)} to each epoch and {duration(latency_s * every.rounds)} in all",
    )
    dealt, exchanged = cost.dealt_bytes(every), cost.count_exchanged_bytes(every)
    yield Finding("note", "bytes", on_the_wire(dealt + exchanged, job))
    yield Finding(
        "note",
        "bytes",
        f"of these {size(dealt)} from the key node to the active party, {size(cost.dealt_bytes(each))} for each epoch; "
        f"{size(exchanged)} between data parties, {size(cost.count_exchanged_bytes(each))} for each epoch",
    )
