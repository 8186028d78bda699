"""`blindfit simulate` as a Python call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.simulate import command
from blindfit.coordinator.simulate.asked import ALL, Asked
from blindfit.coordinator.simulate.simulation import Simulation
from blindfit.coordinator.terminal.terminal import terminal


def simulate(
    table: Any,
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
        table: a path, a database's table as `init` takes it, or a data frame.
        label: the column to learn.
        parties: how many parties get columns at random, or the columns of each party; the first party is active.
        row_id: the column that names a row; by default rows are numbered.
        positive: the text of label 1; guessed by default.
        label_range: the public range of labels, for label-dp; by default that of the table.
        bounds: public bounds of features, for dp-lr; by default those of the table.
        systems: which systems to compare.
        epsilon: one or more, for the systems that take one.
        repeats: how often the table is cut again, with other held-out rows and noise.
        overlap: share of a party's rows that every party has.
        duplicates: share of a party's ids that stand in its records twice.
        missing: share of the values of training rows that are emptied.
        shuffle: whether each party has its rows in an order of its own.
        test_fraction: share of all rows that no party has. Quality is measured on them.
        network: between the parties, such as "40ms 100mbit"; empty for this machine's own.
        at_once: number of runs at once; by default as many as the cores allow.
        seed: the same seed deals the same columns and rows.
        warn_only: whether limits of budgets and accounts only warn.
        overrides: options of one system's jobs, such as "taylor.epochs=5".
        progress: whether to show how far the runs are.
        out: folder for the results. The same call goes on where an earlier one was stopped.

    Raises:
        ConfigError, DataError: which option or column is wrong, and what to do.
        Stopped: somebody has interrupted the call; what is finished stays.
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
