"""The plan of a WALR job: a simulation of its release and its fit, on the active party's features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr.fit import MuTreatment
from blindfit.algorithms.statistics.walr.forecast import Case, forecast, l2_of, without_noise
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.measured.rows_of_unit import RowsOfUnit
from blindfit.coordinator.plan.asked import Asked, Plan
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import join_names
from blindfit.coordinator.walr.assumed import assume
from blindfit.coordinator.walr.outcome import AS_IN_THE_JOB, Outcome
from blindfit.coordinator.walr.rows import Read
from blindfit.parties.walr.settings import WalrJob

OTHER_TREATMENTS: tuple[MuTreatment, ...] = ("clip", "project")
L2_FACTORS = (1 / 3, 3.0)  # times the default
FEW_STEPS = (3, 10, 30)  # iterations of gradient descent, stopped early


def plan(job: Job[WalrJob], active: PartyHere, asked: Asked, on_draw: Callable[[int, int], None]) -> Plan:
    """Return the plan.

    Args:
        on_draw: function that receives the number of finished draws, and of all draws.

    Raises:
        ConfigError, DataError: the rows or the weights to assume are unusable.
    """
    if holders := job.with_role("passive"):
        raise ConfigError(
            f"a plan draws labels from all columns, and {join_names(holders)} "
            f"hold{'s' if len(holders) == 1 else ''} some",
            hint="plan the job without them for what the active party's own columns would give",
        )
    source = active.source()
    read = Read.of(job, active, source, RowsOfUnit.of(job, list(_servers_here(job))))
    assumed, about_labels = assume(read, source, active, asked)
    cases = [read.case(epsilon) for epsilon in asked.all_epsilons(read.epsilon) if _is_offered(job, epsilon)]
    own = read.case(read.epsilon)
    others = dict(_other_settings(own, read.rows.n_features))
    without = without_noise(own.fitting, read.rows.n_rows)
    found = forecast(
        read.rows,
        assumed,
        [without, *cases, *others.values()],
        draws=asked.n_draws,
        generator=job.parameters.trial_randomness.generator("plan"),
        on_draw=lambda done: on_draw(done, asked.n_draws),
    )
    exact, by_epsilon, compared = found[0], found[1 : len(cases) + 1], found[len(cases) + 1 :]
    own_forecast = next(one for one in by_epsilon if one.case.epsilon == read.epsilon)
    settings = {AS_IN_THE_JOB: own_forecast, **dict(zip(others, compared, strict=True))}
    outcome = Outcome(read, assumed, asked, exact, by_epsilon, settings)
    return Plan(
        facts=(*read.facts(), *about_labels),
        tables=(outcome.epsilon_table(), outcome.settings_table()),
        advice=tuple(outcome.advice()),
        plots=(outcome.plot(),),
        content=outcome.to_dict(),
    )


def _servers_here(job: Job[WalrJob]) -> Iterator[PartyHere]:
    """Yield the servers whose files are here. A plan needs nothing of them, so they may be elsewhere."""
    for name in job.with_role("measurement"):
        config = job.parties[name].config
        if config is not None and (job.folder / config).is_file():
            yield PartyHere.of(job, name)


def _is_offered(job: Job[WalrJob], epsilon: float) -> bool:
    """Return True if the mechanism has this epsilon: the classic Gaussian is proved only for epsilon below 1."""
    return job.parameters.required_privacy.mechanism != "classic" or epsilon < 1


# --- other settings of the fit ----------------------------------------------------------------------


def _other_settings(own: Case, n_features: int) -> Iterator[tuple[str, Case]]:
    """Yield other settings, by the text that sets them in the job. The noise is that of the job's epsilon."""
    default = l2_of(replace(own, fitting=replace(own.fitting, l2="auto")), n_features)
    l2s = {"": own.fitting.l2} | {f"walr.l2={factor * default:.3g}": factor * default for factor in L2_FACTORS}
    for (name, l2), treatment in product(l2s.items(), OTHER_TREATMENTS):
        said = [name] if name else []
        if treatment != own.fitting.treatment:
            said.append(f"walr.mu={treatment}")
        if said:
            yield " ".join(said), replace(own, fitting=replace(own.fitting, l2=l2, treatment=treatment))
    if own.fitting.init is None:
        yield "walr.l2=0", replace(own, fitting=replace(own.fitting, l2=0.0))
        for steps in FEW_STEPS:
            solver = SolverSettings(0.0, "gradient-descent", own.fitting.settings.unpenalised, max_iterations=steps)
            fitting = replace(own.fitting, l2=0.0, settings=solver)
            yield f"walr.l2=0 walr.solver=gradient-descent walr.max_iterations={steps}", replace(own, fitting=fitting)
