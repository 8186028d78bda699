"""The [dataset] table of a party file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from blindfit.algorithms.columns.record import MISSING_WORDS
from blindfit.parties.data.urls import file_of, without_password

ColumnName = Annotated[str, Field(min_length=1)]
Levels = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1, max_length=1000)]

BATCH_ROWS = 1 << 14


class DatasetSettings(BaseModel):
    """Where a party's rows are, and what its columns mean.

    Attributes:
        url: `csv:PATH`, `parquet:PATH`, a path ending in .csv or .parquet, `sqlite:///PATH?table=NAME` or
            `postgresql://user@host/database?table=schema.name`.
        id: The column that names a row; it is read as text, so 00123 stays 00123, and in one spelling (spelling.py), so
            white space around it does not count.
        person: The column that names whose row it is, where a person may have several; read as `id` is.
        label: The column to learn.
        label_kind: `binary` labels are 0 or 1; `number` takes any finite number; `share` is one of the two
            shares of a label that `blindfit split-labels` writes.
        positive: The text that stands for label 1, such as "yes", in one spelling as ids are; every other one is 0. By
            default labels are 0 and 1.
        split: The column that says which split a share is of: the same in every row.
        features: The columns to learn from, of numbers but for `categories` and `dates`, or "rest": every other column.
        except: Columns that "rest" leaves out.
        categories: Features of text. Each becomes a column of zeros and ones for each of its levels: those that the
            rows have (a list of names), or, known without the rows, `{ region = ["north", "south"] }`; whoever has
            another level has 0 in all of them.
        dates: Features that are dates or moments, as text in ISO 8601 or of such a type: days since 1970-01-01.
        quasi_identifiers: For record linkage: what a field is called in the job, and the column that has it here. The
            columns are read as text and are no features.
        missing: What happens to a row in which a feature has no value: `refuse` it with an error, `drop` the
            row, put the column's `mean` in its place (which reads the table twice), or `indicator`: the mean, and
            a column of zeros and ones that says where it was put.
        missing_words: Words that stand for "no value" in a csv file where they are written without quotes. An empty
            field, a null of a typed source and a NaN among numbers are no value in any case; a declared level never is.
        made_by: The command that makes the file, shown when the file does not exist.
        batch_rows: Rows held in memory at a time.
    """

    # A validation error would otherwise print its input, and a URL may hold a password.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    url: str = Field(min_length=1)
    id: ColumnName
    person: ColumnName | None = None
    label: ColumnName | None = None
    label_kind: Literal["binary", "number", "share"] = "binary"
    positive: str | None = Field(None, min_length=1)
    split: ColumnName | None = None
    features: tuple[ColumnName, ...] | Literal["rest"] = ()
    left_out: tuple[ColumnName, ...] = Field((), alias="except")
    categories: tuple[ColumnName, ...] | dict[ColumnName, Levels] = ()
    dates: tuple[ColumnName, ...] = ()
    quasi_identifiers: dict[str, ColumnName] = {}
    missing: Literal["refuse", "drop", "mean", "indicator"] = "refuse"
    missing_words: tuple[Annotated[str, Field(min_length=1)], ...] = Field(MISSING_WORDS, max_length=1000)
    made_by: str | None = None
    batch_rows: int = Field(default=BATCH_ROWS, ge=1, le=1 << 20)

    @field_validator("missing_words")
    @classmethod
    def _words_in_one_spelling(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        return _in_one_spelling(words)

    @field_validator("categories", "positive")
    @classmethod
    def _in_one_spelling(cls, chosen: Any) -> Any:
        """What is compared with texts of rows, as these are."""
        if isinstance(chosen, dict):
            return {name: _in_one_spelling(levels) for name, levels in chosen.items()}
        return _in_one_spelling([chosen])[0] if isinstance(chosen, str) else chosen

    @model_validator(mode="after")
    def _words_are_of_csv(self) -> DatasetSettings:
        if "missing_words" in self.model_fields_set and not is_csv(self.url):
            raise ValueError("missing_words is for csv files, remove it: in other sources a missing value is a null")
        return self

    @model_validator(mode="after")
    def _one_role_a_column(self) -> DatasetSettings:
        named = () if self.features == "rest" else self.features
        uses = Counter([*self.key_columns(), *named, *self.left_out])
        twice = [name for name, count in uses.items() if count > 1]
        if twice:
            raise ValueError(
                f"column {twice[0]} is named twice: a column is the id, the person, the label, one feature or left out"
            )
        return self

    @model_validator(mode="after")
    def _only_the_rest_leaves_columns_out(self) -> DatasetSettings:
        if self.left_out and self.features != "rest":
            raise ValueError('except does nothing without features = "rest", remove it')
        return self

    @model_validator(mode="after")
    def _encoded_columns_are_features(self) -> DatasetSettings:
        encoded = [*self.categories, *self.dates]
        if twice := [name for name, count in Counter(encoded).items() if count > 1]:
            raise ValueError(f"column {twice[0]} is named twice in categories and dates")
        if excepted := [name for name in encoded if name in self.left_out]:
            raise ValueError(f"column {excepted[0]} of categories or dates is in except, remove it from one of them")
        if self.features != "rest" and (strangers := [name for name in encoded if name not in self.features]):
            raise ValueError(f"column {strangers[0]} of categories or dates is none of the features")
        if isinstance(self.categories, dict):
            repeated = [name for name, levels in self.categories.items() if len(set(levels)) < len(levels)]
            if repeated:
                raise ValueError(f"categories.{repeated[0]} names a level twice")
        if self.positive is not None and (self.label is None or self.label_kind != "binary"):
            raise ValueError('positive says which text is label 1: it needs a label, and label_kind = "binary"')
        return self

    @model_validator(mode="after")
    def _shares_are_of_a_split(self) -> DatasetSettings:
        if self.split is not None and self.label_kind != "share":
            raise ValueError('split does nothing without label_kind = "share", remove it')
        if self.split is None and self.label_kind == "share":
            raise ValueError(
                'split is missing: label_kind = "share" needs the column that says which split a share is of, such as '
                'split = "split"'
            )
        return self

    @model_validator(mode="after")
    def _records_keep_their_rows(self) -> DatasetSettings:
        if self.quasi_identifiers and self.missing == "drop":
            raise ValueError('missing = "drop" cannot go with quasi_identifiers: take "mean"')
        return self

    @property
    def fills(self) -> bool:
        """Whether a missing value becomes a mean."""
        return self.missing in ("mean", "indicator")

    def declared(self) -> dict[str, frozenset[str]]:
        """Return the texts that are values by name in each column, whatever words stand for "no value"."""
        levels = self.categories if isinstance(self.categories, dict) else {}
        found = {name: frozenset(of_it) for name, of_it in levels.items()}
        if self.label is not None and self.positive is not None:
            found[self.label] = frozenset({self.positive})
        return found

    def key_columns(self) -> tuple[str, ...]:
        """The columns that are no features: id, and person, label and quasi-identifiers where there are such."""
        named = (self.id, self.person, self.label, self.split, *self.quasi_identifiers.values())
        return tuple(name for name in named if name is not None)

    def text_columns(self) -> frozenset[str]:
        """Return the columns that are read as text, whatever type they are of."""
        label = self.label if self.positive is not None or self.label_kind == "share" else None
        named = (self.id, self.person, self.split, label, *self.quasi_identifiers.values(), *self.categories)
        return frozenset(name for name in named if name is not None)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for key, value in super().__repr_args__():
            yield key, without_password(self.url) if key == "url" else value


def words_besides(levels: Iterable[str], url: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that stand for no value where a model reads a csv file.

    Args:
        levels: of the rows that the model is trained on. In another source than a csv file each is a value, and so none
            of the words.
        url, words: of the dataset.
    """
    values = frozenset[str]() if is_csv(url) else frozenset(levels)
    return tuple(word for word in words if word not in values)


def is_csv(url: str) -> bool:
    found = file_of(url)
    return found is not None and found[0] == "csv"


def _in_one_spelling(texts: Sequence[str]) -> tuple[str, ...]:
    import pyarrow as pa  # here: most files of parties have no such text, and commands that read them no need of Arrow

    from blindfit.algorithms.columns.spelling import one_spelling

    found: list[str] = one_spelling(pa.array(texts, pa.string())).to_pylist()
    if unseen := [text for text, seen in zip(texts, found, strict=True) if not seen]:
        raise ValueError(f"{unseen[0]!a} is a text without any character that is seen")
    return tuple(found)


IfExists = Literal["refuse", "append", "replace"]
