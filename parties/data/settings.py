"""The [dataset] table of a party file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from blindfit.algorithms.columns.record import MISSING_WORDS
from blindfit.parties.data.dialect import OPTIONS, PLAIN, CsvDialect, Decimal, Encoding, Thousands
from blindfit.parties.data.recipe_settings import RecipeSettings, mistakes_of, sources_of
from blindfit.parties.data.urls import file_of, without_password
from blindfit.parties.tables import as_value_errors

ColumnName = Annotated[str, Field(min_length=1)]
Levels = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1, max_length=1000)]

BATCH_ROWS = 1 << 14


class DatasetSettings(BaseModel):
    """Place of a party's rows, and meaning of its columns."""

    # A validation error would otherwise print its input, and a URL may hold a password.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    url: str = Field(min_length=1)
    """Place of the rows: `csv:PATH`, `parquet:PATH`, `excel:PATH?sheet=NAME`, a path ending in .csv, .parquet or .xlsx,
    `sqlite:///PATH?table=NAME` or `postgresql://user@host/database?table=schema.name`."""
    id: ColumnName
    """Column that names a row. It is read as text, so 00123 stays 00123, and in one spelling, so white space around it
    does not count."""
    person: ColumnName | None = None
    """Column that names the person of a row, if one person may have several rows. It is read as `id` is."""
    label: ColumnName | None = None
    """Column to learn."""
    label_kind: Literal["binary", "number", "share"] = "binary"
    """Kind of the labels: "binary" labels are 0 or 1, "number" takes any finite number, "share" is one of the two
    shares of a label that `blindfit split-labels` writes."""
    positive: str | None = Field(None, min_length=1)
    """Text that stands for label 1, such as "yes", in one spelling as ids are. Every other text is label 0. By default
    labels are 0 and 1."""
    split: ColumnName | None = None
    """Column that names the split of a share. It has the same value in every row."""
    features: tuple[ColumnName, ...] | Literal["rest"] = ()
    """Columns to learn from, or "rest" for every other column. They are numbers, except those in `categories` and
    `dates`."""
    left_out: tuple[ColumnName, ...] = Field((), alias="except")
    """Columns that "rest" leaves out."""
    categories: tuple[ColumnName, ...] | dict[ColumnName, Levels] = ()
    """Features that are text. Each level becomes a column of zeros and ones. A list of names takes the levels of the
    rows. `{ region = ["north", "south"] }` declares levels without the rows; a row with another level has 0 in all of
    them."""
    reference_levels: dict[ColumnName, ColumnName] = {}
    """Level that has no column, for each category that has such a level: `{ region = "north" }`. The weights of the
    other levels are then differences from this level. By default every level has a column."""
    dates: tuple[ColumnName, ...] = ()
    """Features that are dates or moments, as ISO 8601 text or of a date type. They become days since 1970-01-01."""
    derive: dict[ColumnName, RecipeSettings] = {}
    """Columns that are computed from the table's columns, by name of the new column."""
    quasi_identifiers: dict[str, ColumnName] = {}
    """Fields for record linkage: the name that a field has in the job, and its column here. The columns are read as
    text and are not features."""
    missing: Literal["refuse", "drop", "mean", "indicator"] = "refuse"
    """Treatment of a row in which a feature has no value. With "refuse" the command ends with an error. With "drop" the
    row is left out. With "mean" the column's mean takes the place, which reads the table twice. With "indicator" a
    column of zeros and ones also marks these means."""
    missing_words: tuple[Annotated[str, Field(min_length=1)], ...] = Field(MISSING_WORDS, max_length=1000)
    """Words that stand for "no value" where a csv file has them without quotes. An empty field, a null and a NaN never
    have a value; a declared level always has one."""
    separator: str = Field(PLAIN.separator, min_length=1, max_length=1)
    """Character between two fields of a csv file, such as ";" or "\\t". A field that holds this character must stand in
    double quotes."""
    decimal: Decimal = PLAIN.decimal
    """Character before the fraction of a number in a csv file, "." or ","."""
    thousands: Thousands = PLAIN.thousands
    """Character between groups of three digits of a number in a csv file: ".", ",", " " or "'". A space also stands for
    a no-break space. By default numbers have no such groups."""
    encoding: Encoding = PLAIN.encoding
    """Encoding of a csv file. A byte order mark at its beginning does not count as text."""
    date_format: str | None = Field(PLAIN.date_format, min_length=1, max_length=100)
    """Form of the columns in `dates` of a csv file, such as "%d.%m.%Y" or "%m/%d/%Y %I:%M %p". By default dates are
    ISO 8601. The parts are those of strptime; %b and %B are English names of months, and %y is a year from 1969 to
    2068."""
    made_by: str | None = None
    """Command that makes the file. The error about a missing file shows it."""
    batch_rows: int = Field(default=BATCH_ROWS, ge=1, le=1 << 20)
    """Rows held in memory at a time. Lower it if memory is short."""

    @field_validator("missing_words")
    @classmethod
    def _words_in_one_spelling(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        return _in_one_spelling(words)

    @field_validator("categories", "positive")
    @classmethod
    def _in_one_spelling(cls, chosen: Any) -> Any:
        """Return names of levels in the spelling that the texts of rows get."""
        if isinstance(chosen, dict):
            return {name: _in_one_spelling(levels) for name, levels in chosen.items()}
        return _in_one_spelling([chosen])[0] if isinstance(chosen, str) else chosen

    @field_validator("reference_levels")
    @classmethod
    def _levels_in_one_spelling(cls, chosen: dict[str, str]) -> dict[str, str]:
        return dict(zip(chosen, _in_one_spelling(tuple(chosen.values())), strict=True))

    @model_validator(mode="after")
    def _options_of_csv(self) -> DatasetSettings:
        given = [name for name in OPTIONS if name in self.model_fields_set]
        if "missing_words" in self.model_fields_set and not is_csv(self.url):
            raise ValueError("missing_words is for csv files, remove it: in other sources a missing value is a null")
        if given and not is_csv(self.url):
            raise ValueError(f"{given[0]} is for csv files, remove it: other sources have typed values")
        with as_value_errors():
            _ = self.dialect
        if self.date_format is not None and not self.dates:
            raise ValueError("date_format does nothing without dates, remove it or name the columns: dates = [...]")
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
    def _check_encoded_columns(self) -> DatasetSettings:
        encoded = [*self.categories, *self.dates]
        if twice := [name for name, count in Counter(encoded).items() if count > 1]:
            raise ValueError(f"column {twice[0]} is named twice in categories and dates")
        if excepted := [name for name in encoded if name in self.left_out and name not in self.sources]:
            raise ValueError(f"column {excepted[0]} of categories or dates is in except, remove it from one of them")
        if self.features != "rest":
            read = (*self.features, *self.sources)
            if strangers := [name for name in encoded if name not in read]:
                raise ValueError(f"column {strangers[0]} of categories or dates is none of the features")
        if isinstance(self.categories, dict):
            repeated = [name for name, levels in self.categories.items() if len(set(levels)) < len(levels)]
            if repeated:
                raise ValueError(f"categories.{repeated[0]} names a level twice")
        if self.positive is not None and (self.label is None or self.label_kind != "binary"):
            raise ValueError('positive names the text of label 1: it needs a label, and label_kind = "binary"')
        return self

    @model_validator(mode="after")
    def _reference_levels_are_of_categories(self) -> DatasetSettings:
        for name, level in self.reference_levels.items():
            if name not in self.categories:
                raise ValueError(f"reference_levels.{name}: {name} is not one of categories")
            declared = self.categories[name] if isinstance(self.categories, dict) else None
            if declared is not None and level not in declared:
                raise ValueError(f"reference_levels.{name}: {level!r} is not one of categories.{name}")
            if declared is not None and len(declared) < 2:
                raise ValueError(f"reference_levels.{name}: {name} has no other level, remove it")
        return self

    @model_validator(mode="after")
    def _recipes_read_numbers(self) -> DatasetSettings:
        named = () if self.features == "rest" else self.features
        used = (*self.key_columns(), *named, *self.left_out)
        for mistake in mistakes_of(self.derive, used, self.categories, self.key_columns()):
            raise ValueError(mistake)
        return self

    @model_validator(mode="after")
    def _shares_are_of_a_split(self) -> DatasetSettings:
        if self.split is not None and self.label_kind != "share":
            raise ValueError('split does nothing without label_kind = "share", remove it')
        if self.split is None and self.label_kind == "share":
            raise ValueError(
                'split is missing: label_kind = "share" needs the column that names the split of each share, such as '
                'split = "split"'
            )
        return self

    @model_validator(mode="after")
    def _records_keep_their_rows(self) -> DatasetSettings:
        if self.quasi_identifiers and self.missing == "drop":
            raise ValueError('missing = "drop" cannot go with quasi_identifiers: take "mean"')
        return self

    @property
    def dialect(self) -> CsvDialect:
        """Form of the csv file."""
        return CsvDialect(self.separator, self.decimal, self.thousands, self.encoding, self.date_format)

    @property
    def fills(self) -> bool:
        """True if a missing value becomes a mean."""
        return self.missing in ("mean", "indicator")

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table that recipes read."""
        return sources_of(self.derive)

    def is_feature(self, column: str) -> bool:
        """Return True if the model learns from this column itself, and not only through recipes."""
        return column not in self.left_out if self.features == "rest" else column in self.features

    def declarations(self) -> dict[str, frozenset[str]]:
        """Return the texts of each column that are values even if they are among the missing words."""
        levels = self.categories if isinstance(self.categories, dict) else {}
        found = {name: frozenset(of_it) for name, of_it in levels.items()}
        if self.label is not None and self.positive is not None:
            found[self.label] = frozenset({self.positive})
        return found

    def key_columns(self) -> tuple[str, ...]:
        """Return the columns that cannot be features: id, and person, label and quasi-identifiers if the table has
        them.
        """
        named = (self.id, self.person, self.label, self.split, *self.quasi_identifiers.values())
        return tuple(name for name in named if name is not None)

    def text_columns(self) -> frozenset[str]:
        """Return the columns that are read as text, also if their type is another."""
        label = self.label if self.positive is not None or self.label_kind == "share" else None
        named = (self.id, self.person, self.split, label, *self.quasi_identifiers.values(), *self.categories)
        return frozenset(name for name in named if name is not None)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for key, value in super().__repr_args__():
            yield key, without_password(self.url) if key == "url" else value


class PartyDatasetSettings(DatasetSettings):
    """A dataset of a party file: its rows, and permissions to use them."""

    population: str | None = None
    """Table of [populations] whose budget pays for releases of this dataset. Datasets about the same people name the
    same population."""
    public: bool = False
    """Declaration of the dataset's owner that its rows are public, labels included. Public rows can be fitted without
    noise, as the start of a private fit, and the disclosure account does not count them. Leave it out if one row comes
    from a dataset with a population."""
    snapshot_every_h: float | None = Field(None, gt=0, le=24 * 366)
    """Hours between two snapshots of this dataset. By default the operator decides."""
    row_is: str | None = Field(None, max_length=60)
    """Words for one row in the privacy statement, such as "a person-year"."""
    unknown_rows: Literal["refuse", "zero"] = "refuse"
    """Treatment of ids that the table does not have: "refuse" the request, or count each such id with label 0
    ("zero")."""
    rows_are_public: bool = False
    """Permission to reveal who is in the table and how many rows it has. Set it only if both are public anyway."""
    max_rows_per_person: int = Field(1, ge=1, le=2**16)
    """Largest number of rows of one person that count, in a dataset with a person column. A larger number uses more
    data and needs more noise."""
    active_parties: list[str] = []
    """Active parties that may send requests about this dataset."""
    passive_parties: list[str] = []
    """Passive parties whose columns a request may add to those of an active party. Each of them learns the weights of
    its own columns."""
    label_range: tuple[float, float] | None = None
    """Public range of the labels, [low, high]. Labels outside the range are clipped; a wider range needs more noise."""
    label_rate: float | None = Field(None, gt=0, lt=1)
    """Fraction of rows with label 1, if it is public. It lowers the limit of what trainings may reveal about labels to
    a quarter of the information in them. Without it the limit protects labels only if about half of them are 1.
    """
    models_per_row: Annotated[int, Field(strict=True, ge=0, le=10_000)] | Literal["unlimited"] | None = None
    """Number of models that may ever reveal something of one person's score: by scores, or by weights or gradients that
    another party gets. It is at most half of what the columns allow. 0 gives no scores, and allows one training.
    "unlimited" gives scores without a limit and without rounding: a party that receives enough of them can compute the
    features. By default it is one model for each four columns of the table.
    """

    @property
    def may_take_unknown_rows_as_zero(self) -> bool:
        """True if unknown_rows = "zero" is possible with the other options."""
        return self.label_kind == "binary" and self.person is None

    @field_validator("label_range")
    @classmethod
    def _is_a_range(cls, label_range: tuple[float, float] | None) -> tuple[float, float] | None:
        if label_range is not None:
            from blindfit.algorithms.privacy.label_mechanisms import LabelGrid

            with as_value_errors():
                LabelGrid(*label_range)
        return label_range


def words_besides(levels: Iterable[str], url: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that stand for no value where a model reads a csv file.

    Args:
        levels: levels of the rows that the model is trained on. If these rows were not in a csv file, each level is a
            value, so no word may be one of them.
        url: URL of the dataset.
        words: missing words of the dataset.
    """
    values = frozenset[str]() if is_csv(url) else frozenset(levels)
    return tuple(word for word in words if word not in values)


def is_csv(url: str) -> bool:
    found = file_of(url)
    return found is not None and found[0] == "csv"


def _in_one_spelling(texts: Sequence[str]) -> tuple[str, ...]:
    import pyarrow as pa  # here: most party files have no such text, and commands that read them do not need Arrow

    from blindfit.algorithms.columns.spelling import one_spelling

    found: list[str] = one_spelling(pa.array(texts, pa.string())).to_pylist()
    if unseen := [text for text, seen in zip(texts, found, strict=True) if not seen]:
        raise ValueError(f"{unseen[0]!a} is a text without any visible character")
    return tuple(found)


IfExists = Literal["refuse", "append", "replace"]
