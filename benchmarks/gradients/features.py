"""Attacks of a partner with 20 columns on the only column of another party."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.gradients.effort import Effort, mean, timed
from tests.attacks import lattice_features
from tests.attacks.lattice_features import READERS
from tests.attacks.views import Setting


def column_without_noise(setting: Setting, effort: Effort) -> dict[str, Any]:
    """Return how many rows of a random column either party reads; each figure is of another data set."""
    rows, right, times = [], [], []
    for seed in range(effort.data_sets):
        for reader in READERS:
            seen, truth = lattice_features.train(reader, replace(setting, seed=seed), lattice_features.chance(0.3))
            share, seconds = timed(
                lattice_features.most_right, seen, truth, 0.0, lattice_features.EXACT, blocks=effort.blocks
            )
            rows.append(len(truth))
            right.append(round(share * len(truth)))
            times.append(round(seconds, 2))
    return {"rows": rows, "right": right, "seconds": times}


def column_in_noise(setting: Setting, effort: Effort) -> dict[str, float]:
    """Return the share of rows that the best of all candidates has right, and what a guess of one value has: means."""
    found, always = [], []
    for seed in range(effort.data_sets):
        for reader in READERS:
            seen, truth = lattice_features.train(reader, replace(setting, seed=seed), lattice_features.chance(0.3))
            noise = setting.gradient_noise
            found.append(lattice_features.most_right_in_noise(seen, truth, noise, blocks=effort.blocks))
            always.append(lattice_features.always_the_same(truth))
    return {"share": mean(found), "always_the_same": mean(always)}


def seen_by_least_squares(setting: Setting, effort: Effort) -> float:
    settings = [replace(setting, seed=seed) for seed in range(effort.many)]
    return mean(lattice_features.projected_auc(reader, one) for one in settings for reader in READERS)


def in_noise(found: dict[str, float]) -> str:
    return f"{found['share']:.0%} of rows, always the same value {found['always_the_same']:.0%}"
