"""The interface of every kind of source, and the place that an error names in it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.advice import Advice

NAMES_SHOWN = 12
NO_ADVICE = Advice()  # no party file describes the table
Tolerates = Callable[[str], bool]


@dataclass(frozen=True)
class ColumnKinds:
    """Kinds in which the columns of a source without types are read.

    Attributes:
        texts: columns that are read as text.
        dates: columns that are read as dates. All others are read as numbers.
    """

    texts: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()

    def of(self, name: str) -> Kind:
        if name in self.texts:
            return "category"
        return "date" if name in self.dates else "number"


PLAIN_KINDS = ColumnKinds()


def nothing(_column: str) -> bool:
    """Return False: every column must be readable."""
    return False


@dataclass(frozen=True)
class Origin:
    """A dataset and its file or table, as errors name them.

    Attributes:
        locate: function that describes a 1-based data row; for csv it adds the physical line.
        option: option that names the file or table, if that is not the dataset's `url` in a party file.
        advice: advice to the owner about a column or a value.
    """

    dataset: str
    where: str
    locate: Callable[[int], str] = "row {}".format
    option: str = ""
    advice: Advice = NO_ADVICE

    @property
    def url(self) -> str:
        """URL or path in the settings, as errors show it."""
        return self.option or f"datasets.{self.dataset}.url"

    def error(self, problem: str, *, row: int | None = None, column: str | None = None, hint: str = "") -> DataError:
        """Return an error such as `visits: data/visits.csv, row 5 (line 6), column age: no number`."""
        place = [self.where]
        if row is not None:
            place.append(self.locate(row))
        if column is not None:
            place.append(f"column {column}")
        return DataError(f"{self.dataset}: {', '.join(place)}: {problem}", hint=hint)


class Reader(Protocol):
    """One file or table, read forward in Arrow batches of any size.

    Several columns may have the same name, or an empty name. Code that needs such a column refuses it.
    """

    @property
    def origin(self) -> Origin: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def booleans(self) -> frozenset[str]:
        """Columns of the type boolean, if the source has types."""

    @property
    def problems(self) -> Mapping[str, DataError]:
        """Reasons why columns could not be read so far, where that is tolerated; their values are nulls."""

    def fingerprint(self) -> str | None:
        """Return a text that changes whenever the content may have changed; None if no cheap check detects a change."""

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch`es with these columns, in this order. Each name must exist."""


def or_nulls(
    name: str, convert: Callable[[], Any], nulls: Any, problems: dict[str, DataError], tolerates: Tolerates
) -> Any:
    """Return a column. If it cannot be read and that is tolerated, return nulls from the first such batch on.

    Args:
        problems: dictionary to which the reason is added.

    Raises:
        DataError: the column cannot be read, and is needed.
    """
    if name not in problems:
        try:
            return convert()
        except DataError as error:
            if not tolerates(name):
                raise
            problems[name] = error
    return nulls


def refuse_duplicate_names(names: Sequence[str], origin: Origin) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise origin.error(f"two columns are called {twice[0] or '(nothing)'}", hint="rename one of them")


def refuse_missing_names(wanted: Sequence[str], present: Sequence[str], origin: Origin) -> None:
    """Raise DataError if a wanted column is absent, or two columns have its name."""
    counts = Counter(present)
    for name in wanted:
        if not counts[name]:
            raise origin.error(f"there is no column {name}", hint=near_names(name, present, "columns"))
        if counts[name] > 1:
            refuse_duplicate_names([name, name], origin)


def no_rows(origin: Origin) -> DataError:
    return origin.error("the table has no rows", hint="a dataset needs at least one row")


def without_values(origin: Origin, column: str) -> DataError:
    return origin.error("no row has a value", column=column, hint=origin.advice.leave_out(column))


def near_names(name: str, present: Sequence[str], kind: str) -> str:
    """Return a hint such as `did you mean age, wage? The columns are ...`."""
    near = difflib.get_close_matches(name, present, n=3, cutoff=0.5)
    listed = ", ".join(present[:NAMES_SHOWN]) + (", ..." if len(present) > NAMES_SHOWN else "")
    return (f"did you mean {', '.join(near)}? " if near else "") + f"the {kind} are {listed or '(none)'}"
