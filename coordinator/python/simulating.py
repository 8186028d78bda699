"""`blindfit simulate` as a Python call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.named_columns import Table
from blindfit.coordinator.simulate import command
from blindfit.coordinator.simulate.asked import ALL, Asked
from blindfit.coordinator.simulate.simulation import Simulation
from blindfit.coordinator.terminal.terminal import terminal


def simulate(
    table: str | Path | Table,
    *,
    label: str,
    parties: int | Mapping[str, str | Sequence[str]] = 3,
    row_id: str | None = None,
    positive: str | None = None,
    label_range: tuple[float, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    systems: str | Sequence[str] = ALL,
    epsilon: float | Iterable[float] = 1.0,
    repeats: int = 1,
    overlap: float = 1.0,
    duplicates: float = 0.0,
    missing: float = 0.0,
    shuffle: bool = True,
    test_fraction: float = 0.25,
    network: str = "",
    at_once: int | None = None,
    seed: int = 0,
    warn_only: bool = False,
    overrides: str | Sequence[str] = (),
    out: str | Path = "runs/simulate",
    progress: bool = True,
) -> Simulation:
    """Compare all systems on one table: quality, privacy, time and bytes. Nothing is charged.

    Args:
        table: path of a file, address of a database's table, a data frame, or a mapping of names to columns.
        label: column with the labels.
        parties: number of parties that get columns at random, or the columns of each party by name; the first party is
            the active one.
        row_id: column that names a row; by default rows are numbered.
        positive: text that stands for label 1; guessed by default.
        label_range: public range of labels, for label-dp; by default that of the table.
        bounds: public bounds of features by name, for dp-lr; by default those of the table.
        systems: names of the systems to compare; "all" by default.
        epsilon: one epsilon or several, for the systems that take one.
        repeats: number of times that the table is cut again, with other held-out rows and noise.
        overlap: share of a party's rows that every party has, 0 to 1.
        duplicates: share of a party's ids that occur in its records twice, 0 to 1.
        missing: share of the values of training rows that are emptied, 0 to 1.
        shuffle: True if each party has its rows in an order of its own.
        test_fraction: share of all rows that no party has, 0 to 1. Quality is measured on them.
        network: simulated network between the parties, such as "40ms 100mbit"; empty for this machine's own.
        at_once: number of runs at once; by default as many as the cores allow.
        seed: number that fixes how columns and rows are dealt.
        warn_only: True if limits of budgets and accounts only warn.
        overrides: options of one system's jobs, such as "taylor.epochs=5".
        out: folder for the results. The same call goes on where an earlier one was stopped.
        progress: True to show how far the runs are.

    Returns:
        The simulation: one row for each system and setting, with a recommendation and a page.

    Raises:
        ConfigError: an option is wrong; the message names it.
        DataError: the table is wrong; the message names the column.
        Stopped: the call was interrupted; finished runs stay.

    Example:
        >>> simulation = blindfit.simulate("whole.csv", label="label", row_id="id", systems="dp-lr", progress=False)
        >>> simulation.page.name
        'simulation.html'
    """
    if not isinstance(network, str):
        raise ConfigError(
            "network: a simulation takes a text, because its systems have other parties each",
            hint='such as network="40ms 100mbit"',
        )
    asked = Asked(
        label=label,
        row_id=row_id,
        parties={name: _all_of(own) for name, own in parties.items()}
        if isinstance(parties, Mapping)
        else _plain(parties),
        positive=positive,
        label_range=label_range,
        bounds=dict(bounds or {}),
        overlap=_plain(overlap),
        duplicates=_plain(duplicates),
        missing=_plain(missing),
        shuffle=shuffle,
        test_fraction=_plain(test_fraction),
        seed=_plain(seed),
        systems=ALL if systems == "all" else _all_of(systems),
        epsilons=tuple(map(_plain, epsilon)) if isinstance(epsilon, Iterable) else (_plain(epsilon),),
        repeats=_plain(repeats),
    )
    wish = command.Wish(asked, network, _all_of(overrides), _plain(at_once), warn_only)
    return command.simulate(table, wish, Path(out), terminal(quiet=not progress))


def _all_of(texts: str | Sequence[str]) -> tuple[str, ...]:
    """Return the texts; a single text stands for itself, and not for its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python, and everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
