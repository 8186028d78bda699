"""The request and the result of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.report.plots import Plot

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DRAWS = 20
MOST_EPSILONS, MOST_DRAWS, MOST_CADENCES = 40, 10_000, 10_000


@dataclass(frozen=True)
class Asked:
    """Request for a plan.

    Attributes:
        epsilons: epsilons in addition to the job's own; empty takes EPSILONS.
        base_rate, strength, model: assumptions about labels; None if not given.
        wanted: loss for which an epsilon is wanted.
        cadences: number of planned releases about the same people.
    """

    epsilons: tuple[float, ...] = ()
    base_rate: float | None = None
    strength: float | None = None
    model: Path | None = None
    wanted: float | None = None
    draws: int | None = None
    cadences: int | None = None

    def __post_init__(self) -> None:
        if len(self.epsilons) > MOST_EPSILONS:
            raise ConfigError(
                f"--epsilon is given {len(self.epsilons)} times, and a plan takes at most {MOST_EPSILONS}"
            )
        for epsilon in self.epsilons:
            if not 0 < epsilon < float("inf"):
                raise ConfigError(f"--epsilon must be above 0, not {epsilon:g}")
        if not 2 <= self.n_draws <= MOST_DRAWS:
            raise ConfigError(f"--draws must be 2 to {MOST_DRAWS:,}, not {self.n_draws}")
        if self.cadences is not None and not 1 <= self.cadences <= MOST_CADENCES:
            raise ConfigError(f"--cadences must be 1 to {MOST_CADENCES:,}, not {self.cadences}")
        if self.wanted is not None and not 0 < self.wanted < float("inf"):
            raise ConfigError(f"--wanted must be above 0, not {self.wanted:g}")

    @property
    def n_draws(self) -> int:
        return DRAWS if self.draws is None else self.draws

    def refuse_of_walr(self, protocol: str) -> None:
        """Raise ConfigError: an option is only for the simulation of a WALR release."""
        for option in ("base_rate", "strength", "model", "wanted", "draws", "cadences"):
            if getattr(self, option) is not None:
                raise ConfigError(
                    f"--{option.replace('_', '-')} does nothing in the plan of a {protocol} job: remove it"
                )

    def all_epsilons(self, own: float) -> list[float]:
        """Return the epsilons in ascending order, with the job's."""
        return sorted({*(self.epsilons or EPSILONS), own})


@dataclass(frozen=True)
class Table:
    title: str
    note: str
    columns: tuple[str, ...]  # the first column has names, the others numbers
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plan:
    """Result of a plan.

    Attributes:
        facts: labels and texts: what was read and assumed, then what follows.
        advice: sentences.
        content: all numbers of the plan.
    """

    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    advice: tuple[str, ...]
    plots: tuple[Plot, ...] = field(repr=False)
    content: Mapping[str, Any] = field(repr=False)
