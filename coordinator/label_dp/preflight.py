"""The pre-flight of a label-dp job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.algorithms.estimators.label_noise import NoiseProfile
from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.label_mechanisms import (
    LabelGrid,
    LabelMechanism,
    MechanismSettings,
    fit,
    uniform_prior,
)
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.statistics.label_dp.options import check_options
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.measured.unknown_ids import check_ids
from blindfit.coordinator.preflight.findings import Finding, Level, catch_error, large_delta, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, check_least_rows, describe_budget, list_derived
from blindfit.parties.label_dp.consumer import read_rows, settings_on
from blindfit.parties.label_dp.fit import Rows
from blindfit.parties.label_dp.settings import LabelDPJob, LabelDPSettings
from blindfit.parties.training.rows import check_features

BYTES_PER_ID, BYTES_PER_LABEL = 12, 10
WEAK = 0.1  # of the range: error that noise may add to a prediction
WEAK_TREES = 0.05  # likewise: a leaf fits few rows, and there are mostly a few percent of the range to learn
AGAIN = "only a release that was made before is given again"


def leaks(job: Job[LabelDPJob]) -> Iterator[Finding]:
    privacy, chosen = job.parameters.required_privacy, job.parameters.label_dp
    active, server = (job.with_role(role)[0] for role in ("active", "measurement"))
    delta = privacy.delta if chosen.mechanism == "gaussian" else 0
    about = "who learns what"
    yield Finding("note", about, f"{server} sees the ids of all of {active}'s rows, held-out ones too, and no feature")
    yield Finding(
        "note",
        about,
        f"{active} learns a noisy label of each of its rows ({chosen.mechanism}) and the fitted mechanism; "
        f"(epsilon {privacy.epsilon:g}, delta {delta:g}) label DP",
    )
    if not chosen.debias:
        yield Finding(
            "warning", "bias", f"the bias of {chosen.mechanism} stays: the model learns the biased mean of a label"
        )


def check_rows(job: Job[LabelDPJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    by_role = {party.settings.role: party for party in here}
    server, active = by_role.get("measurement"), by_role.get("active")
    noise: list[float] = []
    if server is not None:
        yield from catch_error(server.name, partial(_check_labels, job, server, noise))
    if active is not None:
        yield from catch_error(active.name, partial(_check_features, job, active, server, noise))
    yield from catch_error("ids", partial(check_ids, job, here))


def _check_labels(job: Job[LabelDPJob], party: PartyHere, noise: list[float]) -> Iterator[Finding]:
    """Add the noise of a label to `noise`."""
    dataset, privacy, chosen = party.dataset, job.parameters.required_privacy, job.parameters.label_dp
    event = job.parameters.event_at_server(UNITS["person" if dataset.person else "row"][1])
    yield from describe_budget(party, event, AGAIN)
    grid = LabelGrid(*(dataset.label_range or (0.0, 1.0)))
    rows = (privacy.max_rows_per_person or dataset.max_rows_per_person) if dataset.person else 0
    settings_on(grid, job.parameters, rows)  # the active party refuses these, and the server what cannot be fitted
    try:
        mechanism, guessed = expected_mechanism(grid, job, rows)
    except BlindfitError as error:  # in the server's words
        raise PolicyRefused(party=party.name, field="mechanism", reason=str(error)) from None
    profile = NoiseProfile.of(mechanism, debias=chosen.debias)
    std = profile.typical_std
    noise.append(std)
    given = ", if labels were spread evenly" if guessed else ""
    text = (
        f"standard deviation {std:.3g} on each label, {std / grid.width:.2g} times the range [{grid.lo:g}, {grid.hi:g}]"
    )
    yield Finding("ok", "noise", text + given)
    if not chosen.debias:
        yield Finding("note", "bias", f"up to {profile.largest_bias:.3g}{given}")


def expected_mechanism(grid: LabelGrid, job: Job[LabelDPJob], max_rows_per_person: int) -> tuple[LabelMechanism, bool]:
    """Return the mechanism of the job, made without a label; and True if a prior had to be guessed for it."""
    return _fit_expected(settings_on(grid, job.parameters, max_rows_per_person))


@lru_cache(maxsize=128)  # a plan needs some again, and a linear program takes seconds; no label enters it
def _fit_expected(settings: MechanismSettings) -> tuple[LabelMechanism, bool]:
    if not settings.estimates_prior:
        return fit(settings, [], system_uniform).mechanism, False
    left = settings.epsilon - settings.epsilon_of_prior
    known = replace(
        settings,
        epsilon=left,
        prior=uniform_prior(settings.grid),
        epsilon_prior=None,
        prior_mechanism=None,
        cell_width=None,
    )
    return fit(known, [], system_uniform).mechanism, True


def _check_features(
    job: Job[LabelDPJob], party: PartyHere, server: PartyHere | None, noise: list[float]
) -> Iterator[Finding]:
    source = check_features(party.source(), "an active party")
    rows = read_rows(source, job.parameters, job.parameters.trial_randomness, lambda *_: None)
    n, k = rows.train_features.shape
    yield Finding("ok", party.name, f"{n:,} rows to train on, {len(rows.test_features):,} held out, {k} columns")
    yield from list_derived(party, source)
    yield from large_delta(job.parameters.delta, len(rows.ids))
    if server is not None:
        yield from check_least_rows(server, len(rows.ids))
    if noise and server is not None and server.dataset.label_range is not None:
        lo, hi = server.dataset.label_range
        yield _check_noise(rows, noise[0], hi - lo)
        yield from _trees(job.parameters.label_dp, len(rows.train_features), noise[0] / (hi - lo))
    yield Finding("note", "bytes", on_the_wire(len(rows.ids) * (BYTES_PER_ID + BYTES_PER_LABEL), job))


def _check_noise(rows: Rows, noise_std: float, width: float) -> Finding:
    n, k = rows.train_features.shape
    added = noise_std * min(1.0, (k + 1) / n) ** 0.5
    text = f"it moves a linear model's predictions by about {added:.2g}, {added / width:.1%} of the range"
    level: Level = "warning" if added > WEAK * width else "ok"
    advice = (
        ": expect a weak model; use more rows, fewer columns or a larger privacy.epsilon" if level == "warning" else ""
    )
    return Finding(level, "noise", text + advice)


def trees_on_noise(chosen: LabelDPSettings, n_rows: int, noise_of_range: float) -> str:
    """Return a warning about trees on labels with so much noise; empty for other regressors, and if trees stand it.

    The mean of a leaf's labels is off by the noise of one label, divided by the root of the leaf's rows. A forest's
    trees
    see the same labels, so its mean is hardly better.

    Args:
        noise_of_range: standard deviation of a label's noise, as a share of the labels' range.
    """
    options = check_options(chosen.regressor, chosen.options)
    if "min_samples_leaf" not in options:
        return ""
    least, depth = (int(options[name]) for name in ("min_samples_leaf", "max_depth"))
    leaves = max(1, min(2**depth, n_rows // least))
    off = noise_of_range * min(1.0, leaves / n_rows) ** 0.5
    if off <= WEAK_TREES:
        return ""
    return (
        f"a tree of {leaves} leaves follows the noise: the mean of a leaf is off by about {off:.1%} of the range, and "
        f'{chosen.regressor} may be no better than a constant. Set label_dp.regressor = "ridge", or raise '
        f"label_dp.options.min_samples_leaf above {max(least, n_rows // leaves):,}"
    )


def _trees(chosen: LabelDPSettings, n_rows: int, noise_of_range: float) -> Iterator[Finding]:
    if said := trees_on_noise(chosen, n_rows, noise_of_range):
        yield Finding("warning", "trees", said)
