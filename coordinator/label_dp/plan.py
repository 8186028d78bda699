"""The plan of a label-dp job: the effect of each mechanism's noise on a model at each epsilon. Their laws are public.

A linear model of k weights that is fitted to n noisy labels moves by the deviation of one label's noise, times
sqrt(k / n), in the root mean square of its predictions. A bias that is not removed stays for any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.estimators.label_noise import NoiseProfile
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.base import check_label_epsilon
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.label_dp.preflight import expected_mechanism, trees_on_noise
from blindfit.coordinator.plan.asked import Asked, Plan, Table
from blindfit.coordinator.plan.pictures import figure_by_epsilon
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.report.plots import MUTED, Plot, set_log_scale, svg_of
from blindfit.coordinator.terminal.wording import count, percent
from blindfit.parties.label_dp.consumer import read_rows
from blindfit.parties.label_dp.settings import CANNOT_DEBIAS, LabelDPJob, LabelDPSettings, MechanismName
from blindfit.parties.training.rows import check_features

NEEDS_A_WIDTH = "rp-banded"  # is compared if the job sets one
Errors = dict[str, dict[float, float | None]]  # by mechanism and epsilon; None if it has no such epsilon


def plan(job: Job[LabelDPJob], active: PartyHere, asked: Asked, on_done: Callable[[int, int], None]) -> Plan:
    """Return the plan.

    Args:
        on_done: function that receives the number of finished mechanisms, and of all mechanisms.

    Raises:
        ConfigError: an option is only for WALR, or labels are not numbers.
    """
    asked.refuse_of_walr("label-dp")
    source = check_features(active.source(), "an active party")
    read = read_rows(source, job.parameters, job.parameters.trial_randomness, lambda *_: None)
    n, k = len(read.train_features), read.train_features.shape[1] + 1
    grid, rows_of_unit, range_of = _labels(job)
    own = job.parameters.required_privacy.epsilon
    epsilons = asked.all_epsilons(own)
    errors: Errors = {}
    offered = list(_settings(job.parameters.label_dp))
    for done, settings in enumerate(offered, 1):
        errors[settings.mechanism] = {
            epsilon: _error(_with(job, settings, epsilon), grid, rows_of_unit, k / n) for epsilon in epsilons
        }
        on_done(done, len(offered))
    best = {epsilon: _least(errors, epsilon) for epsilon in epsilons}
    return Plan(
        facts=(
            ("rows", f"{count(n)} of {active.name} to train on, {k} weights"),
            ("labels", f"{range_of}, spread evenly; a person has {rows_of_unit} rows" if rows_of_unit else range_of),
            ("assumed", "labels spread evenly over their range, a linear model, no l2"),
        ),
        tables=(_table(errors, epsilons),),
        advice=(
            *_advice(job.parameters.label_dp.mechanism, errors, best, own),
            *(
                _of_trees(job, grid, rows_of_unit, n)
                if errors[job.parameters.label_dp.mechanism][own] is not None
                else ()
            ),
        ),
        plots=(_plot(errors, epsilons),),
        content={
            "rows": n,
            "weights": k,
            "errors": {name: {f"{epsilon:g}": error for epsilon, error in of.items()} for name, of in errors.items()},
            "best": {f"{epsilon:g}": name for epsilon, name in best.items()},
        },
    )


def _labels(job: Job[LabelDPJob]) -> tuple[LabelGrid, int, str]:
    """Return the public range of labels, the number of rows of a person that count, and the range in words.

    They come from the server's file if it is here. Else any range will do, because errors are shares of the range.
    """
    privacy = job.parameters.required_privacy
    (name,) = job.with_role("measurement")
    if job.parties[name].config is None:
        return LabelGrid(0.0, 1.0), privacy.max_rows_per_person or 0, f"the range that {name} has"
    server = PartyHere.of(job, name)
    dataset = server.settings.datasets.get(server.dataset_name)
    if dataset is None or dataset.label_range is None:
        raise ConfigError(f"{name}: {server.dataset_name} has no label_range", hint='binary labels are for "walr"')
    rows = (privacy.max_rows_per_person or dataset.max_rows_per_person) if dataset.person else 0
    lo, hi = dataset.label_range
    return LabelGrid(lo, hi), rows, f"from {lo:g} to {hi:g}"


def _settings(own: LabelDPSettings) -> Iterator[LabelDPSettings]:
    """Yield every mechanism with its defaults; the job's mechanism with its settings."""
    for name in get_args(MechanismName):
        if name == own.mechanism:
            yield own
        elif name != NEEDS_A_WIDTH:
            yield LabelDPSettings(mechanism=name, debias=name not in CANNOT_DEBIAS)


