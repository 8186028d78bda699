"""Random job settings: a pair of neighbours.py under options, splits and seeds that nobody chose with care."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.interference.neighbours import PAIRS, Build, Pair, Probe, Refused, Side, told_apart
from tests.interference.world import Case

Choices = Mapping[str, Sequence[Any]]

SPLIT: Choices = {"seed": range(1, 1000), "split__test_fraction": (0.1, 0.2, 0.3, 0.5)}
LARGE_SPLIT: Choices = {**SPLIT, "split__test_fraction": (0.3, 0.5)}  # a smaller part of so few rows is refused
DP: Choices = {"privacy__epsilon": (0.5, 1.0, 2.0)}
VERTICAL: Choices = {
    **SPLIT,
    "split__test_fraction": (0.2, 0.3),  # smaller parts are refused; larger ones leave too few rows for these batches
    "taylor__intercept": (True, False),
    "taylor__schedule": ("inverse", "exponential"),
    "taylor__learning_rate": (0.02, 0.1),
    "taylor__optimiser": ("sgd", "momentum", "sag"),
    "taylor__l2": (0.0, 0.01, 1.0),
    "taylor__epochs": (1, 2, 3),
    "taylor__batch_rows": (32, 64),
}
FALCON: Choices = {
    "falcon__intercept": (True, False),
    "falcon__schedule": ("inverse", "exponential"),
    "falcon__learning_rate": (0.02, 0.3),
    "falcon__optimiser": ("sgd", "momentum"),
    "falcon__l2": (0.0, 0.01, 1.0),
    "falcon__epochs": (2, 3),
    "falcon__security": ("malicious", "semi-honest"),
    "falcon__waves": ("medium", "wide"),
}
CHOICES: Mapping[str, Choices] = {
    "walr": {
        **SPLIT,
        **DP,
        "walr__intercept": (True, False),
        "walr__norm_bound": ("auto", 0.5, 4.0),
        "walr__frac_bits": (16, 18),
        "walr__solver": ("auto", "newton", "lbfgs"),
        "walr__mu": ("auto", "clip", "project"),
    },
    "label-dp": {
        **SPLIT,
        **DP,
        "label_dp": [
            {"mechanism": mechanism, "regressor": regressor, **more}
            for mechanism, more in (
                ("laplace", {}),
                ("staircase", {}),
                ("rr-on-bins", {"debias": False}),
                ("rp-with-prior", {"half_width": 1.0}),
            )
            for regressor in ("linear", "ridge")
        ],
    },
    "dp-lr": {
        **SPLIT,
        **DP,
        "dp_lr__iterations": (1, 5, 20),
        "dp_lr__clip_norm": (0.5, 2.0),
        # The accountant takes half a minute for samples, and sees no row.
        "dp_lr__batch_fraction": (1.0,) * 29 + (0.25,),
        "dp_lr__loss_share": (0.0, 0.1),
        "dp_lr__shrinkage": (0.0, 0.1),
        "dp_lr__learning_rate": ("auto", 0.1),
    },
    "taylor": {
        **VERTICAL,
        "taylor__validation_fraction": (0.2, 0.3),
    },
    "taylor-drawn": {"taylor__epochs": (1, 2, 3), "taylor__optimiser": ("sgd", "momentum", "sag")},
    "taylor-linear": {**VERTICAL, "taylor__validation_fraction": (0.2, 0.3)},
    "taylor-weights": {"seed": range(1, 1000), "taylor__epochs": (1, 2)},
    "taylor-selecting": {"seed": range(1, 1000), "taylor__optimiser": ("sgd", "momentum", "sag")},
    "taylor-label-dp": {**VERTICAL, **DP},
    "taylor-linkage": {key: values for key, values in VERTICAL.items() if "split" not in key},
    "falcon": {**LARGE_SPLIT, **FALCON},
    # A smaller part of so few rows is refused, and then nothing would be compared.
    "falcon-untested": {**SPLIT, "split__test_fraction": (0.5, 0.0), **FALCON},
    "falcon-weights": {"seed": range(1, 1000), "falcon__security": ("malicious", "semi-honest")},
    "falcon-threshold": {
        **SPLIT,
        "split__test_fraction": (0.5, 0.0),
        "falcon__intercept": (True, False),
        "falcon__schedule": ("inverse", "exponential"),
        "falcon__learning_rate": (0.02, 0.3),
        "falcon__l2": (0.0, 0.01, 1.0),
        "falcon__sampling": ("epochs", "replacement"),
        "falcon__waves": ("medium", "wide"),
    },
    "falcon-selecting": {
        "seed": range(1, 1000),
        "select__by": ("accuracy", "log_loss", "auc"),
        "falcon__security": ("malicious", "semi-honest"),
    },
    "falcon-private": {
        "seed": range(1, 1000),
        "falcon__intercept": (True, False),
        "falcon__norm_bound": (0.5, 1.0),
        "falcon__optimiser": ("sgd", "momentum"),
        "falcon__security": ("malicious", "semi-honest"),
        **DP,
    },
    "predict": {"align__min_common": (20, 40, 64)},
    "evaluate": {
        "evaluate__figures": (
            ["log_loss"],
            ["accuracy", "calibration"],
            ["log_loss", "accuracy", "calibration", "auc"],
        ),
        "evaluate__score_bound": ("auto", 1.0),
        **DP,
    },
}
"""Choices by the name of a system, or by the beginning of its name. All combinations are valid."""

LAYOUTS: Choices = {"source": ("csv", "sqlite", "parquet"), "batch_rows": (7, 64, 16384)}


def pair_of(name: str) -> Pair:
    """Return the pair with this id."""
    (chosen,) = (pair for pair in PAIRS if pair.id == name)
    return chosen


def drawn(pair: Pair, seed: int) -> Pair:
    """Return this pair under settings which only its id and the seed decide, not the other pairs."""
    draw = random.Random(f"interference {pair.id} {seed}")
    options = {option: draw.choice(values) for option, values in choices_of(pair.system).items()}
    layout = {name: draw.choice(values) for name, values in LAYOUTS.items()}
    build = built_with(pair.build, options, int(layout["batch_rows"]))
    return replace(pair, name=f"{pair.name}-{seed}", build=build, source=str(layout["source"]))


def found_under(pair: Pair, seed: int, probe: Probe) -> list[str]:
    """Return one line for each difference by which anybody could distinguish the two worlds under these settings."""
    chosen = drawn(pair, seed)
    try:
        return [f"{chosen.id}: {line}" for observer in chosen.observers for line in told_apart(chosen, observer, probe)]
    except Refused:  # in both worlds, so that there is no part to aim at
        return []


def choices_of(system: str) -> Choices:
    """Return the choices of the longest name with which the system's name begins."""
    (*_, choices) = (CHOICES[name] for name in sorted(CHOICES, key=len) if system.startswith(name))
    return choices


def built_with(build: Build, options: Mapping[str, Any], batch_rows: int) -> Build:
    """Build the pair with these options of the job, for parties that hold this many rows at a time."""

    def built(case: Case, probe: Probe) -> tuple[Side, Side]:
        for party in case.holders:
            case = case.with_dataset(party, batch_rows=batch_rows)
        return build(case.with_job(**options), probe)

    return built
