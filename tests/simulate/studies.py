"""Results of simulations that nobody ran, for the pages and pictures."""

from __future__ import annotations

from collections.abc import Mapping

from blindfit.coordinator.simulate.kept import Done, Failed, Repeat, Run
from blindfit.coordinator.simulate.results import ACTIVE_ONLY, CONSTANT, JOINED, Results, gather


def done(auc: float, seconds: float = 10.0, **more: object) -> Done:
    given = {
        "quality": {"auc": auc, "log_loss": 0.5},
        "epsilon": None,
        "delta": None,
        "bits": {"labels": 0.0, "scores": 0.0, "columns": 0.0},
        "rows": 1000,
        "seconds": seconds,
        "set_up_s": 2.0,
        "growth": None,
        "bytes_sent": 1_000_000,
        "messages_sent": 500,
        "peak_memory_mib": {"a": 100.0, "b": 120.0},
        "protects": "Labels stay where they are.",
    }
    return Done(**{**given, **more})  # type: ignore[arg-type]


def repeat(joined: float = 0.9, alone: float = 0.7, constant: float = 0.5, **more: object) -> Repeat:
    quality = {
        name: {"auc": auc, "log_loss": 0.6}
        for name, auc in ((JOINED, joined), (ACTIVE_ONLY, alone), (CONSTANT, constant))
    }
    given = {"not_for": {}, "private": ["walr", "label-dp", "dp-lr"], "processes": 4, "columns": {"a": ["x"]}}
    return Repeat(quality, **{**given, **more})  # type: ignore[arg-type]


def results(
    ended: Mapping[tuple[str, float | None], list[Done | Failed]], repeats: list[Repeat] | None = None, **more: object
) -> Results:
    """Gather ends by system and epsilon, one for each repeat."""
    numbers = max((len(ends) for ends in ended.values()), default=1)
    cuts = dict(enumerate(repeats or [repeat(**more)] * numbers))  # type: ignore[arg-type]
    runs = {
        Run(system, epsilon, number): end
        for (system, epsilon), ends in ended.items()
        for number, end in enumerate(ends)
    }
    order = dict.fromkeys([*(system for system, _ in ended), *next(iter(cuts.values())).not_for])
    return gather(runs, cuts, list(order))