def _with(job: Job[LabelDPJob], settings: LabelDPSettings, epsilon: float) -> Job[LabelDPJob]:
    privacy = job.parameters.required_privacy.model_copy(update={"epsilon": epsilon})
    return job.with_parameters(job.parameters.model_copy(update={"privacy": privacy, "label_dp": settings}))


def _error(job: Job[LabelDPJob], grid: LabelGrid, rows_of_unit: int, weights_per_row: float) -> float | None:
    """Return the root mean square of what the mechanism adds to a prediction, as a share of the range."""
    settings, epsilon = job.parameters.label_dp, job.parameters.required_privacy.epsilon
    try:
        check_label_epsilon(epsilon, settings.mechanism)
        mechanism, _ = expected_mechanism(grid, job, rows_of_unit)
    except ConfigError:
        return None
    profile = NoiseProfile.of(mechanism, debias=settings.debias)
    noise = profile.variances.mean() * min(1.0, weights_per_row)
    bias = ((profile.means - profile.labels) ** 2).mean()
    return float(np.sqrt(noise + bias) / grid.width)


def _least(errors: Errors, epsilon: float) -> str | None:
    known = {name: error for name, of in errors.items() if (error := of[epsilon]) is not None}
    return min(known, key=lambda name: known[name]) if known else None


def _table(errors: Errors, epsilons: list[float]) -> Table:
    def cell(error: float | None) -> str:
        return "" if error is None else f"{100 * error:.3g}"

    rows = tuple((name, *(cell(of[epsilon]) for epsilon in epsilons)) for name, of in errors.items())
    return Table(
        "Error that each mechanism adds to a prediction",
        "Root mean square in percent of the range of labels, by epsilon: noise, and the remaining bias.",
        ("mechanism", *(f"{epsilon:g}" for epsilon in epsilons)),
        rows,
    )


def _advice(mechanism: str, errors: Errors, best: Mapping[float, str | None], own: float) -> Iterator[str]:
    least, mine = best[own], errors[mechanism][own]
    if least is None or mine is None:
        yield f"No mechanism has epsilon {own:g}."
    elif least == mechanism:
        yield f"At epsilon {own:g} {mechanism}, as in the job, loses least."
    else:
        debias = " --set label_dp.debias=false" if least in CANNOT_DEBIAS else ""
        yield (
            f"At epsilon {own:g} {least} loses least: {percent(errors[least][own] or 0.0)} of the range, not "
            f"{percent(mine)}: --set label_dp.mechanism={least}{debias}"
        )


def _of_trees(job: Job[LabelDPJob], grid: LabelGrid, rows_of_unit: int, n_rows: int) -> Iterator[str]:
    """Yield a remark about trees: the plan assumes a linear model."""
    chosen = job.parameters.label_dp
    mechanism, _ = expected_mechanism(grid, job, rows_of_unit)
    profile = NoiseProfile.of(mechanism, debias=chosen.debias)
    if said := trees_on_noise(chosen, n_rows, profile.typical_std / grid.width):
        yield f"{said[0].upper()}{said[1:]}."


def _plot(errors: Errors, epsilons: list[float]) -> Plot:
    figure, axes = figure_by_epsilon(epsilons, "of the range")
    for place, (name, of) in enumerate(errors.items()):
        points = [(epsilon, error) for epsilon in epsilons if (error := of[epsilon]) is not None]
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, label=name, color=f"C{place}", linewidth=1.5, marker="o", markersize=3)
    set_log_scale(axes, lambda value: f"{100 * value:g}%")
    axes.legend(frameon=False, labelcolor=MUTED, fontsize=8)
    return Plot(
        "Error that each mechanism adds to a prediction", "Root mean square, of the labels' range.", svg_of(figure)
    )
