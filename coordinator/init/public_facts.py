"""Public facts about columns of a dp-lr job: bounds that a person gives, and levels and scales of public rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.init.asked import Unclear
from blindfit.coordinator.init.files import PUBLIC
from blindfit.coordinator.init.guess import Guessed
from blindfit.parties.data.columns import to_levels
from blindfit.parties.data.origin import Reader
from blindfit.parties.tables import toml_of
from blindfit.parties.training.feature_bounds import ALL_OTHERS, read_bounds

Levels = Mapping[str, Sequence[str]]
GAP = "a row has no value, and a value for it would depend on other rows: fill it in the table by a fixed rule"
DATES_AS_DAYS = ", and bounds of a date are days since 1970-01-01"
NO_LEVELS = "its levels are known only from the private rows; --public TABLE takes the levels of public rows"
NOT_PUBLIC = "the public rows have no such column, or its kind differs"


@dataclass(frozen=True)
class PublicTable:
    """Table of public rows.

    Attributes:
        names: columns of the table that may be features.
    """

    guessed: Guessed
    table: Reader
    names: Sequence[str]


@dataclass(frozen=True)
class PublicFacts:
    """Facts that a dp-lr job may use.

    Attributes:
        private: private table, with the columns that a job can have.
        public: public table, with the same columns.
        levels: levels of each category.
        options: lines of [dp_lr].
    """

    private: Guessed
    public: Guessed | None
    levels: Levels
    options: Sequence[str]


def agree(
    private: Guessed, names: Sequence[str], public: PublicTable | None, bounds: Sequence[str], known_levels: Levels
) -> PublicFacts:
    """Return the public facts, without the columns for which too little is public.

    Args:
        names: columns of the private table that may be features.
        bounds: bounds, each as "NAME:LOW:HIGH".
        known_levels: levels of categories that are known without any rows.

    Raises:
        Unclear: the job would have no bounds.
        ConfigError: bounds do not have this form, or name a column that does not exist.
    """
    given = read_bounds(bounds)
    why = {name: NO_LEVELS for name in private.categories if public is None and name not in known_levels}
    if public is not None:
        known = {name: _kind(public.guessed, name) for name in public.names}
        why |= {name: NOT_PUBLIC for name in names if known.get(name) != _kind(private, name)}
        why |= dict.fromkeys(public.guessed.gaps, GAP)
    why |= dict.fromkeys(private.gaps, GAP)
    kept = _without(private, names, {name: said for name, said in why.items() if name in names})
    used = [name for name in names if name not in kept.left_out]
    levels = _levels_of(public.table, kept.categories) if public is not None else known_levels
    strangers = [name for name in given if name not in (ALL_OTHERS, *used)]
    if strangers and (reason := kept.left_out.get(strangers[0])):
        raise ConfigError(
            f"--bounds {strangers[0]}: the job leaves this column out",
            hint=f"leave out these bounds, or change the table: {reason}",
        )
    if strangers:
        raise ConfigError(
            f"--bounds {strangers[0]}: it is not a column of numbers or dates that the job learns from",
            hint=f"these are {', '.join(name for name in used if name not in kept.categories)}",
        )
    unbounded = [name for name in used if name not in given and name not in kept.categories]
    if unbounded and ALL_OTHERS not in given and (given or public is None):
        raise Unclear(
            "bounds",
            f"which bounds do the columns have, NAME:LOW:HIGH, as far as the public knows? {unbounded[0]} has none"
            f"{DATES_AS_DAYS if unbounded[0] in private.dates else ''}. "
            "Noise is added to columns that are scaled by bounds; `blindfit init` never takes bounds from rows, "
            "because the model reveals them",
            hint=f"give bounds, such as --bounds {quote(unbounded[0] + _example(private, unbounded[0]))}, or bounds of "
            "all other columns, such as --bounds '*:-1:1'; or name a table of public rows: --public TABLE",
        )
    of_levels = [f"{name}={level}:0:1" for name in kept.categories for level in levels[name]]
    options = (
        [f"feature_bounds = {toml_of([*bounds, *of_levels])}  # public; a value outside is clipped"] if given else []
    )
    if public is None:
        return PublicFacts(kept, None, levels, options)
    ours = [name for name in public.names if name not in public.guessed.left_out]
    unused = {name: "the private rows do not use it" for name in ours if name not in used}
    other = _without(public.guessed, ours, unused)
    options += [f'public_dataset = "{PUBLIC}"  # where descent starts, and the scale of the columns']
    return PublicFacts(kept, other, levels, options)


def _example(table: Guessed, name: str) -> str:
    """Return bounds that fit a column of this kind; for a date, days since 1970-01-01 from 1930 to 2030."""
    return ":-14610:21915" if name in table.dates else ":0:110"


def _kind(table: Guessed, name: str) -> str:
    if name in table.left_out:
        return "other"
    return "category" if name in table.categories else "date" if name in table.dates else "number"


def _without(table: Guessed, names: Sequence[str], why: Mapping[str, str]) -> Guessed:
    """Return the table without these columns."""
    left_out = {**why, **table.left_out}
    return replace(
        table,
        categories=tuple(name for name in table.categories if name not in left_out),
        dates=tuple(name for name in table.dates if name not in left_out),
        features=tuple(name for name in table.features if name not in left_out),
        left_out=left_out,
        n_features=sum(name not in left_out for name in names),
        gaps=(),
        lacks_values=False,
    )


def _levels_of(table: Reader, names: Sequence[str]) -> Levels:
    if not names:
        return {}
    rows = pa.Table.from_batches(table.arrow_batches(names, 1 << 16))
    columns = {name: rows.column(name).combine_chunks() for name in names}
    texts = {name: to_levels(column, name=name, origin=table.origin) for name, column in columns.items()}
    return {name: sorted(pc.unique(found.drop_null()).to_pylist()) for name, found in texts.items()}
