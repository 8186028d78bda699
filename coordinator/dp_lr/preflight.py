"""The pre-flight of a dp-lr job: noise compared with gradients, budget, and start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from blindfit.algorithms.estimators.cautions import LEAST_SIGNAL
from blindfit.coordinator.dp_lr.cautions import UNDECLARED
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, Level, catch_error, large_delta
from blindfit.coordinator.preflight.parties import PartyHere, describe_spent, list_derived
from blindfit.coordinator.preflight.seats import seat_parties
from blindfit.coordinator.terminal.wording import figure
from blindfit.parties.dp_lr.rows import SCALES, STARTS, Start, check_private, find_start, read_private
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.dp_lr.trainer import ledger_of

AGAIN = "only a job that was answered before gets its model again"


def leaks(job: Job[DPLRJob]) -> Iterator[Finding]:
    (active,) = job.parties
    about, privacy = "who learns what", job.parameters.required_privacy
    yield Finding(
        "note", about, f"no row, label or gradient leaves {active}; anyone who gets the model learns its weights"
    )
    yield Finding(
        "note",
        about,
        f"the model is (epsilon {figure(job.parameters.epsilon)}, delta {privacy.delta:g})-DP of whole rows, features "
        "and labels",
    )
    if job.parameters.dp_lr.budget == "iteration":
        each = f"epsilon {privacy.epsilon:g} of each of {job.parameters.dp_lr.iterations} iterations"
        yield Finding("note", "privacy.epsilon", f"{each} composes to {figure(job.parameters.epsilon)}")
    if job.parameters.split.test_fraction:
        yield Finding(
            "note", about, f"figures on held-out rows are exact and in no budget: {active} keeps them to itself"
        )


def check_rows(job: Job[DPLRJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    for party in here:
        yield from catch_error(party.name, partial(_check_party, job, party))


def _check_party(job: Job[DPLRJob], party: PartyHere) -> Iterator[Finding]:
    yield describe_spent(party)
    source = check_private(party.source())
    start = find_start(party.settings, party.base_dir, job.parameters, source, party.source_of, lambda *_: None)
    yield _start(start)
    rows = read_private(source, job.parameters, job.parameters.trial_randomness, lambda *_: None)
    k = len(start.model.weights)
    yield Finding("ok", party.name, f"{rows.n_trained:,} rows to train on, {rows.test.sum():,} held out, {k} columns")
    yield from list_derived(party, source)
    party.settings.policy.check_rows(int(job.parameters.expected_rows(rows.n_trained)))
    with seat_parties(job, {party.name: party}) as seats:
        ledger = ledger_of(*seats[party.name], source, start)
        if ledger.answer() is None:
            ledger.check()
        else:
            yield Finding("ok", party.name, "had this job before: it gets that model again, and nothing is charged")
    yield _noise(job, rows.n_trained, k + 1)
    yield from large_delta(job.parameters.delta, rows.n_trained)


def _start(start: Start) -> Finding:
    text = f"descent starts at {STARTS[start.kind]}; features are {SCALES[start.scale]}"
    if start.kind == "undeclared":
        return Finding("warning", "dp_lr.init", f"{text}: {UNDECLARED}")
    if start.scale == "none":
        return Finding("warning", "start", f"{text}: set dp_lr.feature_bounds, or scale by public rows (dp_lr.init)")
    return Finding("ok", "start", text)


def _noise(job: Job[DPLRJob], n_rows: int, n_columns: int) -> Finding:
    privacy = job.parameters.run_privacy
    ratio, multiplier = privacy.signal_to_noise(n_rows, n_columns), privacy.noise_multiplier()
    divisor = job.parameters.expected_rows(n_rows) * privacy.batch_fraction
    std = multiplier * privacy.sensitivity * job.parameters.dp_lr.clip_norm / divisor
    text = (
        f"standard deviation of {std:.2g} on each coordinate of a mean gradient, whose norm is at most "
        f"{job.parameters.dp_lr.clip_norm:g}; over all iterations signal to noise is at most {ratio:.2g}"
    )
    level: Level = "warning" if ratio < LEAST_SIGNAL else "ok"
    advice = ": the model will be hardly more than its start; use more rows, fewer columns or a larger privacy.epsilon"
    return Finding(level, "noise", text + (advice if level == "warning" else ""))
