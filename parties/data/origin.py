"""What every kind of source offers, and how an error names its place in it."""

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
    """As what the columns of a source without types are read.

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
    """Tolerate no column that cannot be read."""
    return False


@dataclass(frozen=True)
class Origin:
    """A dataset and its file or table, as errors name them.

    Attributes:
        locate: the 1-based data row in words; csv adds the physical line.
        option: what names the file or table, if that is not the dataset's `url` in a party file.
        advice: what its owner can do about a column or a value.
    """

    dataset: str
    where: str
    locate: Callable[[int], str] = "row {}".format
    option: str = ""
    advice: Advice = NO_ADVICE

    @property
    def url(self) -> str:
        """Return what names the file or table."""
        return self.option or f"datasets.{self.dataset}.url"

    def error(self, problem: str, *, row: int | None = None, column: str | None = None, hint: str = "") -> DataError:
        """`visits: data/visits.csv, row 5 (line 6), column age: no number`."""
        place = [self.where]
        if row is not None:
            place.append(self.locate(row))
        if column is not None:
            place.append(f"column {column}")
        return DataError(f"{self.dataset}: {', '.join(place)}: {problem}", hint=hint)


class Reader(Protocol):
    """One file or table, read forward in Arrow batches of any size.

    Several columns may have one name, or none. Whoever needs such a column refuses it.
    """

    @property
    def origin(self) -> Origin: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def booleans(self) -> frozenset[str]:
        """The columns of the type boolean, as far as the source has types."""

    @property
    def problems(self) -> Mapping[str, DataError]:
        """Why some columns could not be read so far, where that is tolerated; their values are nulls."""

    def fingerprint(self) -> str | None:
        """Change whenever the content may have; None where nothing cheap can tell."""

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """`pyarrow.RecordBatch`es with these columns, in this order; a name must exist."""


def or_nulls(
    name: str, convert: Callable[[], Any], nulls: Any, problems: dict[str, DataError], tolerates: Tolerates
) -> Any:
    """Return a column, or nulls from the first batch on in which it cannot be read, where that is tolerated.

    Args:
        problems: gets why.

    Raises:
        DataError: it cannot be read, and is needed.
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
    """Raise DataError: a column that is wanted is not there, or two are called so."""
    counts = Counter(present)
    for name in wanted:
        if not counts[name]:
            raise origin.error(f"there is no column {name}", hint=near_names(name, present, "columns"))
        if counts[name] > 1:
            refuse_duplicate_names([name, name], origin)


def no_rows(origin: Origin) -> DataError:
    return origin.error("there are no rows", hint="a dataset needs at least one row")


def without_values(origin: Origin, column: str) -> DataError:
    return origin.error("no row has a value", column=column, hint=origin.advice.leave_out(column))


def near_names(name: str, present: Sequence[str], kind: str) -> str:
    """`did you mean age, wage? The columns are ...`."""
    near = difflib.get_close_matches(name, present, n=3, cutoff=0.5)
    listed = ", ".join(present[:NAMES_SHOWN]) + (", ..." if len(present) > NAMES_SHOWN else "")
    return (f"did you mean {', '.join(near)}? " if near else "") + f"the {kind} are {listed or '(none)'}"
