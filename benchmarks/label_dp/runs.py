"""Release, train, test: the cases of one dataset, spread over processes of one thread each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.label_dp.arms import ARMS, CONSTANT, NO_NOISE, Case, Released, nearness, release
from benchmarks.label_dp.data import Dataset, Split
from benchmarks.label_dp.network import TOGETHER, TrainingSettings, largest_difference, train
from benchmarks.label_dp.results import Outcome, Results, outcome_of

SWEPT_ARMS = ("rp", "rp debiased")
SWEPT_EPSILONS = (0.5, 2.0, 8.0)
HALF_WIDTH_FACTORS = (0.25, 0.5, 2.0)
PRIOR_FACTORS = (0.1, 0.5, 2.0)
SWEEP_SEEDS = 3


@dataclass(frozen=True)
class Plan:
    seeds: int
    epsilons: tuple[float, ...]
    training: TrainingSettings

    def cases(self, seed: int) -> list[Case]:
        every = [Case(NO_NOISE, float("inf")), *(Case(arm, e) for e, arm in product(self.epsilons, ARMS))]
        return every + (swept(self.epsilons) if seed < SWEEP_SEEDS else [])


def swept(epsilons: Sequence[float]) -> list[Case]:
    cases = []
    for arm, epsilon in product(SWEPT_ARMS, [e for e in SWEPT_EPSILONS if e in epsilons]):
        cases += [Case(arm, epsilon, "half_width", factor) for factor in HALF_WIDTH_FACTORS]
        cases += [Case(arm, epsilon, "epsilon_prior", factor) for factor in PRIOR_FACTORS]
        cases.append(Case(arm, epsilon, "true prior"))
    return cases


def run(dataset: Dataset, plan: Plan, results: Results, say: Callable[[str], None]) -> list[Outcome]:
    """Return outcomes of the whole plan; run only what `results` does not have, and keep it there."""
    found = results.found(dataset)
    outcomes = [found[seed, case] for seed in range(plan.seeds) for case in plan.cases(seed) if (seed, case) in found]
    units = []
    for seed in range(plan.seeds):
        missing = [case for case in plan.cases(seed) if (seed, case) not in found]
        units += [(seed, missing[first : first + TOGETHER]) for first in range(0, len(missing), TOGETHER)]
    total, started = len(outcomes) + sum(len(cases) for _, cases in units), time.perf_counter()
    say(f"{dataset.name}: {len(outcomes)} of {total} networks are in {results.path}")
    work = (delayed(run_unit)(dataset, plan.training, seed, cases) for seed, cases in units)
    for made in Parallel(n_jobs=os.cpu_count(), return_as="generator_unordered")(work):
        results.add(dataset, made)
        outcomes += made
        say(f"{dataset.name}: {len(outcomes)} of {total} networks, {time.perf_counter() - started:.0f} s")
    return in_order(outcomes + [constant(dataset.split(seed), seed) for seed in range(plan.seeds)])


def in_order(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda o: (o["seed"], o["varied"], o["factor"], o["epsilon"], o["arm"]))


def constant(split: Split, seed: int) -> Outcome:
    """Return the mean of the true training labels as every row's prediction."""
    error = float(np.square(split.test[1] - split.train[1].mean()).mean())
    return outcome_of(Case(CONSTANT, float("inf")), seed, error)


def run_unit(dataset: Dataset, training: TrainingSettings, seed: int, cases: Sequence[Case]) -> list[Outcome]:
    split = dataset.split(seed)
    released = [_release(case, dataset, split.train[1], seed) for case in cases]
    labels = np.stack([split.train[1] if r is None else r.labels for r in released])
    with threadpool_limits(1):  # a process for each core: threads of one small product wait for each other
        predicted = train(split.train[0], labels, split.test[0], training, seed)
    errors = np.square(predicted - split.test[1]).mean(axis=1)
    return [
        outcome_of(case, seed, float(error)) | _facts(r, dataset, split.train[1])
        for case, error, r in zip(cases, errors, released, strict=True)
    ]


def _release(case: Case, dataset: Dataset, labels: Any, seed: int) -> Released | None:
    return None if case.arm == NO_NOISE else release(case, dataset, labels, seed)


def _facts(released: Released | None, dataset: Dataset, labels: Any) -> dict[str, Any]:
    if released is None:
        return {}
    near, fitted = nearness(released, dataset, labels), released.fitted
    facts: dict[str, Any] = {
        "epsilon_prior": fitted.epsilon_prior,
        "epsilon_spent": fitted.epsilon_prior + fitted.mechanism.privacy_loss()[0],
        "label_error": float(np.square(released.labels - labels).mean()),
    }
    return facts if near is None else facts | {"outside": 1 - near.labels / len(labels), "nearness": asdict(near)}


def check_ensemble(dataset: Dataset, training: TrainingSettings) -> dict[str, float]:
    """Return how far the ensemble is from networks trained one by one, on three cases."""
    split = dataset.split(0)
    cases = [Case("rp", 2.0), Case("rp auto debiased", 2.0), Case("laplace", 2.0)]
    labels = np.stack([release(case, dataset, split.train[1], 0).labels for case in cases])
    with threadpool_limits(1):
        difference = largest_difference(split.train[0], labels, split.test[0], training, 0)
    return {"largest_difference": difference, "labels_std": float(labels.std())}


def say_to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
